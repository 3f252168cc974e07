//! Whether this build of Python has a GIL, without which no object of the user's stands still.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Why the heap is not read.
pub const NONE: &str =
    "this Python is free-threaded, and gpumem reads the heap only in a build with the GIL";

static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Finds out when the module is loaded. A free-threaded build counts as one even if it runs with the GIL.
pub fn resolve(py: Python<'_>) -> PyResult<bool> {
    let sysconfig = py.import("sysconfig")?;
    let is_disabled = sysconfig.call_method1("get_config_var", ("Py_GIL_DISABLED",))?;
    let is_there = !is_disabled.is_truthy()?;
    IS_THERE.store(is_there, Ordering::Relaxed);
    Ok(is_there)
}

/// Whether this build of Python has a GIL.
pub fn is_there() -> bool {
    IS_THERE.load(Ordering::Relaxed)
}

/// Why no look at the heap is taken in this Python; `None` if looks are taken.
#[pyfunction(name = "_why_no_looks")]
pub fn why_no_looks() -> Option<&'static str> {
    (!is_there()).then_some(NONE)
}
