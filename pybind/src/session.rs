//! The one session of this process: its sources, its recorder, and the run that
//! goes on between them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gpumem_core::analyze::{Rules, analyze};
use gpumem_core::recording::{Header, Level, Reading, Recording, RunIdx, Status, Unknown};
use gpumem_core::{format, report};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::api::DeviceError;
use crate::recorder::{Launch, Recorder, SourceText};
use crate::sampler::Sampler;
use crate::sources::{Found, Sources};
use crate::trouble;

/// Held for pure Rust only: Python code that ran under it, a signal handler or a
/// finaliser, could come back here and wait for itself.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Held while a framework is asked, which runs Python: see `with_sources`.
static SOURCES: LazyLock<Mutex<Sources>> = LazyLock::new(|| Mutex::new(Sources::new()));

static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// The process that records; one that was forked from it leaves everything alone.
static OWNER: LazyLock<u32> = LazyLock::new(process::id);

thread_local! {
    static ASKS_SOURCES: Cell<bool> = const { Cell::new(false) };
}

struct Session {
    recorder: Recorder,
    sampler: Sampler,
    /// The findings that a line has told of.
    told: BTreeSet<String>,
}

/// What of the machine a run reads. No names stand for all that there is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// Labels of devices.
    pub(crate) devices: Vec<String>,
    /// What is read when the run is over; `None` where it is what is read anyway.
    restored_sources: Option<Vec<String>>,
}

impl Selection {
    /// Reads from `sources` alone until the run that is about to begin has ended.
    pub(crate) fn begin(py: Python<'_>, devices: Vec<String>, sources: &[String]) -> Self {
        let restored_sources = if sources.is_empty() {
            None
        } else {
            with_sources(py, |asked| {
                let before = asked.chosen();
                asked.choose(sources).ok().map(|()| before)
            })
            .flatten()
        };
        Self {
            devices,
            restored_sources,
        }
    }

    fn end(&self, py: Python<'_>) {
        if let Some(before) = &self.restored_sources {
            // These were chosen before, so they can be chosen again.
            with_sources(py, |sources| drop(sources.choose(before)));
        }
    }
}

/// Begins a run.
pub(crate) fn begin(py: Python<'_>, launch: Launch, selection: &Selection) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let before = readings(py, selection);
    let sampling = with_session(py, |session| {
        session.recorder.begin(launch, before);
        session.sampler.begin()
    })?;
    IS_RUNNING.store(true, Ordering::Relaxed);
    if let Err(error) = sampling {
        trouble::log_once(
            py,
            &format!("runs have no samples: no thread was started: {error}"),
        );
    }
    Ok(())
}

/// Ends the open run, if there is one.
pub(crate) fn end(
    py: Python<'_>,
    status: Status,
    selection: &Selection,
) -> PyResult<Option<RunIdx>> {
    if !is_owner() || !IS_RUNNING.swap(false, Ordering::Relaxed) {
        return Ok(None);
    }
    let (ended, mut sampled) = with_session(py, |session| {
        (session.recorder.clock().now(), session.sampler.end())
    })?;
    let mut after = readings(py, selection);
    selection.end(py);
    sampled.retain(|(key, _)| after.iter().any(|(found, _)| found.key == *key));
    let unanswered = with_recorder(py, |recorder| recorder.unanswered(&after))?;
    tell_failures(py, &unanswered);
    after.extend(unanswered);
    with_session(py, |session| {
        session.recorder.end(status, ended, after, sampled)
    })
}

/// A run is open: what a mark asks first, without a lock.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// Sets a mark in the open run.
pub(crate) fn mark(py: Python<'_>, label: &str) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let readings = readings(py, &Selection::default());
    with_recorder(py, |recorder| recorder.mark(label, readings))
}

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

/// Sets how much of a cell's source is kept from now on.
pub(crate) fn keep_source_text(py: Python<'_>, kept: SourceText) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.keep_source_text(kept))
}

/// Forgets everything recorded: the next run is the first of a new session.
#[pyfunction]
pub(crate) fn reset(py: Python<'_>) -> PyResult<()> {
    let kept = with_recorder(py, |recorder| recorder.source_text())?;
    let session = Session::new(py, kept)?;
    IS_RUNNING.store(false, Ordering::Relaxed);
    // The old one's sampler is waited for when the lock is free again.
    let old = locked(py, &SESSION).replace(session);
    py.detach(|| drop(old));
    Ok(())
}

/// Reads these sources alone; `auto` for every one that answers.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an extracted argument is owned"
)]
pub(crate) fn use_sources(py: Python<'_>, names: Vec<String>) -> PyResult<()> {
    if let Some(Err(unknown)) = with_sources(py, |sources| sources.choose(&names)) {
        return Err(DeviceError::new_err(unknown.to_string()));
    }
    let states = with_sources(py, |sources| sources.states(py)).unwrap_or_default();
    with_recorder(py, |recorder| recorder.restate(states))
}

