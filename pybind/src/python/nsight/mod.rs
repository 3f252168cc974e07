//! Exports of Nsight Systems, from their database.

mod database;

use std::path::Path;

use gpumem_readers::nsight::Capture;
use pyo3::prelude::*;

use crate::python::other_file::refused;

/// Reads an SQLite file in place: no file is made beside it.
pub(crate) fn read(py: Python<'_>, path: &Path) -> PyResult<Capture> {
    let read = py.detach(|| database::read(path));
    read.map_err(|words| refused(py, path, 0, words))
}
