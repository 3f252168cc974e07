//! A strand of execution: a thread, or an asyncio task in it.
//!
//! Cells and blocks of one strand come one after the other or are nested. Those of two threads run at the
//! same time; two tasks of one thread take turns where they await.

use std::thread::{self, ThreadId};

use pyo3::intern;
use pyo3::prelude::*;

use crate::modules::imported;

/// A line of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strand {
    /// The thread in which it runs.
    pub thread: ThreadId,
    /// The address of the task; 0 outside of any.
    task: usize,
}

impl Strand {
    /// The caller's strand.
    pub fn current(py: Python<'_>) -> Self {
        Self {
            thread: thread::current().id(),
            task: current_task(py).map_or(0, |task| task.as_ptr() as usize),
        }
    }

    /// Both are of one thread, and not the same.
    pub fn takes_turns_with(self, other: Self) -> bool {
        self.thread == other.thread && self.task != other.task
    }
}

/// The task of asyncio that runs in this thread.
pub fn current_task(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    let asyncio = imported(py, "asyncio").ok()??;
    let running = asyncio
        .call_method0(intern!(py, "_get_running_loop"))
        .ok()?;
    if running.is_none() {
        return None;
    }
    let task = asyncio.call_method1(intern!(py, "current_task"), (running,));
    task.ok().filter(|task| !task.is_none())
}