/// Each source: its name, whether it is read, and why.
#[pyfunction]
pub(crate) fn source_states(py: Python<'_>) -> Vec<(&'static str, bool, String)> {
    let states = with_sources(py, |sources| sources.states(py)).unwrap_or_default();
    states
        .into_iter()
        .map(|state| (state.source.name(), state.used, state.reason))
        .collect()
}

/// The devices that are read now, as people write them.
#[pyfunction]
pub(crate) fn device_labels(py: Python<'_>) -> Vec<String> {
    let readings = readings(py, &Selection::default());
    readings.into_iter().map(|(found, _)| found.label).collect()
}

/// How many runs have ended; only the last one can be open.
pub(crate) fn n_ended(recording: &Recording) -> usize {
    let last = recording.runs().iter().rposition(|run| run.ended.is_some());
    last.map_or(0, |position| position + 1)
}

fn is_owner() -> bool {
    *OWNER == process::id()
}

/// The levels of the selected devices now. A source that fails says so once.
pub(crate) fn readings(py: Python<'_>, selection: &Selection) -> Vec<(Found, Reading)> {
    let mut readings = with_sources(py, |sources| sources.read(py)).unwrap_or_default();
    if !selection.devices.is_empty() {
        readings.retain(|(found, _)| selection.devices.contains(&found.label));
    }
    tell_failures(py, &readings);
    readings
}

/// Says once of each source that it failed, and in which words.
fn tell_failures(py: Python<'_>, readings: &[(Found, Reading)]) {
    for (found, reading) in readings {
        let driver = ("the driver", &reading.driver.device_used);
        let allocators = reading.allocators.iter();
        let allocators = allocators.map(|levels| (levels.source.name(), &levels.allocated));
        for (source, level) in allocators.chain([driver]) {
            if let Level::Unknown(Unknown::Failed(words)) = level {
                let device = &found.label;
                let message = format!("{source} does not answer for {device}: {words}");
                trouble::log_once(py, &message);
            }
        }
    }
}

/// Hands the sources to `body`, which may run Python and let other threads in.
///
/// Another thread waits without the GIL. This thread itself, come back through a
/// signal handler or a finaliser, gets nothing, nor does a forked child, where
/// the lock may be held by a thread that it does not have.
fn with_sources<T>(py: Python<'_>, body: impl FnOnce(&mut Sources) -> T) -> Option<T> {
    struct Asking;
    impl Drop for Asking {
        fn drop(&mut self) {
            ASKS_SOURCES.set(false);
        }
    }
    if !is_owner() || ASKS_SOURCES.replace(true) {
        return None;
    }
    let _asking = Asking;
    Some(body(&mut locked(py, &SOURCES)))
}

fn with_recorder<T>(py: Python<'_>, body: impl FnOnce(&mut Recorder) -> T) -> PyResult<T> {
    with_session(py, |session| body(&mut session.recorder))
}

/// Hands the session to `body`, which must not call Python.
fn with_session<T>(py: Python<'_>, body: impl FnOnce(&mut Session) -> T) -> PyResult<T> {
    if let Some(session) = locked(py, &SESSION).as_mut() {
        return Ok(body(session));
    }
    let fresh = Session::new(py, SourceText::default())?;
    Ok(body(locked(py, &SESSION).get_or_insert(fresh)))
}

impl Session {
    fn new(py: Python<'_>, source_text: SourceText) -> PyResult<Self> {
        let recorder = Recorder::new(header(py)?, source_text);
        let drivers = locked(py, &SOURCES).drivers();
        let sampler = Sampler::new(drivers, recorder.clock());
        Ok(Self {
            recorder,
            sampler,
            told: BTreeSet::new(),
        })
    }
}

fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner)
}

fn header(py: Python<'_>) -> PyResult<Header> {
    let modules = py.import("sys")?.getattr("modules")?;
    let mut versions = BTreeMap::from([
        ("gpumem".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("python".to_owned(), Python::version_str().to_owned()),
    ]);
    for name in ["IPython", "ipykernel", "torch", "cupy", "jax", "tensorflow"] {
        // Only of what is imported already; a module without a version has none.
        if let Ok(module) = modules.get_item(name)
            && let Ok(version) = module.getattr("__version__")
            && let Ok(version) = version.extract()
        {
            versions.insert(name.to_lowercase(), version);
        }
    }
    let session = py.import("uuid")?.call_method0("uuid4")?.getattr("hex")?;
    Ok(Header {
        session: session.extract()?,
        versions,
        sources: with_sources(py, |sources| sources.states(py)).unwrap_or_default(),
        ..Header::default()
    })
}
