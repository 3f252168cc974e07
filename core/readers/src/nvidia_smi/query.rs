//! What `nvidia-smi -q` writes: names and values in sections, indented.

use super::quantity;
use super::row::Row;
use crate::level_log::{Ids, WallTime};

/// Where in the sections the last line was.
#[derive(Default)]
pub(super) struct Query<'t> {
    ids: Ids<'t>,
    device_name: Option<&'t str>,
    section: &'t str,
    row: Row<'t>,
    pid: Option<u64>,
    process_name: Option<&'t str>,
}

/// What a line is.
pub(super) enum Said<'t> {
    Row(Box<Row<'t>>),
    Time(WallTime),
    /// Something else of the same output.
    Other,
    /// No line of it.
    Foreign,
}

/// Whether a line begins such an output.
pub(super) fn begins(text: &str) -> bool {
    text.contains("NVSMI LOG")
}

/// Sections of a device stand this deep: an instance of MIG has sections of the same names below it.
const SECTION: usize = 4;

impl<'t> Query<'t> {
    pub(super) fn line(&mut self, indent: usize, text: &'t str) -> Said<'t> {
        let Some((name, value)) = text.split_once(" : ") else {
            return self.heading(indent, text);
        };
        let (name, value) = (name.trim(), value.trim());
        if indent <= SECTION {
            self.section = name;
        }
        match (self.section, name) {
            ("Timestamp", _) => {
                let time = WallTime::parse(value);
                return time.map_or(Said::Other, Said::Time);
            }
            ("Product Name", _) => self.device_name = Some(value),
            ("GPU UUID", _) => self.ids.uuid = Some(value),
            // Drivers before 320 have no `FB`.
            ("FB Memory Usage" | "Memory Usage", _) => return self.memory(indent, name, value),
            (_, "Process ID") => (self.pid, self.process_name) = (value.parse().ok(), None),
            ("Processes" | "Compute Processes", "Name") => self.process_name = Some(value),
            (_, "Used GPU Memory") => return self.process(value),
            _ => (),
        }
        Said::Other
    }

    fn heading(&mut self, indent: usize, text: &'t str) -> Said<'t> {
        if let Some(bus) = text.strip_prefix("GPU ").filter(|_| indent < SECTION) {
            *self = Self::default();
            self.ids.bus = Some(bus.trim());
            return Said::Other;
        }
        if begins(text) {
            *self = Self::default();
            return Said::Other;
        }
        if indent < SECTION {
            return Said::Foreign;
        }
        if indent == SECTION {
            (self.section, self.row) = (text, Row::default());
        }
        Said::Other
    }

    fn memory(&mut self, indent: usize, name: &'t str, value: &'t str) -> Said<'t> {
        let Some(level) = quantity::level(value, 1 << 20).filter(|_| indent == 2 * SECTION) else {
            return Said::Other;
        };
        match name {
            "Total" => self.row.total = level.ok(),
            "Used" => {
                let row = Row {
                    ids: self.ids,
                    device_name: self.device_name,
                    level: Some(level),
                    total: self.row.total,
                    ..Row::default()
                };
                return Said::Row(Box::new(row));
            }
            _ => (),
        }
        Said::Other
    }

    fn process(&self, value: &'t str) -> Said<'t> {
        let row = Row {
            ids: self.ids,
            device_name: self.device_name,
            pid: self.pid,
            process_name: self.process_name,
            process_used: quantity::level(value, 1 << 20),
            ..Row::default()
        };
        if self.pid.is_some() && row.process_used.is_some() {
            Said::Row(Box::new(row))
        } else {
            Said::Other
        }
    }
}
