//! The output of `nvidia-smi -q -x`. A log is a sequence of such documents.

use super::quantity;
use super::row::SmiRow;
use crate::level_log::{Ids, WallTime};

/// Deeper elements are not part of it.
const MAX_DEPTH: usize = 64;

/// Which elements are open.
#[derive(Default)]
pub(super) struct Xml<'t> {
    open: Vec<&'t str>,
    ids: Ids<'t>,
    device_name: Option<&'t str>,
    row: SmiRow<'t>,
}

/// The meaning of an element.
pub(super) enum Element<'t> {
    Row(Box<SmiRow<'t>>),
    Time(WallTime),
}

/// Whether a line may begin such an output.
pub(super) fn begins(text: &str) -> bool {
    text.starts_with("<?xml") || is_theirs(text)
}

/// Whether a line can only be part of such an output.
pub(super) fn is_theirs(text: &str) -> bool {
    text.starts_with('<') && (text.contains("<nvidia_smi_log>") || text.contains("nvsmi_device"))
}

impl<'t> Xml<'t> {
    /// Reads one line, which may hold any number of elements.
    pub(super) fn line(&mut self, text: &'t str, mut take: impl FnMut(Element<'t>)) {
        let mut rest = text;
        while let Some((content, behind)) = rest.split_once('<') {
            let Some((tag, after)) = behind.split_once('>') else {
                return;
            };
            rest = after;
            let content = content.trim();
            match tag.strip_prefix('/') {
                Some(name) => {
                    if let Some(element) = self.close(name, content) {
                        take(element);
                    }
                }
                None if tag.starts_with(['?', '!']) || tag.ends_with('/') => (),
                None => self.begin(tag),
            }
        }
    }

    fn begin(&mut self, tag: &'t str) {
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        match name {
            // If the previous document was cut, its elements are no longer open.
            "nvidia_smi_log" => *self = Self::default(),
            "gpu" => {
                (self.ids, self.device_name) = (Ids::default(), None);
                self.ids.bus = attributes.split('"').nth(1);
            }
            "fb_memory_usage" | "process_info" => self.row = SmiRow::default(),
            _ => (),
        }
        if self.open.len() < MAX_DEPTH {
            self.open.push(name);
        }
    }

    fn close(&mut self, name: &str, content: &'t str) -> Option<Element<'t>> {
        let at = self.open.iter().rposition(|open| *open == name)?;
        self.open.truncate(at);
        let level = || quantity::level(content, 1 << 20);
        match (&self.open[..], name) {
            ([_], "timestamp") => return WallTime::parse(content).map(Element::Time),
            ([.., "gpu"], "product_name") => self.device_name = Some(content),
            ([.., "gpu"], "uuid") => self.ids.uuid = Some(content),
            // A MIG instance has levels with the same names.
            ([.., "gpu", "fb_memory_usage"], "total") => self.row.total = level()?.ok(),
            ([.., "gpu", "fb_memory_usage"], "free") => self.row.free = level()?.ok(),
            ([.., "gpu", "fb_memory_usage"], "used") => self.row.level = level(),
            ([.., "process_info"], "pid") => self.row.pid = content.parse().ok(),
            ([.., "process_info"], "process_name") => self.row.process_name = Some(content),
            ([.., "process_info"], "used_memory") => self.row.process_used = level(),
            ([.., "gpu"], "fb_memory_usage") | (_, "process_info") => {
                let row = SmiRow {
                    ids: self.ids,
                    device_name: self.device_name,
                    ..std::mem::take(&mut self.row)
                };
                return Some(Element::Row(Box::new(row)));
            }
            _ => (),
        }
        None
    }
}
