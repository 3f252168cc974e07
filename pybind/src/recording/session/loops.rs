//! Loops that are counted in the open run, and their levels.

use std::time::Instant;

use gpumem_model::recording::{Loop, LoopIdx, RunKind};
use pyo3::prelude::*;

use super::reading::try_with_sources;
use super::{RunId, is_owner, with_session};

/// The levels at the end of a loop's iteration, and how many iterations there were.
pub(crate) fn read_in_loop(
    py: Python<'_>,
    run: RunId,
    idx: LoopIdx,
    n_iterations: u64,
) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let Some(mut levels) = try_with_sources(|sources| sources.read_at_once(py)) else {
        return Ok(());
    };
    with_session(py, |session| {
        if !session.is_own(run) {
            return;
        }
        let wanted = session.devices_of(Some(run.run));
        levels.retain(|(found, _)| wanted.is_empty() || wanted.contains(&found.label));
        session
            .recorder
            .read_in_loop(run.run, idx, n_iterations, levels);
    })
}

/// The newer state of loops: when counting began, when an iteration last ended, and the rest.
pub(crate) fn note_loops(
    py: Python<'_>,
    run: RunId,
    news: Vec<(Instant, Instant, Loop)>,
) -> PyResult<()> {
    if news.is_empty() {
        return Ok(());
    }
    with_session(py, |session| {
        if !session.is_own(run) {
            return;
        }
        let clock = session.recorder.clock();
        for (counted_from, last_at, counted) in news {
            session.recorder.note_loop(Loop {
                run: run.run,
                counted_from: clock.at(counted_from),
                last_at: clock.at(last_at),
                ..counted
            });
        }
    })
}

/// Jupyter's number and the source of a run, by which code is found in it; of a block those of no cell.
pub(crate) fn source_of(py: Python<'_>, run: RunId) -> PyResult<Option<(Option<u32>, String)>> {
    with_session(py, |session| {
        if !session.is_own(run) {
            return None;
        }
        let recording = session.recorder.recording();
        let run = recording.run(run.run);
        Some(match run.kind {
            RunKind::Cell => {
                let source = recording.text(run).unwrap_or_default();
                (run.execution_count, source.to_owned())
            }
            RunKind::Block => (Some(u32::MAX), String::new()),
        })
    })
}
