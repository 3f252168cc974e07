//! Traces and memory timelines of PyTorch's profiler, for Python.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpumem_explorer as explorer;
use gpumem_explorer::json::{memory_timeline_json, torch_trace_json, torch_traces_json};
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::chrome_trace::{GroupBy, TraceSummary, summary_in};
use gpumem_readers::json_file::head;
use gpumem_readers::memory_timeline::{self, is_timeline, timeline};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::python::api::read_file;
use crate::python::cells::cells;
use crate::python::other_file::{Content, OtherFile, object, refused};

/// By file name; one for a single file.
type Workers = Vec<(String, TraceSummary)>;

/// A Chrome trace of PyTorch's profiler, or those of several workers.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct TorchTrace {
    workers: Arc<Workers>,
    cells: CellFiles,
}

impl Content for Workers {
    fn kind(&self) -> &'static str {
        "a trace of PyTorch's profiler"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::torch_traces(self, GroupBy::Name, width)
    }

    fn json(&self) -> String {
        match &**self {
            [(_, summary)] => torch_trace_json(summary),
            workers => torch_traces_json(workers),
        }
    }

    fn repr(&self) -> String {
        let names: Vec<_> = self.iter().map(|(name, _)| &**name).collect();
        format!("<TorchTrace {}>", names.join(", "))
    }

    fn page_title(&self) -> Option<&'static str> {
        Some("PyTorch profiler trace")
    }
}

#[pymethods]
impl TorchTrace {
    /// The report as text; lines are at most `width` columns long. Operators are grouped by `"name"`,
    /// `"shapes"`, `"module"` or `"function"`.
    #[pyo3(signature = (width = 100, by = "name"))]
    fn text(&self, width: usize, by: &str) -> PyResult<String> {
        let by = GroupBy::from_name(by).ok_or_else(|| {
            let names = "'name', 'shapes', 'module' or 'function'";
            PyValueError::new_err(format!("by is {names}, not {by:?}"))
        })?;
        Ok(explorer::report::torch_traces(&self.workers, by, width))
    }

    /// File name and figures of each worker, for the page.
    fn _workers(&self) -> Vec<(&str, String)> {
        let workers = self.workers.iter();
        let figures = |summary| explorer::report::torch_trace_worker(summary).join(" · ");
        workers.map(|(name, it)| (&**name, figures(it))).collect()
    }

    /// The names of cells, for the page.
    fn _cells(&self) -> String {
        self.cells.to_text()
    }
}

/// Bytes by category over time, as PyTorch's `export_memory_timeline` writes them.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct MemoryTimeline;

impl Content for memory_timeline::MemoryTimeline {
    fn kind(&self) -> &'static str {
        "a memory timeline of PyTorch"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::memory_timeline(self, width)
    }

    fn json(&self) -> String {
        memory_timeline_json(self)
    }

    fn repr(&self) -> String {
        format!("<MemoryTimeline with {} rows>", self.n_rows)
    }
}

/// Reads a JSON file, packed or not: a trace or a memory timeline. A trace's cells are those of a notebook's file,
/// else those that were typed in this session.
pub(crate) fn read(
    py: Python<'_>,
    path: &Path,
    bytes: &[u8],
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    if is_timeline(&head(bytes)) {
        let read = py.detach(|| timeline(bytes));
        let timeline = read.map_err(|error| refused(py, path, error.offset, error))?;
        return object(py, timeline, |_| MemoryTimeline)?.into_py_any(py);
    }
    let cells = cells(py, notebook)?;
    let workers = vec![worker(py, path, bytes, &cells)?];
    object(py, workers, |workers| TorchTrace { workers, cells })?.into_py_any(py)
}

/// Reads the traces in a folder, one for each worker.
pub(crate) fn read_folder(
    py: Python<'_>,
    folder: &Path,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<TorchTrace>> {
    let cells = cells(py, notebook)?;
    let mut workers = Vec::new();
    for path in traces_in(folder)? {
        let (path, bytes) = read_file(py, path)?;
        workers.push(worker(py, &path, &bytes, &cells)?);
    }
    if workers.is_empty() {
        let message = "no trace in this folder: their names end in .json or .json.gz";
        return Err(refused(py, folder, 0, message));
    }
    workers.sort_by_key(|(_, summary)| summary.worker.rank);
    object(py, workers, |workers| TorchTrace { workers, cells })
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

fn worker(
    py: Python<'_>,
    path: &Path,
    bytes: &[u8],
    cells: &CellFiles,
) -> PyResult<(String, TraceSummary)> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match py.detach(|| summary_in(bytes, cells)) {
        Ok(summary) => Ok((name, summary)),
        Err(error) => Err(refused(py, path, error.offset, error)),
    }
}

/// A page of `export_memory_timeline` has nothing to read.
pub(crate) fn refuse_picture(py: Python<'_>, path: &Path) -> PyErr {
    let message = "byte 0: a page of PyTorch's export_memory_timeline, which holds a picture and no figures\n\
         hint: export to a name that ends in .json or .raw.json.gz";
    refused(py, path, 0, message)
}
