//! What names hold that no cell has read for a while, as lines.

use super::columns::wrapped;
use gpumem_analyzer::IdleMemory;
use gpumem_model::recording::Recording;
use gpumem_wording as wording;

/// A heading, and a line for each name; nothing if there is none. Its device is named if `is_one_of_many`.
pub(super) fn lines(
    recording: &Recording,
    idle: &[IdleMemory],
    is_one_of_many: bool,
    width: usize,
) -> Vec<String> {
    if idle.is_empty() {
        return Vec::new();
    }
    let heading = format!("{} ({})", wording::IDLE, wording::IDLE_NOTE);
    let lines = idle.iter().map(|it| {
        let names = it.names.join(", ");
        let device = &recording.device(it.device).label;
        let device = Some(format!(" of {device}")).filter(|_| is_one_of_many);
        let size = format!("{}{}", it.n_bytes, device.unwrap_or_default());
        let since = wording::idle(recording, it).ticked();
        format!("  ○ {names} · {size} · {since} · `{}`", it.release())
    });
    let lines = std::iter::once(heading).chain(lines);
    let lines = lines.map(|line| wrapped(&line, width));
    let lines: Vec<String> = lines.collect();
    let lines = lines.iter().flat_map(|line| line.lines());
    lines.map(str::to_owned).collect()
}
