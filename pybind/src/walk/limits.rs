//! Where a walk stops.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

/// What [`Limits::at_a_prompt`] leaves, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(250);

/// How far a walk goes at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    pub(crate) n_nodes: usize,
}

impl Limits {
    /// A cell has ended or failed: its user can wait for a moment, but not for long.
    pub(crate) fn at_a_prompt() -> Self {
        Self {
            time: Duration::from_millis(PATIENCE.load(Ordering::Relaxed)),
            n_nodes: 5_000_000,
        }
    }
}

/// How long a look may take at the end of a cell: tests of what it finds run on slow machines, too.
#[pyfunction]
pub(crate) fn _look_for(milliseconds: u64) {
    PATIENCE.store(milliseconds, Ordering::Relaxed);
}
