//! The one session of this process: its sources, its recorder, and the runs that
//! go on between them.

mod answers;
mod children;
mod following;
mod holder_search;
mod inside;
mod intervals;
mod loops;
mod promises;
mod reading;
mod runs;
mod segments;
mod selection;
mod storing;
mod traced;

use std::collections::HashMap;
use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use gpumem_analyzer::RunAnalyzer;
use gpumem_heap::Inventory;
use gpumem_model::recording::{Header, RunIdx};
use gpumem_model::rules::Rules;
use gpumem_report::ShownFindings;
use pyo3::prelude::*;

pub(crate) use answers::{
    NOTEBOOK_WIDTH, SessionRun, is_long_without_steps, late_findings, latest_line, line, long_from,
    n_ended, note_outside, note_since, snapshot,
};
pub(crate) use children::{ObservedChild, labels_by_key, renew_children, seen_children};
pub(crate) use following::{Subscription, follow};
pub(crate) use holder_search::{
    collect_look, heap_changes, is_before_first_run, latest_inventory, look_for_holders,
    look_if_unseen, note_unrecorded, unseen_since,
};
pub(crate) use inside::{foretell, look_inside};
pub(crate) use intervals::{
    BegunTask, begin_interval, fetch, look_after, note_missing, roll, title,
};
pub(crate) use loops::{note_loops, read_in_loop, source_of};
pub(crate) use reading::{
    device_labels, handed_out, new_sampler, order, processes, readings, source_states,
    sources_text, use_sources,
};
pub(crate) use runs::{RunId, begin, begin_block, end, end_block, has_cell_here, is_in_cell, mark};
pub(crate) use segments::{MAX_BLOCKS, look_for_segments, too_many};
pub(crate) use selection::Selection;

pub(crate) use storing::{
    archive, children, close_store, hurry_store, keep_in, store_state, store_trouble,
    wait_for_store,
};

use crate::recording::oom::observer;
use gpumem_base::gil;
use gpumem_base::locks::lock_attached;
use gpumem_objects::look;
pub(crate) use traced::{run_as_traced, traceable, traced};

use crate::recording::recorder::{Recorder, SourceText};
use gpumem_machine::processes::children::ProcessId;
use gpumem_machine::sampler::{Interval, Sampler};
use gpumem_machine::sources::PATIENCE_OF_A_START;
use holder_search::{Late, Unseen, is_late};
use inside::OngoingRun;
use reading::with_sources;
use segments::Spent;

/// Held for pure Rust only: Python code that ran under it, a signal handler or a
/// finaliser, could come back here and wait for itself.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// A run is open: what a mark asks first, without a lock.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// A block outside of every recorded cell is recorded, too.
static RECORDS_BLOCKS: AtomicBool = AtomicBool::new(true);

/// Whether holders are searched after such a block.
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
    ooms_before: HashMap<RunIdx, observer::OomMark>,
    /// Judges after each run that has something to say.
    incremental: RunAnalyzer,
    /// The findings that a line has shown.
    shown: ShownFindings,
    /// Which storages were there at the last look for holders.
    inventory: Option<Arc<Inventory>>,
    /// The variables that held much of a device then.
    promised: Vec<promises::Promised>,
    /// A look whose answer is still to come.
    late: Option<Late>,
    /// The latest run, if there was no time for its look, until another cell has changed the heap.
    unseen: Option<Unseen>,
    /// What looks have found in the run that goes on.
    inside: OngoingRun,
    /// What looking where memory lies took so far.
    spent: Spent,
    /// The run that began each living process that this one began; `None` of those that no recorded run did.
    begun: HashMap<ProcessId, Option<RunIdx>>,
}

pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// A block that begins now is recorded: what it asks first, without a lock.
pub(crate) fn records_blocks() -> bool {
    is_running() || (RECORDS_BLOCKS.load(Ordering::Relaxed) && !is_disabled())
}

/// Everything of gpumem is off, by the environment's word.
#[pyfunction(name = "_is_disabled")]
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

pub(crate) fn look_after_blocks(yes: bool) {
    LOOKS_AFTER_BLOCKS.store(yes, Ordering::Relaxed);
}

pub(crate) fn keep_source_text(py: Python<'_>, kept: SourceText) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.keep_source_text(kept))
}

pub(crate) fn judge_by(py: Python<'_>, rules: Rules) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.judge_by(rules))
}

/// Names and paths whose growth the user means.
#[pyfunction(name = "_expected")]
pub(crate) fn expected(py: Python<'_>) -> PyResult<Vec<String>> {
    with_recorder(py, |recorder| {
        recorder.recording().header().expected.clone()
    })
}

/// Sets them from now on.
#[pyfunction(name = "_expect")]
pub(crate) fn expect(py: Python<'_>, expected: Vec<String>) -> PyResult<()> {
    with_recorder(py, |recorder| recorder.expect(expected))
}

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
    let old = lock_attached(py, &SESSION).replace(session);
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
    if let Some(session) = lock_attached(py, &SESSION).as_mut() {
        return Ok(body(session));
    }
    let fresh = Session::new(py, SourceText::default())?;
    Ok(body(lock_attached(py, &SESSION).get_or_insert(fresh)))
}

impl Session {
    fn new(py: Python<'_>, source_text: SourceText) -> PyResult<Self> {
        static N_SESSIONS: AtomicU32 = AtomicU32::new(0);
        let mut recorder = Recorder::new(header(py)?, source_text);
        if !gil::is_there() {
            recorder.lacks(format!(
                "holders are not searched, and loops are not counted: {}",
                gil::NONE
            ));
        }
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
            shown: ShownFindings::default(),
            inventory: None,
            promised: Vec::new(),
            late: None,
            unseen: None,
            inside: OngoingRun::default(),
            spent: Spent::default(),
            begun: HashMap::new(),
        })
    }
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
