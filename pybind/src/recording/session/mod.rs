//! The one session of this process: its sources, its recorder, and the runs that
//! go on between them.

mod answers;
mod children;
mod following;
mod held;
mod inside;
mod loops;
mod promises;
mod reading;
mod rolled;
mod runs;
mod segments;
mod selection;
mod storing;
mod traced;

use std::collections::HashMap;
use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gpumem_analyzer::RunAnalyzer;
use gpumem_heap::Inventory;
use gpumem_model::recording::{Header, RunIdx};
use gpumem_model::rules::Rules;
use gpumem_report::Shown;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

pub(crate) use answers::{
    NOTEBOOK_WIDTH, SessionRun, is_long_without_steps, late_findings, line, n_ended, note_since,
    snapshot,
};
#[cfg(feature = "testing")]
pub(crate) use answers::{latest_line, long_from};
pub(crate) use children::{SeenChild, labels_by_key, renew_children, seen_children};
pub(crate) use following::{Subscription, follow};
pub(crate) use held::{
    collect_look, heap_changes, is_before_first_run, latest_inventory, look_for_holders,
    look_if_unseen, note_unrecorded, unseen_since,
};
pub(crate) use inside::{foretell, look_inside};
pub(crate) use loops::{note_loops, read_in_loop, source_of};
pub(crate) use reading::{
    device_labels, handed_out, new_sampler, order, processes, readings, source_states,
    sources_text, use_sources,
};
pub(crate) use rolled::{BegunTask, begin_interval, fetch, look_after, note_missing, roll, title};
pub(crate) use runs::{RunId, begin, begin_block, end, end_block, has_cell_here, is_in_cell, mark};
pub(crate) use segments::{MAX_BLOCKS, look_for_segments, too_many};
pub(crate) use selection::Selection;

pub(crate) use storing::{
    archive, children, close_store, hurry_store, keep_in, store_state, store_trouble,
    wait_for_store,
};

use crate::heap::look;
use crate::recording::oom::observer;
pub(crate) use traced::{run_as_traced, traceable, traced};

use crate::machine::company::children::ProcessId;
use crate::machine::sampler::{Interval, Sampler};
use crate::machine::sources::PATIENCE_OF_A_START;
use crate::recording::recorder::{Recorder, SourceText};
use held::{Late, Unseen, is_late};
use inside::Inside;
use reading::with_sources;
use segments::Spent;

/// Held for pure Rust only: Python code that ran under it, a signal handler or a
/// finaliser, could come back here and wait for itself.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// A run is open: what a mark asks first, without a lock.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// A block outside of every recorded cell is recorded, too.
static RECORDS_BLOCKS: AtomicBool = AtomicBool::new(true);

/// Names are looked for after such a block.
static LOOKS_AFTER_BLOCKS: AtomicBool = AtomicBool::new(true);

/// The process that records; one that was forked from it leaves everything alone.
static OWNER: LazyLock<u32> = LazyLock::new(process::id);

struct Session {
    /// Tells it from the sessions before it.
    number: u32,
    recorder: Recorder,
    sampler: Sampler,
    /// How often runs are sampled at the most, where they say nothing else.
    interval: Interval,
    /// What each open run of a cell reads: labels of devices, none for all.
    devices: HashMap<RunIdx, Vec<String>>,
    /// The interval of a cluster's worker that goes on.
    worker_interval: Option<RunIdx>,
    /// Where each open run stood among the out-of-memory errors when it began.
    ooms_before: HashMap<RunIdx, observer::Mark>,
    /// Judges after each run that has something to say.
    incremental: RunAnalyzer,
    /// The findings that a line has shown.
    shown: Shown,
    /// Which storages were there at the last look for holders.
    inventory: Option<Arc<Inventory>>,
    /// The variables that held much of a device then.
    promised: Vec<promises::Promised>,
    /// A look whose answer is still to come.
    late: Option<Late>,
    /// The latest run, if there was no time for its look, until another cell has changed the heap.
    unseen: Option<Unseen>,
    /// What looks have found in the run that goes on.
    inside: Inside,
    /// What looking where memory lies took so far.
    spent: Spent,
    /// The run that began each living process that this one began; `None` of those that no recorded run did.
    begun: HashMap<ProcessId, Option<RunIdx>>,
}

