//! What of the session others are told: a run's line, the recording, its newest frames.

use gpumem_core::analyze::{Rules, analyze};
use gpumem_core::recording::{Recording, RunIdx};
use gpumem_core::{format, report};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{with_recorder, with_session};

/// The line after a run; `None` where nobody asked and there is nothing to say.
pub(crate) fn line(py: Python<'_>, run: RunIdx, asked: bool) -> PyResult<Option<String>> {
    with_session(py, |session| {
        let recording = session.recorder.recording();
        // Most cells move nothing: they are not worth an analysis.
        if !asked && !session.recorder.has_news(run) {
            return None;
        }
        let analysis = analyze(recording, &Rules::default());
        let is_worth = report::worth_saying(recording, &analysis, run, &mut session.told);
        (asked || is_worth).then(|| report::line(recording, &analysis, run))
    })
}

/// The recording as it is now.
pub(crate) fn snapshot(py: Python<'_>) -> PyResult<Recording> {
    with_recorder(py, |recorder| recorder.recording().clone())
}

/// What was recorded after the first `n_runs` runs, as frames, and how many runs have ended
/// now; no bytes where none has ended since, and `None` where `session` is over.
#[pyfunction]
#[pyo3(name = "_frames_since")]
pub(crate) fn frames_since<'py>(
    py: Python<'py>,
    session: &str,
    n_runs: usize,
) -> PyResult<Option<(Bound<'py, PyBytes>, usize)>> {
    let update = with_recorder(py, |recorder| {
        let recording = recorder.recording();
        let is_current = recording.header().session == session;
        is_current.then(|| {
            let n_ended = n_ended(recording);
            let is_news = n_ended > n_runs;
            let frames = is_news.then(|| format::encode_since(recording, n_runs));
            (frames.unwrap_or_default(), n_ended)
        })
    })?;
    Ok(update.map(|(frames, n_ended)| (PyBytes::new(py, &frames), n_ended)))
}

/// How many runs have ended before one, with the blocks in it, that has not. A block that
/// outlives its cell is not waited for.
pub(crate) fn n_ended(recording: &Recording) -> usize {
    let runs = recording.runs();
    let mut outermost = runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.parent.is_none());
    let open = outermost.find(|(_, run)| run.ended.is_none());
    open.map_or(runs.len(), |(position, _)| position)
}
