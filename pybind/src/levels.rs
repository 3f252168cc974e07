//! What each device holds now, in words: one line per device.

use gpumem_core::recording::{Level, Reading};
use pyo3::prelude::*;

use crate::session::{self, Selection};
use crate::sources::Found;

/// The levels of every device now. Unknown ones are left out.
#[pyfunction]
pub(crate) fn levels_text(py: Python<'_>) -> String {
    let readings = session::readings(py, &Selection::default());
    let width = readings.iter().map(|(found, _)| found.label.len()).max();
    let lines: Vec<String> = readings
        .iter()
        .map(|(found, reading)| line(found, reading, width.unwrap_or(0)))
        .collect();
    lines.join("\n")
}

fn line(found: &Found, reading: &Reading, width: usize) -> String {
    let driver = &reading.driver;
    let mut parts = Vec::new();
    match (driver.device_used.known(), driver.capacity.known()) {
        (Some(used), Some(capacity)) => parts.push(format!("{used} of {capacity}")),
        (Some(used), None) => parts.push(format!("{used} used")),
        (None, Some(capacity)) => parts.push(format!("{capacity} in all")),
        (None, None) => {}
    }
    let mut push = |words: &str, level: &Level| {
        if let Some(bytes) = level.known() {
            parts.push(format!("{words} {bytes}"));
        }
    };
    push("this process", &driver.process_used);
    for levels in &reading.allocators {
        let source = levels.source.name();
        push(&format!("{source} allocated"), &levels.allocated);
        push(&format!("{source} reserved"), &levels.reserved);
    }
    let (label, name) = (&found.label, &found.name);
    format!("{label:<width$}  {name}  {}", parts.join(" · "))
}
