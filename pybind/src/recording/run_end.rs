//! The listener for the end of a recorded cell, or of a block outside every run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::recording::session;
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_model::recording::RunIdx;

/// True if a listener is set; checked without the lock.
static IS_TOLD: AtomicBool = AtomicBool::new(false);
static LISTENER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Calls `listener(source, cell_id, label, execution_count)` after each recorded cell, and after each block
/// outside of one, when it is no longer part of the run. `None` ends that.
#[pyfunction(name = "_on_run_end")]
pub(crate) fn on_run_end(py: Python<'_>, listener: Option<Py<PyAny>>) {
    IS_TOLD.store(listener.is_some(), Ordering::Relaxed);
    let mut place = lock_attached(py, &LISTENER);
    let old = std::mem::replace(&mut *place, listener);
    drop(place);
    drop(old);
}

/// An outermost run has ended. A failure of the listener is logged once.
pub(crate) fn tell(py: Python<'_>, run: RunIdx) {
    if !IS_TOLD.load(Ordering::Relaxed) {
        return;
    }
    guard::logged(py, "dask callback failed", || {
        let listener = lock_attached(py, &LISTENER)
            .as_ref()
            .map(|it| it.clone_ref(py));
        let (Some(listener), Some(title)) = (listener, session::title(py, run)?) else {
            return Ok(());
        };
        listener.call1(py, title).map(drop)
    });
}
