//! The one session of this process: its sources, its recorder, and the runs that
//! go on between them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gpumem_core::analyze::{Rules, analyze};
use gpumem_core::recording::{Header, Level, Reading, Recording, RunIdx, Sample, Status, Unknown};
use gpumem_core::units::Nanos;
use gpumem_core::{format, report};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::api::DeviceError;
use crate::recorder::{Launch, Recorder, SourceText};
use crate::sampler::Sampler;
use crate::sources::{Found, PATIENCE_OF_A_QUESTION, PATIENCE_OF_A_START, Sources};
use crate::trouble;

/// Held for pure Rust only: Python code that ran under it, a signal handler or a
/// finaliser, could come back here and wait for itself.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Held while a framework is asked, which runs Python: see `with_sources`.
static SOURCES: LazyLock<Mutex<Sources>> = LazyLock::new(|| Mutex::new(Sources::new()));

/// A run is open: what a mark asks first, without a lock.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// A block outside of every recorded cell is recorded, too.
static RECORDS_BLOCKS: AtomicBool = AtomicBool::new(true);

/// The process that records; one that was forked from it leaves everything alone.
static OWNER: LazyLock<u32> = LazyLock::new(process::id);

thread_local! {
    static ASKS_SOURCES: Cell<bool> = const { Cell::new(false) };
}

/// A block of a session: one of another session is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId {
    session: u32,
    run: RunIdx,
}

impl BlockId {
    /// As a number that a context keeps.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.session) << 32 | u64::from(self.run.0)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        Self {
            session: half(bits >> 32),
            run: RunIdx(half(bits)),
        }
    }
}

struct Session {
    /// Tells it from the sessions before it.
    number: u32,
    recorder: Recorder,
    sampler: Sampler,
    /// The run that is sampled: a cell's, else the first block outside of every run.
    sampled: Option<RunIdx>,
    /// What the open run of a cell reads.
    devices: Vec<String>,
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
    /// Reads from `sources` alone until the run that is about to begin has ended; resets the peak
    /// counters before it, if the user says so.
    pub(crate) fn begin(
        py: Python<'_>,
        devices: Vec<String>,
        sources: &[String],
        reset_peak: bool,
    ) -> Self {
        let restored_sources = if sources.is_empty() {
            None
        } else {
            with_sources(py, |asked| {
                let before = asked.chosen();
                asked.choose(sources).ok().map(|()| before)
            })
            .flatten()
        };
        if reset_peak {
            let failures = with_sources(py, |asked| asked.reset_peaks(py, &devices));
            for failure in failures.into_iter().flatten() {
                trouble::log_once(py, &failure);
            }
        }
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

/// Begins a cell's run.
pub(crate) fn begin(py: Python<'_>, launch: Launch, selection: &Selection) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let before = readings(py, &selection.devices);
    let sampling = with_session(py, |session| {
        let run = session.recorder.begin(launch, before);
        session.devices.clone_from(&selection.devices);
        session.sample(run)
    })?;
    warn_of_thread(py, sampling);
    Ok(())
}

/// Ends the open run of a cell, if there is one.
pub(crate) fn end(
    py: Python<'_>,
    status: Status,
    selection: &Selection,
) -> PyResult<Option<RunIdx>> {
    if !is_owner() || !is_running() {
        return Ok(None);
    }
    let stopped = with_session(py, |session| {
        let run = session.recorder.cell_run()?;
        Some((run, session.recorder.clock().now(), session.samples_of(run)))
    })?;
    let Some((run, ended, sampled)) = stopped else {
        return Ok(None);
    };
    let after = readings_after(py, run, &selection.devices)?;
    selection.end(py);
    with_session(py, |session| {
        session.devices.clear();
        session
            .end(run, status, ended, after, sampled)
            .then_some(run)
    })
}

/// Begins a block, nested in the block `around` as far as that is open, or in the
/// cell's run. `None` where nothing is recorded.
pub(crate) fn begin_block(
    py: Python<'_>,
    name: &str,
    around: Option<BlockId>,
) -> PyResult<Option<BlockId>> {
    if !is_owner() || !records_blocks() {
        return Ok(None);
    }
    let before = readings_inside(py)?;
    let (id, sampling) = with_session(py, |session| {
        let around = session.own(around);
        let run = session.recorder.begin_block(name, around, before);
        let is_first = session.sampled.is_none() && session.recorder.cell_run().is_none();
        let sampling = if is_first {
            session.sample(run)
        } else {
            Ok(())
        };
        session.note_open();
        let id = BlockId {
            session: session.number,
            run,
        };
        (id, sampling)
    })?;
    warn_of_thread(py, sampling);
    Ok(Some(id))
}

/// Ends a block. One of a session that was reset is forgotten already.
pub(crate) fn end_block(py: Python<'_>, id: BlockId, status: Status) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let stopped = with_session(py, |session| {
        let run = session.own(Some(id))?;
        Some((run, session.recorder.clock().now(), session.samples_of(run)))
    })?;
    let Some((run, ended, sampled)) = stopped else {
        return Ok(());
    };
    let devices = with_session(py, |session| session.devices.clone())?;
    let after = readings_after(py, run, &devices)?;
    with_session(py, |session| {
        if session.own(Some(id)).is_some() {
            session.end(run, status, ended, after, sampled);
        }
    })
}

