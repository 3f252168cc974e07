//! The report and the line after a cell, as plain text.

use crate::analyze::Analysis;
use crate::recording::{Recording, RunIdx};

/// The whole report for a terminal, at most `width` columns wide.
pub fn text(recording: &Recording, analysis: &Analysis, width: usize) -> String {
    let _ = (recording, analysis, width);
    unimplemented!("report")
}

/// The line after a cell: what it kept, where the device stands; a second line
/// when there is something to say.
pub fn line(recording: &Recording, analysis: &Analysis, run: RunIdx) -> String {
    let _ = (recording, analysis, run);
    unimplemented!("report")
}
