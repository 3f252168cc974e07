//! Loops of a run are found and counted by themselves, from Python 3.12 on.
//!
//! - `watcher`: a thread that looks at a run once it has lasted for a while, and again and again.
//! - `stacks`: which code is running then. Code that runs in a loop is on the stack.
//! - `bytecode`: the loops of that code.
//! - `tool`: `sys.monitoring`, which calls `count` at each of their iterations from then on.
//! - `run_loops`: what is counted in the open run, and how its loops lie in each other.
//! - `count`: the counters; there levels are read as often as they may cost.
//!
//! The watcher's thread also triggers searches for holders during the run, and says below the cell
//! that it will fill the device.

mod bytecode;
mod count;
mod run_loops;
mod stacks;
mod tool;
mod watcher;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use gpumem_model::recording::LoopIdx;
use pyo3::prelude::*;

use crate::recording::session::{self, RunId};
pub(crate) use count::note_mark;
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_base::shells::shells;
use run_loops::{RunLoops, UnplacedCode};
use tool::Monitoring;
use watcher::Visited;

/// What the user's settings say.
static IS_ON: AtomicBool = AtomicBool::new(true);
static FORETELLS: AtomicBool = AtomicBool::new(true);

/// Says a line below the cell of a run that goes on.
type SayInside = fn(Python<'_>, RunId, &str) -> PyResult<()>;
static SAY_INSIDE: OnceLock<SayInside> = OnceLock::new();

/// Locked under the GIL. None of the user's code runs meanwhile, except for audit hooks.
static RUN_LOOPS: Mutex<Option<RunLoops>> = Mutex::new(None);

/// The run whose levels are read: its block's number, or 0.
static RUN: AtomicU64 = AtomicU64::new(NO_RUN);
const NO_RUN: u64 = u64::MAX;

/// Looks up what counting needs, once, and keeps who says what a run is heading for.
pub(crate) fn resolve(py: Python<'_>, say_inside: SayInside) -> PyResult<()> {
    SAY_INSIDE.get_or_init(|| say_inside);
    tool::resolve(py)
}

/// What `GpuMem.loops` and `GpuMem.foretell` say now.
#[pyfunction(name = "_count_loops")]
pub(crate) fn count_loops(yes: bool, foretells: bool) {
    IS_ON.store(yes, Ordering::Relaxed);
    FORETELLS.store(foretells, Ordering::Relaxed);
}

/// A run begins on this thread, during which holders may be searched. While one is watched, others go
/// on without.
pub(crate) fn begin(py: Python<'_>, run: RunId, has_looks: bool) {
    let Some(monitoring) = Monitoring::get(py).filter(|_| IS_ON.load(Ordering::Relaxed)) else {
        return;
    };
    if lock_attached(py, &RUN_LOOPS).is_some() {
        return;
    }
    let begun = guard::caught(py, || {
        let began = Instant::now();
        *lock_attached(py, &RUN_LOOPS) =
            Some(RunLoops::new(py, run, began, has_looks, monitoring)?);
        stop_at_exit(py)?;
        watcher::begin(began, visit)?;
        Ok(())
    });
    if let Err(failure) = begun {
        give_up(py, &failure);
    }
}

/// A run is over, or with `None` whichever is under way: nothing is counted any more.
pub(crate) fn end(py: Python<'_>, run: Option<RunId>) {
    let watched = lock_attached(py, &RUN_LOOPS).take_if(|it| run.is_none_or(|run| it.run == run));
    let Some(mut watched) = watched else {
        return;
    };
    watcher::end();
    RUN.store(NO_RUN, Ordering::Relaxed);
    let ended = guard::caught(py, || {
        watched.disarm(py)?;
        let unplaced = watched.unplaced();
        let placed = place(py, watched.run, unplaced)?;
        watched.take_places(placed);
        session::note_loops(py, watched.run, watched.news())
    });
    if let Err(failure) = ended {
        give_up(py, &failure);
    }
}

/// The thread's visit to the open run.
fn visit(py: Python<'_>) -> Visited {
    let began = Instant::now();
    count_running(py);
    let mut visited = Visited {
        took: began.elapsed(),
        is_looking: false,
    };
    let what = "could not search for holders during a run";
    guard::logged(py, what, || look_inside(py, &mut visited));
    visited
}

/// Who holds what the open run has taken so far, and what that foretells. Looks have a share of time of their
/// own; judging is part of the visit.
fn look_inside(py: Python<'_>, visited: &mut Visited) -> PyResult<()> {
    let watched = with_run_loops(py, None, |it| Ok((it.run, it.thread, it.has_looks)))?;
    let Some((run, thread, _)) = watched.filter(|(.., has_looks)| *has_looks) else {
        return Ok(());
    };
    visited.is_looking = session::look_inside(py, run, thread)?;
    if !FORETELLS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let began = Instant::now();
    let line = session::foretell(py, run)?;
    visited.took += began.elapsed();
    let say = SAY_INSIDE.get();
    line.zip(say)
        .map_or(Ok(()), |(line, say)| say(py, run, &line))
}

/// Counts the loops of the open run.
fn count_running(py: Python<'_>) {
    let looked = guard::caught(py, || {
        let stacks = stacks::stacks(py)?;
        let Some((run, unplaced)) = with_run_loops(py, None, |it| {
            it.arm(py, &stacks)?;
            if it.is_armed() {
                RUN.store(it.run.to_bits(), Ordering::Relaxed);
            }
            Ok((it.run, it.unplaced()))
        })?
        else {
            return Ok(());
        };
        let placed = place(py, run, unplaced)?;
        let news = with_run_loops(py, Some(run), |it| {
            it.take_places(placed);
            Ok(it.news())
        })?;
        news.map_or(Ok(()), |news| session::note_loops(py, run, news))
    });
    if let Err(failure) = looked {
        give_up(py, &failure);
    }
}

/// Looks at the open run now, so that a test need not wait.
#[pyfunction]
pub(crate) fn look_at_loops(py: Python<'_>) {
    visit(py);
}

/// An iteration of a loop has ended: its levels are read.
fn read(py: Python<'_>, idx: usize, n_iterations: u64) {
    let run = RUN.load(Ordering::Relaxed);
    if run == NO_RUN {
        return;
    }
    let Ok(idx) = u32::try_from(idx) else { return };
    let (run, idx) = (RunId::from_bits(run), LoopIdx(idx));
    let read = || session::read_in_loop(py, run, idx, n_iterations);
    if let Err(failure) = guard::caught(py, read) {
        RUN.store(NO_RUN, Ordering::Relaxed);
        guard::log_failure(py, "levels of loops are not read", &failure);
    }
}

/// Counts nothing any more in the open run.
fn give_up(py: Python<'_>, failure: &str) {
    RUN.store(NO_RUN, Ordering::Relaxed);
    watcher::end();
    let watched = lock_attached(py, &RUN_LOOPS).take();
    if let Some(mut watched) = watched {
        // What has failed may fail again.
        drop(guard::caught(py, || watched.disarm(py)));
    }
    guard::log_failure(py, "loops are not counted", failure);
}

/// Finds the cells of the code objects. This calls `IPython`, which is Python code.
fn place(py: Python<'_>, run: RunId, unplaced: Vec<UnplacedCode>) -> PyResult<Vec<UnplacedCode>> {
    if unplaced.is_empty() {
        return Ok(unplaced);
    }
    let Some((number, source)) = session::source_of(py, run)? else {
        return Ok(unplaced);
    };
    let mut placed = unplaced;
    for shell in shells(py) {
        let mut cells = crate::recording::trace::CompiledCells::new(&shell, number, &source)?;
        for code in &mut placed {
            cells.place(std::slice::from_mut(&mut code.frame))?;
        }
    }
    Ok(placed)
}

/// Hands out what is watched, if it is that run.
fn with_run_loops<T>(
    py: Python<'_>,
    run: Option<RunId>,
    body: impl FnOnce(&mut RunLoops) -> PyResult<T>,
) -> PyResult<Option<T>> {
    let mut watched = lock_attached(py, &RUN_LOOPS);
    let watched = watched.as_mut();
    let wanted = watched.filter(|it| run.is_none_or(|run| it.run == run));
    wanted.map(body).transpose()
}

/// When the process ends in order, nothing may wait for the GIL any more.
fn stop_at_exit(py: Python<'_>) -> PyResult<()> {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if IS_REGISTERED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let stop = wrap_pyfunction!(stop, py)?;
    py.import("atexit")?.call_method1("register", (stop,))?;
    Ok(())
}

#[pyfunction]
fn stop(py: Python<'_>) {
    if session::is_owner() {
        watcher::stop(py);
        end(py, None);
    }
}
