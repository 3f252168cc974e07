//! Cells as people see them.

use serde::Serialize;

use gpumem_heap as heap;
use gpumem_model::printable::printable;
use gpumem_model::recording::{CellIdx, Recording, Run, RunIdx};
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Bytes};

/// A cell as people see it: the first line of its source, and Jupyter's latest number.
/// [`Finding::cell`](super::Finding::cell) names one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellRef {
    /// Its position in the recording.
    #[serde(skip)]
    pub idx: CellIdx,
    /// The frontend's id, or the hash of its source.
    pub id: String,
    /// The user's label, or the line of its source that keeps most.
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
    pub(super) fn for_run(recording: &Recording, run: &Run) -> Self {
        let latest = recording.latest_run(run.cell).unwrap_or(run);
        Self {
            execution_count: latest.execution_count,
            ..Self::at(recording, run)
        }
    }
}

/// The user's label of a cell's run; else the line of its source that keeps most, the same for all of its runs; else
/// the last line that does something.
pub fn cell_label(recording: &Recording, run: &Run) -> String {
    let outermost = recording.run(recording.outermost(run.idx));
    line(recording, run).unwrap_or_else(|| match outermost.execution_count {
        Some(n) => format!("In [{n}]"),
        None => "a cell".to_owned(),
    })
}

/// Its label but for the number: `None` if its source is not kept.
pub(super) fn line(recording: &Recording, run: &Run) -> Option<String> {
    let outermost = recording.run(recording.outermost(run.idx));
    let of_text = || {
        let text = recording.text(run)?;
        keeping_line(recording, run, text).or_else(|| source_text::telling_line(text))
    };
    let label = outermost.label.clone();
    label.or_else(|| of_text().map(|line| printable(&line)))
}

/// Of the name that a run of this text gave most, or else the line of a trace.
fn keeping_line(recording: &Recording, run: &Run, text: &str) -> Option<String> {
    let is_of_text = |idx: RunIdx| {
        let of_look = recording.run(idx);
        (of_look.cell, of_look.revision) == (run.cell, run.revision)
    };
    let looks = recording.all_looks();
    let of_text = looks.filter(|(idx, _)| is_of_text(*idx));
    let holders = of_text.flat_map(|(_, found)| &found.roots);
    let grown = holders.filter(|it| it.grown > Some(ByteDelta::ZERO));
    let most = grown.max_by_key(|it| it.grown);
    let statement = most.and_then(|it| source_text::headline(heap::keeping_statement(it, text)?));
    statement.or_else(|| {
        let mut traces = recording.traces().rev();
        let trace = traces.find(|it| is_of_text(it.run))?;
        let most = trace.lines.iter().max_by_key(|it| it.tally.retained)?;
        let line = most.line.filter(|_| most.tally.retained > Bytes::ZERO)?;
        let line = source_text::line(text, line)?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    })
}