/// A run is open: what a mark asks first, without a lock.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// A block that begins now is recorded: what it asks first, without a lock.
pub(crate) fn records_blocks() -> bool {
    is_running() || RECORDS_BLOCKS.load(Ordering::Relaxed)
}

/// Says whether blocks outside of every recorded cell are recorded, too.
#[pyfunction]
pub(crate) fn record_blocks(yes: bool) {
    RECORDS_BLOCKS.store(yes, Ordering::Relaxed);
}

/// Sets a mark in the block `around`, or in the cell's run.
pub(crate) fn mark(py: Python<'_>, label: &str, around: Option<BlockId>) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let readings = readings_inside(py)?;
    with_session(py, |session| {
        let around = session.own(around);
        session.recorder.mark(label, around, readings);
    })
}

fn warn_of_thread(py: Python<'_>, sampling: io::Result<()>) {
    if let Err(error) = sampling {
        trouble::log_once(
            py,
            &format!("runs have no samples: no thread was started: {error}"),
        );
    }
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
    let states =
        with_sources(py, |sources| sources.states(py, PATIENCE_OF_A_QUESTION)).unwrap_or_default();
    with_recorder(py, |recorder| recorder.restate(states))
}

/// Each source: its name, whether it is read, and why.
#[pyfunction]
pub(crate) fn source_states(py: Python<'_>) -> Vec<(&'static str, bool, String)> {
    let states =
        with_sources(py, |sources| sources.states(py, PATIENCE_OF_A_QUESTION)).unwrap_or_default();
    states
        .into_iter()
        .map(|state| (state.source.name(), state.used, state.reason))
        .collect()
}

/// The devices that are read now, as people write them.
#[pyfunction]
pub(crate) fn device_labels(py: Python<'_>) -> Vec<String> {
    let readings = readings(py, &[]);
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

/// The levels of the devices that the cell's run reads.
fn readings_inside(py: Python<'_>) -> PyResult<Vec<(Found, Reading)>> {
    let devices = with_session(py, |session| session.devices.clone())?;
    Ok(readings(py, &devices))
}

/// The levels of these devices at the end of a run: unknown where nobody answers any more.
fn readings_after(
    py: Python<'_>,
    run: RunIdx,
    devices: &[String],
) -> PyResult<Vec<(Found, Reading)>> {
    let mut after = readings(py, devices);
    // The session may have been reset meanwhile.
    let unanswered = with_session(py, |session| {
        let is_known = run.get() < session.recorder.recording().runs().len();
        is_known.then(|| session.recorder.unanswered(run, &after))
    })?;
    let unanswered = unanswered.unwrap_or_default();
    tell_failures(py, &unanswered);
    after.extend(unanswered);
    Ok(after)
}

/// The levels of the devices of these labels now, of all without one. A source that fails says so once.
pub(crate) fn readings(py: Python<'_>, devices: &[String]) -> Vec<(Found, Reading)> {
    let mut readings = with_sources(py, |sources| sources.read(py)).unwrap_or_default();
    if !devices.is_empty() {
        readings.retain(|(found, _)| devices.contains(&found.label));
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
    /// Samples from now on in `run`; the run that was sampled so far keeps what it has.
    fn sample(&mut self, run: RunIdx) -> io::Result<()> {
        if let Some(other) = self.sampled.replace(run) {
            let points = self.sampler.end();
            self.recorder.sampled(other, points);
        }
        self.note_open();
        self.sampler.begin()
    }

    /// What was sampled in `run`, which ends.
    fn samples_of(&mut self, run: RunIdx) -> Vec<(String, Vec<Sample>)> {
        if self.sampled != Some(run) {
            return Vec::new();
        }
        self.sampled = None;
        self.sampler.end()
    }

    /// False where it is not open.
    fn end(
        &mut self,
        run: RunIdx,
        status: Status,
        ended: Nanos,
        after: Vec<(Found, Reading)>,
        sampled: Vec<(String, Vec<Sample>)>,
    ) -> bool {
        let was_open = self.recorder.end(run, status, ended, after);
        if was_open {
            self.recorder.sampled(run, sampled);
        }
        self.note_open();
        was_open
    }

    /// The run of a block, if it is of this session.
    fn own(&self, block: Option<BlockId>) -> Option<RunIdx> {
        block
            .filter(|block| block.session == self.number)
            .map(|block| block.run)
    }

    fn note_open(&self) {
        IS_RUNNING.store(self.recorder.is_open(), Ordering::Relaxed);
    }

    fn new(py: Python<'_>, source_text: SourceText) -> PyResult<Self> {
        static N_SESSIONS: AtomicU32 = AtomicU32::new(0);
        let recorder = Recorder::new(header(py)?, source_text);
        let drivers = locked(py, &SOURCES).drivers();
        let sampler = Sampler::new(drivers, recorder.clock());
        Ok(Self {
            number: N_SESSIONS.fetch_add(1, Ordering::Relaxed),
            recorder,
            sampler,
            sampled: None,
            devices: Vec::new(),
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
        sources: with_sources(py, |sources| sources.states(py, PATIENCE_OF_A_START))
            .unwrap_or_default(),
        ..Header::default()
    })
}
