//! Traces of PyTorch's profiler, for Python.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpumem_explorer::formats::{Workers, torch_trace_worker, torch_traces};
use gpumem_readers::chrome_trace::{GroupBy, summary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::python::api::read_file;
use crate::python::cells::cells;
use crate::python::other_file::{
    FileBytes, PageFile, PageSource, TorchTrace, file_object, refused,
};

#[pymethods]
impl TorchTrace {
    /// The report as text; lines are at most `width` columns long. Operators are grouped by `"name"`,
    /// `"shapes"`, `"module"` or `"function"`.
    #[pyo3(signature = (width = 100, by = "name"))]
    fn text(slf: &Bound<'_, Self>, width: usize, by: &str) -> PyResult<String> {
        let by = GroupBy::from_name(by).ok_or_else(|| {
            let names = "'name', 'shapes', 'module' or 'function'";
            PyValueError::new_err(format!("by is {names}, not {by:?}"))
        })?;
        let workers = slf.as_super().get().content::<Workers>();
        Ok(torch_traces(workers, by, width))
    }
}

/// Reads the traces in a folder, one for each worker.
pub(crate) fn read_folder(
    py: Python<'_>,
    folder: &Path,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let cells = cells(py, notebook)?;
    let mut read = Vec::new();
    for path in traces_in(folder)? {
        let (path, bytes) = read_file(py, path)?;
        let summary = py.detach(|| summary(&bytes, &cells));
        let summary = summary.map_err(|error| refused(py, &path, error.offset, error))?;
        read.push((path, summary));
    }
    if read.is_empty() {
        let message = "no trace in this folder: their names end in .json or .json.gz";
        return Err(refused(py, folder, 0, message));
    }
    read.sort_by_key(|(_, summary)| summary.worker.rank);
    let (mut workers, mut files) = (Workers::new(), Vec::new());
    for (path, summary) in read {
        let name = file_name(&path);
        let figures = torch_trace_worker(&summary).join(" · ");
        files.push(PageFile {
            label: format!("{name} · {figures}"),
            name: name.clone(),
            bytes: FileBytes::In(path),
        });
        workers.push((name, summary));
    }
    file_object(py, Arc::new(workers), PageSource { files, cells })
}

/// In the order of their names.
fn traces_in(folder: &Path) -> PyResult<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && (name.ends_with(".json") || name.ends_with(".json.gz")) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A file's name without its folder.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
