//! What others see of the session: a run's line, and the recording.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpumem_analyzer::Analysis;
use gpumem_analyzer::inspection::has_news;
use gpumem_model::recording::{Recording, RunIdx, Series};
use gpumem_model::units::Nanos;
use gpumem_report as report;
use pyo3::prelude::*;

use super::{Session, collect_look, is_late, is_owner, readings, with_recorder, with_session};
use gpumem_objects::look;

/// A notebook's columns, as in `_report.py`.
pub(crate) const NOTEBOOK_WIDTH: usize = 100;

/// The line after a run, at most `width` columns wide. `None` if it was not requested and there is no
/// news.
pub(crate) fn line(
    py: Python<'_>,
    run: RunIdx,
    is_requested: bool,
    width: usize,
) -> PyResult<Option<String>> {
    collect_look(py, Duration::ZERO)?;
    // Most cells move nothing: they are not worth an analysis.
    let may_have_news = |session: &mut Session| {
        let recording = session.recorder.recording();
        has_news(recording, run) || session.shown.warned_of(recording.run(run).cell)
    };
    if !is_requested && !with_session(py, may_have_news)? {
        return Ok(None);
    }
    if is_late(py, run)? && with_session(py, |session| session.has_new_finding(run))? {
        collect_look(py, look::patience())?;
    }
    with_session(py, |session| {
        let (recording, analysis, shown) = session.analysis_after(run);
        let news = report::news(recording, &analysis, run, shown);
        (is_requested || news.is_worth_a_line())
            .then(|| report::line(recording, &analysis, run, &news, width))
    })
}

/// A run, distinguished from those of earlier sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionRun {
    session: u32,
    run: RunIdx,
}

impl SessionRun {
    /// The run, if the answer of its look is still to come.
    pub(crate) fn with_late_answer(py: Python<'_>, run: RunIdx) -> PyResult<Option<Self>> {
        let session = with_session(py, |session| session.number)?;
        Ok(is_late(py, run)?.then_some(Self { session, run }))
    }

    /// The display id for updating its line.
    pub(crate) fn display_id(self) -> String {
        format!("gpumem-{}-{}-{}", process::id(), self.session, self.run.0)
    }
}

/// What a late answer adds to the line of a run: empty if it adds nothing, `None` if it is still to come.
pub(crate) fn late_findings(
    py: Python<'_>,
    SessionRun { session, run }: SessionRun,
    width: usize,
) -> PyResult<Option<String>> {
    collect_look(py, Duration::ZERO)?;
    if is_late(py, run)? {
        return Ok(None);
    }
    with_session(py, |current| {
        if current.number != session || current.came_again(run) {
            return Some(String::new());
        }
        let (recording, analysis, shown) = current.analysis_after(run);
        let news = report::news(recording, &analysis, run, shown);
        Some(news.findings(recording, width))
    })
}

impl Session {
    /// The cell of a run has had another one since, whose line says what is found.
    fn came_again(&self, run: RunIdx) -> bool {
        let recording = self.recorder.recording();
        let cell = recording.run(run).cell;
        let mut later = recording.runs()[run.get() + 1..].iter();
        later.any(|it| it.parent.is_none() && it.cell == cell && it.ended.is_some())
    }

    fn has_new_finding(&mut self, run: RunIdx) -> bool {
        let (recording, analysis, shown) = self.analysis_after(run);
        report::has_new_finding(recording, &analysis, run, shown)
    }

    /// What is known after a run, and the findings that lines have shown.
    fn analysis_after(
        &mut self,
        run: RunIdx,
    ) -> (&Recording, Analysis, &mut report::ShownFindings) {
        let changed = self.recorder.take_changed();
        let recording = self.recorder.recording();
        let rules = &recording.header().rules;
        let analysis = self.incremental.after(recording, &changed, run, rules);
        (recording, analysis, &mut self.shown)
    }
}

/// A training of fewer milliseconds is not worth a hint.
static LONG_MILLIS: AtomicU64 = AtomicU64::new(5000);

/// From how many milliseconds on a run is long: tests do not wait for it.
#[pyfunction]
pub(crate) fn long_from(milliseconds: u64) {
    LONG_MILLIS.store(milliseconds, Ordering::Relaxed);
}

/// Whether a run took long without a mark, a block or a loop that structures it.
pub(crate) fn is_long_without_steps(py: Python<'_>, idx: RunIdx) -> PyResult<bool> {
    with_recorder(py, |recorder| {
        let recording = recorder.recording();
        let run = recording.run(idx);
        let long = Nanos::millis(LONG_MILLIS.load(Ordering::Relaxed));
        let is_long = run.ended.is_some_and(|it| it.since(run.started) >= long);
        let inside = recording.runs().get(idx.get() + 1..).unwrap_or_default();
        let has_block = inside.iter().any(|other| other.parent == Some(idx));
        let has_steps = recording.devices().iter().any(|device| {
            let mut series = recording.samples_of(idx, device.idx);
            series.any(|(series, _)| *series != Series::Sampled)
        });
        is_long && !has_block && !has_steps
    })
}

/// The requested line after the latest run, for benchmarks.
#[pyfunction]
pub(crate) fn latest_line(py: Python<'_>) -> PyResult<Option<String>> {
    let runs = with_recorder(py, |recorder| recorder.recording().runs().len())?;
    let latest = runs.checked_sub(1).and_then(|idx| u32::try_from(idx).ok());
    latest.map_or(Ok(None), |idx| line(py, RunIdx(idx), true, NOTEBOOK_WIDTH))
}

/// Records what every device holds now, outside of every run: what is not recorded, such as a `release`, may have
/// given memory back.
#[pyfunction(name = "_note_outside")]
pub(crate) fn note_outside(py: Python<'_>) -> PyResult<()> {
    if !is_owner() || with_recorder(py, |recorder| recorder.recording().runs().is_empty())? {
        return Ok(());
    }
    let at = Instant::now();
    let readings = readings(py, &[]);
    with_recorder(py, |recorder| recorder.note_outside(at, readings))
}

/// The recording as it is now. The user waits for it: a look that is under way may answer.
pub(crate) fn snapshot(py: Python<'_>) -> PyResult<Recording> {
    collect_look(py, look::answer_time())?;
    with_recorder(py, |recorder| recorder.recording().clone())
}

/// Notes in what a look found now since when each name holds it. The user waits for it: a look that is under way
/// may answer.
pub(crate) fn note_since(py: Python<'_>, found: &mut gpumem_heap::Holders) -> PyResult<()> {
    collect_look(py, look::answer_time())?;
    with_recorder(py, |recorder| {
        gpumem_analyzer::note_since(recorder.recording(), found);
    })
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
