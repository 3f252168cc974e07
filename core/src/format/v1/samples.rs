//! Points of a series, as columns: a long session is little else, so they are read by hand.

use serde::Serialize;
use serde::de::Error as _;

use super::{column, steps};
use crate::format::messagepack::{Outcome, Reader, Refused};
use crate::recording::{DeviceIdx, Frame, RunIdx, Sample, Samples, Series};
use crate::units::{Bytes, Nanos};

/// Times and ordinals are steps from the one before; a column of which nothing is
/// known is absent.
#[derive(Serialize)]
pub(in crate::format) struct WireSamples {
    run: u32,
    device: u32,
    /// The label of the marks; absent where the sampler read.
    #[serde(skip_serializing_if = "Option::is_none")]
    marks: Option<String>,
    at_steps: Vec<u64>,
    ordinal_steps: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allocated: Column,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reserved: Column,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_used: Column,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    process_used: Column,
}

type Column = Vec<Option<u64>>;

impl WireSamples {
    /// Reads them; a field that only a later gpumem knows is passed over.
    pub(in crate::format) fn read(reader: &mut Reader<'_>) -> Outcome<Self> {
        let (mut run, mut device, mut marks) = (None, None, None);
        let (mut at_steps, mut ordinal_steps) = (None, None);
        let mut levels: [Column; 4] = Default::default();
        let [allocated, reserved, device_used, process_used] = &mut levels;
        reader.fields(|name, reader| {
            match name {
                "run" => run = Some(index(reader)?),
                "device" => device = Some(index(reader)?),
                "marks" if reader.is_nil() => reader.skip()?,
                "marks" => marks = Some(reader.string()?.to_owned()),
                "at_steps" => at_steps = Some(reader.numbers(Reader::whole)?),
                "ordinal_steps" => ordinal_steps = Some(reader.numbers(Reader::whole)?),
                "allocated" => *allocated = reader.numbers(Reader::cell)?,
                "reserved" => *reserved = reader.numbers(Reader::cell)?,
                "device_used" => *device_used = reader.numbers(Reader::cell)?,
                "process_used" => *process_used = reader.numbers(Reader::cell)?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        let [allocated, reserved, device_used, process_used] = levels;
        Ok(Self {
            run: run.ok_or_else(|| Refused::missing_field("run"))?,
            device: device.ok_or_else(|| Refused::missing_field("device"))?,
            marks,
            at_steps: at_steps.ok_or_else(|| Refused::missing_field("at_steps"))?,
            ordinal_steps: ordinal_steps.ok_or_else(|| Refused::missing_field("ordinal_steps"))?,
            allocated,
            reserved,
            device_used,
            process_used,
        })
    }
}

pub(super) fn index(reader: &mut Reader<'_>) -> Outcome<u32> {
    u32::try_from(reader.whole()?).map_err(Refused::custom)
}

impl From<&Samples> for WireSamples {
    fn from(samples: &Samples) -> Self {
        let points = &samples.points;
        Self {
            run: samples.run.0,
            device: samples.device.0,
            marks: match &samples.series {
                Series::Sampled => None,
                Series::Marked(label) => Some(label.clone()),
            },
            at_steps: steps(points, |point| point.at.get()),
            ordinal_steps: steps(points, |point| point.ordinal),
            allocated: column(points, |point| point.allocated),
            reserved: column(points, |point| point.reserved),
            device_used: column(points, |point| point.device_used),
            process_used: column(points, |point| point.process_used),
        }
    }
}

impl TryFrom<WireSamples> for Frame {
    type Error = String;

    fn try_from(wire: WireSamples) -> Result<Self, String> {
        let n_points = wire.at_steps.len();
        let columns = [
            ("ordinal_steps", wire.ordinal_steps.len()),
            ("allocated", wire.allocated.len()),
            ("reserved", wire.reserved.len()),
            ("device_used", wire.device_used.len()),
            ("process_used", wire.process_used.len()),
        ];
        let fits = |n_rows: usize, name: &str| {
            n_rows == n_points || (n_rows == 0 && name != "ordinal_steps")
        };
        if let Some((name, n_rows)) = columns.into_iter().find(|(name, n)| !fits(*n, name)) {
            return Err(format!(
                "samples of run {}: column {name} has {n_rows} rows, at_steps has {n_points}",
                wire.run
            ));
        }
        let mut points = vec![Sample::default(); n_points];
        add_up(&mut points, &wire.at_steps, |point, at| {
            point.at = Nanos::new(at);
        });
        add_up(&mut points, &wire.ordinal_steps, |point, ordinal| {
            point.ordinal = ordinal;
        });
        let levels = [
            &wire.allocated,
            &wire.reserved,
            &wire.device_used,
            &wire.process_used,
        ];
        let [allocated, reserved, device_used, process_used] = levels;
        put(&mut points, allocated, |point| &mut point.allocated);
        put(&mut points, reserved, |point| &mut point.reserved);
        put(&mut points, device_used, |point| &mut point.device_used);
        put(&mut points, process_used, |point| &mut point.process_used);
        Ok(Self::Samples(Samples {
            run: RunIdx(wire.run),
            device: DeviceIdx(wire.device),
            series: wire.marks.map_or(Series::Sampled, Series::Marked),
            points,
        }))
    }
}

/// Gives each point the sum of the steps up to it.
fn add_up(points: &mut [Sample], steps: &[u64], set: impl Fn(&mut Sample, u64)) {
    let mut sum = 0_u64;
    for (point, step) in points.iter_mut().zip(steps) {
        sum = sum.saturating_add(*step);
        set(point, sum);
    }
}

fn put(
    points: &mut [Sample],
    column: &[Option<u64>],
    level: impl Fn(&mut Sample) -> &mut Option<Bytes>,
) {
    for (point, cell) in points.iter_mut().zip(column) {
        *level(point) = cell.map(Bytes::new);
    }
}