/// A run is open: what a mark asks first, without a lock.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// A block that begins now is recorded: what it asks first, without a lock.
pub(crate) fn records_blocks() -> bool {
    is_running() || (RECORDS_BLOCKS.load(Ordering::Relaxed) && !is_disabled())
}

/// Everything of gpumem is off, by the environment's word.
pub(crate) fn is_disabled() -> bool {
    static IS_DISABLED: LazyLock<bool> = LazyLock::new(|| {
        let value = env::var_os("GPUMEM_DISABLE");
        value.is_some_and(|value| !value.is_empty() && value != "0")
    });
    *IS_DISABLED
}

/// Says whether blocks outside of every recorded cell are recorded, too.
#[pyfunction]
pub(crate) fn record_blocks(yes: bool) {
    RECORDS_BLOCKS.store(yes, Ordering::Relaxed);
}

/// Sets whether names are looked for after blocks outside of every recorded cell.
pub(crate) fn look_after_blocks(yes: bool) {
    LOOKS_AFTER_BLOCKS.store(yes, Ordering::Relaxed);
}

/// Sets how much of a cell's source is kept from now on.
pub(crate) fn keep_source_text(py: Python<'_>, kept: SourceText) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.keep_source_text(kept))
}

/// Sets what findings are judged by from now on.
pub(crate) fn judge_by(py: Python<'_>, rules: Rules) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.judge_by(rules))
}

/// Sets how often runs are sampled at the most from now on.
pub(crate) fn sample_every(py: Python<'_>, interval: Interval) -> PyResult<()> {
    with_session(py, |session| session.interval = interval)
}

/// Forgets everything recorded: the next run is the first of a new session.
#[pyfunction]
pub(crate) fn reset(py: Python<'_>) -> PyResult<()> {
    let (kept, interval, rules, (setting, origin)) = with_session(py, |session| {
        let recorder = &mut session.recorder;
        recorder.finish();
        let rules = recorder.recording().header().rules;
        let kept_in = recorder.kept_in();
        (recorder.source_text(), session.interval, rules, kept_in)
    })?;
    let mut session = Session {
        interval,
        ..Session::new(py, kept)?
    };
    session.recorder.judge_by(rules);
    session.recorder.keep_in(setting, origin);
    crate::recording::loops::end(py, None);
    look::begin_budget();
    IS_RUNNING.store(false, Ordering::Relaxed);
    // The old one's sampler is waited for when the lock is free again.
    let old = locked(py, &SESSION).replace(session);
    py.detach(|| drop(old));
    storing::place_children(py)
}

/// This is the process that records, and none that was forked from it.
#[pyfunction(name = "_is_owner")]
pub(crate) fn is_owner() -> bool {
    *OWNER == process::id()
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
        static N_SESSIONS: AtomicU32 = AtomicU32::new(0);
        let recorder = Recorder::new(header(py)?, source_text);
        let drivers = reading::drivers(py);
        let sampler = Sampler::new(drivers, recorder.clock());
        Ok(Self {
            number: N_SESSIONS.fetch_add(1, Ordering::Relaxed),
            recorder,
            sampler,
            interval: Interval::default(),
            devices: HashMap::new(),
            worker_interval: None,
            ooms_before: HashMap::new(),
            incremental: RunAnalyzer::default(),
            shown: Shown::default(),
            inventory: None,
            promised: Vec::new(),
            late: None,
            unseen: None,
            inside: Inside::default(),
            spent: Spent::default(),
            begun: HashMap::new(),
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
    let mut versions = vec![
        ("gpumem".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("python".to_owned(), Python::version_str().to_owned()),
    ];
    for name in ["IPython", "ipykernel", "torch", "cupy", "jax", "tensorflow"] {
        // Only of what is imported already; a module without a version has none.
        if let Ok(module) = modules.get_item(name)
            && let Ok(version) = module.getattr("__version__")
            && let Ok(version) = version.extract()
        {
            versions.push((name.to_lowercase(), version));
        }
    }
    let session = py.import("uuid")?.call_method0("uuid4")?.getattr("hex")?;
    let mut process: Vec<(String, String)> = py
        .import("gpumem._processes")?
        .call_method0("facts")?
        .extract()?;
    process.push(("pid".to_owned(), process::id().to_string()));
    Ok(Header {
        session: session.extract()?,
        process,
        versions,
        sources: with_sources(py, |sources| sources.states(py, PATIENCE_OF_A_START))
            .unwrap_or_default(),
        ..Header::default()
    })
}
