//! What a file holds, for Python.

use std::path::PathBuf;

use gpumem_core::read::file_kind::FileKind;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::api::{load_bytes, read_file};
use crate::torch_snapshot;

/// Reads a file of any kind that gpumem knows; its content tells which.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let (path, bytes) = read_file(py, path)?;
    match FileKind::of(&bytes) {
        FileKind::Pickle => torch_snapshot::read(py, &path, &bytes)?.into_py_any(py),
        _ => load_bytes(py, &path, &bytes)?.into_py_any(py),
    }
}
