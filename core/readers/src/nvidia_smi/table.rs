//! The table that plain `nvidia-smi` draws: two lines for a device, one for a process, in boxes that differ
//! between versions.

use super::quantity;
use super::row::SmiRow;
use crate::level_log::Ids;

/// The position in the drawing.
#[derive(Default)]
pub(super) struct TablePosition<'t> {
    /// From the line before; its memory follows in this one.
    device: Option<(Ids<'t>, Option<&'t str>)>,
    is_of_processes: bool,
    /// Whether lines of processes name instances (`GI`, `CI`).
    has_instances: bool,
}

/// Whether a line is part of a drawing.
pub(super) fn is_drawn(text: &str) -> bool {
    text.starts_with('|') || text.starts_with("+-") || text.starts_with("+=")
}

/// Whether a drawn line can only come from nvidia-smi.
pub(super) fn is_theirs(text: &str) -> bool {
    text.starts_with('|') && (text.contains("NVIDIA-SMI") || device(text).is_some())
}

impl<'t> TablePosition<'t> {
    /// A drawn line's reading, if it has a level.
    pub(super) fn line(&mut self, text: &'t str) -> Option<SmiRow<'t>> {
        // A line may lack its end.
        let inside = text.strip_prefix('|')?.strip_suffix('|')?;
        if text.contains("NVIDIA-SMI") {
            *self = Self::default();
        }
        if inside.contains("Processes:") || inside.contains("PID") {
            self.is_of_processes = true;
            self.has_instances |= inside.split_whitespace().any(|word| word == "GI");
            return None;
        }
        if self.is_of_processes {
            return self.process(inside);
        }
        if let Some(device) = device(text) {
            self.device = Some(device);
            return None;
        }
        let (ids, device_name) = self.device.take()?;
        let memory = inside.split('|').nth(1)?;
        let mut row = SmiRow {
            ids,
            device_name,
            ..SmiRow::default()
        };
        match memory.split_once(" / ") {
            Some((used, total)) => {
                let used = used.split_whitespace().last()?;
                let total = total.split_whitespace().next()?;
                row.level = quantity::level(used, 1 << 20);
                row.total = quantity::level(total, 1 << 20)?.ok();
            }
            // A device that shares the host's memory.
            None => row.level = Some(Err(memory.trim())),
        }
        Some(row)
    }

    /// `0   N/A  N/A   4211   C   python train.py   512MiB`.
    fn process(&self, inside: &'t str) -> Option<SmiRow<'t>> {
        let mut words = inside.split_whitespace();
        let number = words.next().filter(|it| it.parse::<u32>().is_ok())?;
        let is_bare = !self.has_instances && !inside.contains("N/A  N/A");
        let pid = words.nth(if is_bare { 0 } else { 2 })?;
        let used = words.next_back()?;
        let process_used = quantity::level(used, 1 << 20)?;
        let behind_pid = pid.as_ptr() as usize + pid.len() - inside.as_ptr() as usize;
        let until = used.as_ptr() as usize - inside.as_ptr() as usize;
        let name = inside.get(behind_pid..until)?.trim();
        let is_type = |word: &str| matches!(word, "C" | "G" | "C+G" | "M" | "M+C");
        let name = match name.split_once(' ') {
            Some((kind, name)) if is_type(kind) => name.trim(),
            _ => name,
        };
        Some(SmiRow {
            ids: Ids {
                number: Some(number),
                ..Ids::default()
            },
            pid: pid.parse().ok(),
            process_name: Some(name).filter(|name| !name.is_empty()),
            process_used: Some(process_used),
            ..SmiRow::default()
        })
    }
}

/// The device of a line such as `|   0  NVIDIA L40S   On  |   00000000:4A:00.0 Off |   0 |`.
fn device(text: &str) -> Option<(Ids<'_>, Option<&str>)> {
    let mut cells = text.strip_prefix('|')?.split('|');
    let (number, name) = cells.next()?.trim().split_once(' ')?;
    let bus = cells.next()?.split_whitespace().next()?;
    let is_bus = bus.matches(':').count() == 2 && bus.contains('.');
    if !is_bus || number.parse::<u32>().is_err() {
        return None;
    }
    let name = name.trim();
    // The persistence mode, or the driver model.
    let (short, mode) = name.rsplit_once(' ').unwrap_or((name, ""));
    let is_mode = matches!(
        mode,
        "On" | "Off" | "N/A" | "WDDM" | "TCC" | "MCDM" | "ERR!"
    );
    let name = if is_mode { short.trim() } else { name };
    let ids = Ids {
        number: Some(number),
        bus: Some(bus),
        ..Ids::default()
    };
    Some((ids, Some(name)))
}
