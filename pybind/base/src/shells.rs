//! The shells of `IPython` in this process: the user's names are looked up in them.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;

use crate::locks::lock_attached;
use crate::modules::imported;

static LOADED: Mutex<Vec<LoadedShell>> = Mutex::new(Vec::new());

/// A shell into which gpumem is loaded.
pub struct LoadedShell {
    /// `IPython`'s shell.
    pub shell: Py<PyAny>,
    /// What gpumem keeps for this shell.
    pub extension: Py<PyAny>,
}

/// Every shell of this process: where gpumem is loaded, else the one that runs, if any.
pub fn shells(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
    let of_one = |loaded: &LoadedShell| loaded.shell.bind(py).clone();
    let mut shells: Vec<_> = lock_attached(py, &LOADED).iter().map(of_one).collect();
    if shells.is_empty() {
        let module = imported(py, "IPython.core.getipython").ok().flatten();
        let running = module.and_then(|module| module.call_method0("get_ipython").ok());
        shells.extend(running.filter(|shell| !shell.is_none()));
    }
    shells
}

/// Those into which gpumem is loaded, in that order.
pub fn loaded(py: Python<'_>) -> MutexGuard<'static, Vec<LoadedShell>> {
    lock_attached(py, &LOADED)
}
