//! What others see of the session: a run's line, and the recording.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpumem_core::inspection::has_news;
use gpumem_core::recording::{Recording, RunIdx, Series};
use gpumem_core::report;
use gpumem_core::units::Nanos;
use pyo3::prelude::*;

use super::{collect_look, with_recorder, with_session};
use crate::look;

/// A notebook's columns, as in `_report.py`.
pub(crate) const NOTEBOOK_WIDTH: usize = 100;

/// The line after a run, at most `width` columns wide; `None` where nobody asked and there is nothing to say.
pub(crate) fn line(
    py: Python<'_>,
    run: RunIdx,
    asked: bool,
    width: usize,
) -> PyResult<Option<String>> {
    collect_look(py, Duration::ZERO)?;
    with_session(py, |session| {
        // Most cells move nothing: they are not worth an analysis.
        if !asked && !has_news(session.recorder.recording(), run) {
            return None;
        }
        let changed = session.recorder.take_changed();
        let recording = session.recorder.recording();
        let rules = &recording.header().rules;
        let analysis = session.incremental.after(recording, &changed, run, rules);
        let news = report::news(recording, &analysis, run, &mut session.shown);
        (asked || news.is_worth_a_line())
            .then(|| report::line(recording, &analysis, run, &news, width))
    })
}

/// A training of fewer milliseconds is not worth a hint.
static LONG_MILLIS: AtomicU64 = AtomicU64::new(5000);

/// From how many milliseconds on a run is long: tests do not wait for it.
#[cfg(feature = "testing")]
#[pyfunction]
pub(crate) fn long_from(milliseconds: u64) {
    LONG_MILLIS.store(milliseconds, Ordering::Relaxed);
}

/// A run took long, and neither a mark nor a block in it says what it did.
pub(crate) fn is_long_and_unmarked(py: Python<'_>, idx: RunIdx) -> PyResult<bool> {
    with_recorder(py, |recorder| {
        let recording = recorder.recording();
        let run = recording.run(idx);
        let long = Nanos::millis(LONG_MILLIS.load(Ordering::Relaxed));
        let is_long = run.ended.is_some_and(|it| it.since(run.started) >= long);
        let inside = recording.runs().get(idx.get() + 1..).unwrap_or_default();
        let has_block = inside.iter().any(|other| other.parent == Some(idx));
        let is_marked = recording.devices().iter().any(|device| {
            let mut series = recording.samples_of(idx, device.idx);
            series.any(|(series, _)| *series != Series::Sampled)
        });
        is_long && !has_block && !is_marked
    })
}

/// The line after the latest run, as a run on which it was asked for has it: what benchmarks time.
#[cfg(feature = "testing")]
#[pyfunction]
pub(crate) fn latest_line(py: Python<'_>) -> PyResult<Option<String>> {
    let runs = with_recorder(py, |recorder| recorder.recording().runs().len())?;
    let latest = runs.checked_sub(1).and_then(|idx| u32::try_from(idx).ok());
    latest.map_or(Ok(None), |idx| line(py, RunIdx(idx), true, NOTEBOOK_WIDTH))
}

/// The recording as it is now.
pub(crate) fn snapshot(py: Python<'_>) -> PyResult<Recording> {
    collect_look(py, look::patience())?;
    with_recorder(py, |recorder| recorder.recording().clone())
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
