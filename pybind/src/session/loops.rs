//! Loops that are counted in the open run, and their levels.

use std::time::Instant;

use gpumem_core::recording::{Loop, LoopIdx, RunKind};
use pyo3::prelude::*;

use super::reading::try_with_sources;
use super::{BlockId, is_owner, with_recorder, with_session};

/// The levels where an iteration of a loop has ended, so many of them by now.
pub(crate) fn read_in_loop(
    py: Python<'_>,
    run: BlockId,
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
        let Some(run) = session.own(Some(run)) else {
            return;
        };
        let wanted = &session.devices;
        levels.retain(|(found, _)| wanted.is_empty() || wanted.contains(&found.label));
        session
            .recorder
            .read_in_loop(run, idx, n_iterations, levels);
    })
}

/// The newer state of loops: when counting began, when an iteration last ended, and the rest.
pub(crate) fn note_loops(
    py: Python<'_>,
    run: BlockId,
    news: Vec<(Instant, Instant, Loop)>,
) -> PyResult<()> {
    if news.is_empty() {
        return Ok(());
    }
    with_session(py, |session| {
        let Some(run) = session.own(Some(run)) else {
            return;
        };
        let clock = session.recorder.clock();
        for (counted_from, last_at, counted) in news {
            session.recorder.note_loop(Loop {
                run,
                counted_from: clock.at(counted_from),
                last_at: clock.at(last_at),
                ..counted
            });
        }
    })
}

/// Jupyter's number and the source of a run, by which code is found in it; of a block those of no cell.
pub(crate) fn source_of(py: Python<'_>, run: BlockId) -> PyResult<Option<(Option<u32>, String)>> {
    let own = with_session(py, |session| session.own(Some(run)))?;
    with_recorder(py, |recorder| {
        let recording = recorder.recording();
        let run = recording.run(own?);
        Some(match run.kind {
            RunKind::Cell => {
                let source = recording.text(run).unwrap_or_default();
                (run.execution_count, source.to_owned())
            }
            RunKind::Block => (Some(u32::MAX), String::new()),
        })
    })
}
