//! Traces and memory timelines of PyTorch's profiler, for Python.

use std::path::{Path, PathBuf};

use gpumem_core::json::{memory_timeline_json, torch_trace_json, torch_traces_json};
use gpumem_core::read::cell_files::CellFiles;
use gpumem_core::read::chrome_trace::{GroupBy, TraceSummary, summary_in};
use gpumem_core::read::json_file::{JsonError, head};
use gpumem_core::read::memory_timeline::{self, is_timeline, timeline};
use gpumem_core::report;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::api::{raised, read_file};
use crate::cells::cells;

/// A Chrome trace of PyTorch's profiler, or those of several workers.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct TorchTrace {
    /// By file name; one for a single file.
    workers: Vec<(String, TraceSummary)>,
    cells: CellFiles,
}

#[pymethods]
impl TorchTrace {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "a trace of PyTorch's profiler";

    /// The report as text; lines are at most `width` columns long. Operators are grouped by `"name"`,
    /// `"shapes"`, `"module"` or `"function"`.
    #[pyo3(signature = (width = 100, by = "name"))]
    fn text(&self, width: usize, by: &str) -> PyResult<String> {
        let by = match by {
            "name" => GroupBy::Name,
            "shapes" => GroupBy::Shapes,
            "module" => GroupBy::Module,
            "function" => GroupBy::Function,
            other => {
                let message =
                    format!("by is 'name', 'shapes', 'module' or 'function', not {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(report::torch_traces(&self.workers, by, width))
    }

    /// Everything as JSON: sizes are bytes, times are nanoseconds.
    fn to_json(&self) -> String {
        match &*self.workers {
            [(_, summary)] => torch_trace_json(summary),
            workers => torch_traces_json(workers),
        }
    }

    /// File name and figures of each worker, for the page.
    fn _workers(&self) -> Vec<(&str, String)> {
        let workers = self.workers.iter();
        let figures = |summary| report::torch_trace_worker(summary).join(" · ");
        workers.map(|(name, it)| (&**name, figures(it))).collect()
    }

    /// The names of cells, for the page.
    fn _cells(&self) -> String {
        self.cells.to_text()
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.workers.iter().map(|(name, _)| &**name).collect();
        format!("<TorchTrace {}>", names.join(", "))
    }
}

/// Bytes by category over time, as PyTorch's `export_memory_timeline` writes them.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct MemoryTimeline {
    timeline: memory_timeline::MemoryTimeline,
}

#[pymethods]
impl MemoryTimeline {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "a memory timeline of PyTorch";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::memory_timeline(&self.timeline, width)
    }

    /// Everything as JSON: sizes are bytes, times are nanoseconds.
    fn to_json(&self) -> String {
        memory_timeline_json(&self.timeline)
    }

    fn __repr__(&self) -> String {
        format!("<MemoryTimeline with {} rows>", self.timeline.n_rows)
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
        let timeline = py
            .detach(|| timeline(bytes))
            .map_err(|error| refused(py, path, &error))?;
        return MemoryTimeline { timeline }.into_py_any(py);
    }
    let cells = cells(py, notebook)?;
    let workers = vec![worker(py, path, bytes, &cells)?];
    TorchTrace { workers, cells }.into_py_any(py)
}

/// Reads the traces in a folder, one for each worker.
pub(crate) fn read_folder(
    py: Python<'_>,
    folder: &Path,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<TorchTrace> {
    let cells = cells(py, notebook)?;
    let mut workers = Vec::new();
    for path in traces_in(folder)? {
        let (path, bytes) = read_file(py, path)?;
        workers.push(worker(py, &path, &bytes, &cells)?);
    }
    if workers.is_empty() {
        let message = format!(
            "{}: no trace in this folder: their names end in .json or .json.gz",
            folder.display()
        );
        return Err(raised(py, &message, 0));
    }
    workers.sort_by_key(|(_, summary)| summary.worker.rank);
    Ok(TorchTrace { workers, cells })
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
        Err(error) => Err(refused(py, path, &error)),
    }
}

fn refused(py: Python<'_>, path: &Path, error: &JsonError) -> PyErr {
    raised(py, &format!("{}: {error}", path.display()), error.offset)
}

/// A page of `export_memory_timeline` has nothing to read.
pub(crate) fn refuse_picture(py: Python<'_>, path: &Path) -> PyErr {
    let message = format!(
        "{}: byte 0: a page of PyTorch's export_memory_timeline, which holds a picture and no figures\n\
         hint: export to a name that ends in .json or .raw.json.gz",
        path.display()
    );
    raised(py, &message, 0)
}
