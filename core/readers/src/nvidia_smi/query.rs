//! The output of `nvidia-smi -q`: names and values in indented sections.

use super::quantity;
use super::row::SmiRow;
use crate::level_log::{Ids, WallTime};

/// The section of the last line.
#[derive(Default)]
pub(super) struct Query<'t> {
    ids: Ids<'t>,
    device_name: Option<&'t str>,
    section: &'t str,
    row: SmiRow<'t>,
    pid: Option<u64>,
    process_name: Option<&'t str>,
}

/// The meaning of a line.
pub(super) enum QueryLine<'t> {
    Row(Box<SmiRow<'t>>),
    Time(WallTime),
    /// Another line of the same output.
    Other,
    /// Not a line of it.
    Foreign,
}

/// Whether a line begins such an output.
pub(super) fn begins(text: &str) -> bool {
    text.contains("NVSMI LOG")
}

/// Indentation of a device's sections: MIG instances have deeper sections with the same names.
const SECTION: usize = 4;

impl<'t> Query<'t> {
    pub(super) fn line(&mut self, indent: usize, text: &'t str) -> QueryLine<'t> {
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
                return time.map_or(QueryLine::Other, QueryLine::Time);
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
        QueryLine::Other
    }

    fn heading(&mut self, indent: usize, text: &'t str) -> QueryLine<'t> {
        if let Some(bus) = text.strip_prefix("GPU ").filter(|_| indent < SECTION) {
            *self = Self::default();
            self.ids.bus = Some(bus.trim());
            return QueryLine::Other;
        }
        if begins(text) {
            *self = Self::default();
            return QueryLine::Other;
        }
        if indent < SECTION {
            return QueryLine::Foreign;
        }
        if indent == SECTION {
            (self.section, self.row) = (text, SmiRow::default());
        }
        QueryLine::Other
    }

    fn memory(&mut self, indent: usize, name: &'t str, value: &'t str) -> QueryLine<'t> {
        let Some(level) = quantity::level(value, 1 << 20).filter(|_| indent == 2 * SECTION) else {
            return QueryLine::Other;
        };
        match name {
            "Total" => self.row.total = level.ok(),
            "Used" => {
                let row = SmiRow {
                    ids: self.ids,
                    device_name: self.device_name,
                    level: Some(level),
                    total: self.row.total,
                    ..SmiRow::default()
                };
                return QueryLine::Row(Box::new(row));
            }
            _ => (),
        }
        QueryLine::Other
    }

    fn process(&self, value: &'t str) -> QueryLine<'t> {
        let row = SmiRow {
            ids: self.ids,
            device_name: self.device_name,
            pid: self.pid,
            process_name: self.process_name,
            process_used: quantity::level(value, 1 << 20),
            ..SmiRow::default()
        };
        if self.pid.is_some() && row.process_used.is_some() {
            QueryLine::Row(Box::new(row))
        } else {
            QueryLine::Other
        }
    }
}
