//! A footprint in words: a small table for each device.

use std::fmt;

use super::{Footprint, FootprintPart};
use gpumem_model::units::Bytes;

/// A device with less than this share of the whole is left out of the text.
const NEGLIGIBLE: f64 = 0.001;

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self.shown_devices();
        if devices.is_empty() {
            return write!(f, "no parameters");
        }
        for (idx, device) in devices.iter().enumerate() {
            if idx > 0 {
                writeln!(f)?;
            }
            let [expects, is_there] = ["should take", "is there"];
            write!(f, "{device:<16}{expects:>12}{is_there:>12}")?;
            for row in self.on(device) {
                line(f, part_name(row.part), row.expected, row.present)?;
                write!(f, "   {}", row.formula)?;
            }
            line(f, "together", self.expected(device), self.present(device))?;
        }
        Ok(())
    }
}

impl Footprint {
    /// Leaves out devices with only a few counters, if others have more.
    fn shown_devices(&self) -> Vec<&str> {
        let size = |device: &str| {
            let expected = self.expected(device).unwrap_or_default();
            expected.max(self.present(device)).as_f64()
        };
        let mut devices = self.devices();
        let whole: f64 = devices.iter().map(|device| size(device)).sum();
        devices.retain(|device| size(device) >= whole * NEGLIGIBLE);
        devices
    }
}

fn line(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    expected: Option<Bytes>,
    present: Bytes,
) -> fmt::Result {
    let expected = expected.map_or_else(|| "not known".to_owned(), |bytes| bytes.to_string());
    write!(f, "\n  {name:<14}{expected:>12}{present:>12}")
}

fn part_name(part: FootprintPart) -> &'static str {
    match part {
        FootprintPart::OptimizerState => "optimizer",
        part => part.name(),
    }
}
