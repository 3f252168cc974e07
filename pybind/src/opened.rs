//! What a file holds, for Python.

use std::path::PathBuf;

use gpumem_core::read::file_kind::FileKind;
use gpumem_core::read::memory_timeline::is_picture;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::api::{load_bytes, read_file};
use crate::{torch_snapshot, torch_trace};

/// Reads a file of any kind that gpumem knows; its content tells which. A folder holds the traces of
/// several workers.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    if path.is_dir() {
        return torch_trace::read_folder(py, &path)?.into_py_any(py);
    }
    let (path, bytes) = read_file(py, path)?;
    match FileKind::of(&bytes) {
        FileKind::Pickle => torch_snapshot::read(py, &path, &bytes)?.into_py_any(py),
        FileKind::Json | FileKind::Gzip => torch_trace::read(py, &path, &bytes),
        FileKind::Html if is_picture(&bytes) => Err(torch_trace::refuse_picture(py, &path)),
        _ => load_bytes(py, &path, &bytes)?.into_py_any(py),
    }
}
