//! The listener for the end of a recorded cell, or of a block outside every run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::base::guard;
use crate::recording::session;
use gpumem_model::recording::RunIdx;

/// True if a listener is set; checked without the lock.
static IS_TOLD: AtomicBool = AtomicBool::new(false);
static LISTENER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Calls `listener(source, cell_id, label, execution_count)` after each recorded cell, and after each block
/// outside of one, when it is no longer part of the run. `None` ends that.
#[pyfunction]
#[pyo3(name = "_on_run_end")]
pub(crate) fn on_run_end(py: Python<'_>, listener: Option<Py<PyAny>>) {
    IS_TOLD.store(listener.is_some(), Ordering::Relaxed);
    let mut place = LISTENER
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner);
    let old = std::mem::replace(&mut *place, listener);
    drop(place);
    drop(old);
}

/// An outermost run has ended. A failure of the listener is logged once.
pub(crate) fn tell(py: Python<'_>, run: RunIdx) {
    if !IS_TOLD.load(Ordering::Relaxed) {
        return;
    }
    let told = guard::caught(py, || {
        let listener = {
            let place = LISTENER
                .lock_py_attached(py)
                .unwrap_or_else(PoisonError::into_inner);
            place.as_ref().map(|listener| listener.clone_ref(py))
        };
        let (Some(listener), Some(title)) = (listener, session::title(py, run)?) else {
            return Ok(());
        };
        listener.call1(py, title).map(drop)
    });
    if let Err(failure) = told {
        guard::log_once(py, &format!("dask callback failed: {failure}"));
    }
}
