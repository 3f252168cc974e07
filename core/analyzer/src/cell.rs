//! Cells as people see them.

use serde::Serialize;

use gpumem_model::printable::printable;
use gpumem_model::recording::{CellIdx, Recording, Run};
use gpumem_model::source_text;

/// A cell as people see it: the first line of its source, and Jupyter's latest number.
/// [`Finding::cell`](super::Finding::cell) names one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellRef {
    /// Its position in the recording.
    #[serde(skip)]
    pub idx: CellIdx,
    /// The frontend's id, or the hash of its source.
    pub id: String,
    /// The user's label, or the first meaningful line of its source.
    pub label: String,
    /// Jupyter's latest number.
    pub execution_count: Option<u32>,
}

impl CellRef {
    /// The cell of a run, with the number of that run.
    pub fn at(recording: &Recording, run: &Run) -> Self {
        let cell = recording.cell(run.cell);
        Self {
            idx: cell.idx,
            id: cell.id.clone(),
            label: cell_label(recording, run),
            execution_count: run.execution_count,
        }
    }

    /// The cell of a run, with the number of its latest run.
    pub(super) fn of(recording: &Recording, run: &Run) -> Self {
        let latest = recording.latest_run(run.cell).unwrap_or(run);
        Self {
            execution_count: latest.execution_count,
            ..Self::at(recording, run)
        }
    }
}

/// The user's label of a cell's run, or else the headline of its source.
pub fn cell_label(recording: &Recording, run: &Run) -> String {
    let outermost = recording.run(recording.outermost(run.idx));
    let label = outermost.label.clone();
    let headline = || source_text::headline(recording.text(run)?);
    label
        .or_else(|| headline().map(|line| printable(&line)))
        .unwrap_or_else(|| match outermost.execution_count {
            Some(n) => format!("In [{n}]"),
            None => "a cell".to_owned(),
        })
}
