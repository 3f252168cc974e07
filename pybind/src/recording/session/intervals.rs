//! A worker of a cluster: each interval between two rolls is a run, and only its end shows what
//! cell they are of.

use gpumem_model::recording::{Reading, RunIdx, Status};
use gpumem_model::units::Nanos;
use gpumem_wire as wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::reading::{order, readings, readings_after, readings_as_ordered};
use super::runs::warn_of_thread;
use super::{holder_search, is_owner, with_recorder, with_session};
use crate::recording::ending::RunEnding;
use crate::recording::recorder::{Launch, RunStart, Task};
use gpumem_base::strand::Strand;
use gpumem_base::text::{Text, code_of};
use gpumem_machine::sampler::Interval;
use gpumem_machine::sources::SourceDevice;

/// What a run is called: the source, the id, the label and the number of its cell.
type Title = (String, String, Option<String>, Option<u32>);

/// The source of an interval that no roll has ended.
const OPEN: &str = "# since the last recorded cell";
const OPEN_ID: &str = "gpumem:open";

/// Begins the first interval, sampled that often at the most.
#[pyfunction(name = "_begin_interval")]
pub(crate) fn begin_interval(py: Python<'_>, interval: Text) -> PyResult<()> {
    let Text(interval) = interval;
    let interval: Interval = interval
        .parse()
        .map_err(pyo3::exceptions::PyValueError::new_err::<String>)?;
    super::sample_every(py, interval)?;
    let before = readings_as_ordered(py, order(py), &[]);
    holder_search::look_before(py, &before)?;
    open(py, before)
}

/// Ends the interval as a run of that cell and, unless it is the last one, begins the next. The number of
/// the run; `None` where no interval is open.
#[pyfunction]
#[pyo3(name = "_roll", signature = (source, cell_id, label, execution_count, is_last = false))]
pub(crate) fn roll(
    py: Python<'_>,
    source: Text,
    cell_id: Option<Text>,
    label: Option<Text>,
    execution_count: Option<u32>,
    is_last: bool,
) -> PyResult<Option<u32>> {
    if !is_owner() {
        return Ok(None);
    }
    let stopped = with_session(py, |session| {
        let run = session.worker_interval?;
        Some(session.stopped(run))
    })?;
    let Some(stopped) = stopped else {
        return Ok(None);
    };
    let run = stopped.run;
    let after = readings_after(py, run, &[])?;
    let launch = Launch {
        cell_id: cell_id.map(String::from),
        execution_count,
        code: String::from(source).into(),
        label: label.map(String::from),
    };
    let next = (!is_last).then(|| after.clone());
    let strand = Strand::current(py);
    with_session(py, |session| {
        session.worker_interval = None;
        session.recorder.retitle(run, launch);
        session.end(stopped, RunEnding::OK, None, strand, after);
    })?;
    next.map_or(Ok(()), |before| open(py, before))?;
    Ok(Some(run.0))
}

/// Searches for holders after a run, if that is worthwhile. Takes a while.
#[pyfunction(name = "_look_after")]
pub(crate) fn look_after(py: Python<'_>, run: u32) -> PyResult<()> {
    holder_search::look_for_holders(py, RunIdx(run))
}

/// The frames since the last call, without the open interval, with at most `n_points` points per
/// series.
#[pyfunction(name = "_fetch")]
pub(crate) fn fetch(py: Python<'_>, n_points: usize) -> PyResult<Bound<'_, PyBytes>> {
    holder_search::collect_look(py, std::time::Duration::ZERO)?;
    let frames = with_recorder(py, |recorder| recorder.fetched(n_points))?;
    let bytes = py.detach(|| wire::encode_frames(frames));
    Ok(PyBytes::new(py, &bytes))
}

/// Notes what this recording lacks, in one sentence.
#[pyfunction(name = "_note_missing")]
pub(crate) fn note_missing(py: Python<'_>, words: Text) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.lacks(words.into()))
}

/// A task that begins now, with the levels.
#[pyclass(frozen, name = "_Task", module = "gpumem._gpumem")]
pub(crate) struct BegunTask {
    started: Nanos,
    before: Vec<(SourceDevice, Reading)>,
}

#[pymethods]
impl BegunTask {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let before = readings(py, &[]);
        let started = with_recorder(py, |recorder| recorder.clock().now())?;
        Ok(Self { started, before })
    }

    /// It is over: a block of the open interval, of that name; `file` has the code of its function.
    fn end(
        &self,
        py: Python<'_>,
        name: Text,
        failed: bool,
        file: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ended = with_recorder(py, |recorder| recorder.clock().now())?;
        let code = file.map(|file| code_of(py, &file)).transpose()?;
        let task = Task {
            name: name.into(),
            code: code.flatten(),
            started: self.started,
            ended,
            status: if failed { Status::Error } else { Status::Ok },
            before: self.before.clone(),
            after: readings(py, &[]),
        };
        with_session(py, |session| {
            if let Some(interval) = session.worker_interval {
                session.recorder.ran(task, interval);
            }
        })
    }
}

/// Source, id, label and number of the cell of an outermost run; `None` of one nested in another.
pub(crate) fn title(py: Python<'_>, run: RunIdx) -> PyResult<Option<Title>> {
    with_recorder(py, |recorder| {
        let recording = recorder.recording();
        let run = recording.runs().get(run.get())?;
        let cell = recording.cell(run.cell);
        let source = recording.revision(run.cell, run.revision);
        let source = source.and_then(|it| it.text.clone()).unwrap_or_default();
        let title = (
            source,
            cell.id.clone(),
            run.label.clone(),
            run.execution_count,
        );
        run.parent.is_none().then_some(title)
    })
}

fn open(py: Python<'_>, before: Vec<(SourceDevice, Reading)>) -> PyResult<()> {
    let launch = Launch {
        cell_id: Some(OPEN_ID.to_owned()),
        execution_count: None,
        code: OPEN.to_owned().into(),
        label: None,
    };
    let start = RunStart {
        strand: Strand::current(py),
        beside: Vec::new(),
        levels: before,
    };
    let sampling = with_session(py, |session| {
        let run = session.recorder.begin(launch, start);
        session.worker_interval = Some(run);
        session.opens(run, None)
    })?;
    warn_of_thread(py, sampling);
    Ok(())
}
