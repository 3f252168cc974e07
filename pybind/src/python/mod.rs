//! The functions and classes of `gpumem._gpumem` that work on recordings and on files of other programs.
//!
//! Knows no events of a shell.

mod allocation_lines;
pub(crate) mod api;
pub(crate) mod arrow;
pub(crate) mod blocks;
pub(crate) mod cells;
pub(crate) mod children;
pub(crate) mod classic;
pub(crate) mod footprint;
pub(crate) mod gpu_processes;
pub(crate) mod growth;
pub(crate) mod holders;
pub(crate) mod levels;
pub(crate) mod marks;
pub(crate) mod nsight;
pub(crate) mod opened;
pub(crate) mod other_file;
pub(crate) mod outlived;
pub(crate) mod ranks;
pub(crate) mod rules;
pub(crate) mod stored;
pub(crate) mod torch_snapshot;
pub(crate) mod torch_trace;
pub(crate) mod workers;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Maps the items with `one` into a Python list.
fn list<'py, T>(
    py: Python<'py>,
    items: &[T],
    one: fn(Python<'py>, &T) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyList>> {
    let dicts: PyResult<Vec<_>> = items.iter().map(|item| one(py, item)).collect();
    PyList::new(py, dicts?)
}
