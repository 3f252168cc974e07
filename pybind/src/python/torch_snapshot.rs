//! Memory snapshots of `PyTorch`, for Python.

use std::path::Path;
use std::sync::Arc;

use gpumem_explorer as explorer;
use gpumem_explorer::json::{torch_change_json, torch_snapshot_json};
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::torch_snapshot::{SnapshotChange, Summary, summary_in};
use pyo3::prelude::*;

use crate::python::cells::cells;
use crate::python::other_file::{Content, OtherFile, object, refused};

/// A memory snapshot of `PyTorch`: who holds what on each device, and who did at the peak.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct TorchSnapshot {
    summary: Arc<Summary>,
    cells: CellFiles,
}

impl Content for Summary {
    fn kind(&self) -> &'static str {
        "a memory snapshot of PyTorch"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::torch_snapshot(self, width)
    }

    fn json(&self) -> String {
        torch_snapshot_json(self)
    }

    fn repr(&self) -> String {
        let devices = self.devices.iter();
        let devices = devices.map(|it| format!("{}: {} allocated", it.device, it.allocated));
        let devices: Vec<_> = devices.collect();
        format!("<TorchSnapshot {}>", devices.join(", "))
    }

    fn page_title(&self) -> Option<&'static str> {
        Some("PyTorch memory snapshot")
    }
}

#[pymethods]
impl TorchSnapshot {
    /// What changed since an earlier snapshot of the same program, by stack and by holder.
    fn compare(&self, py: Python<'_>, before: &Self) -> PyResult<Py<TorchChange>> {
        let change = py.detach(|| SnapshotChange::between(&before.summary, &self.summary));
        object(py, change, |_| TorchChange)
    }

    /// The names of cells, for the page.
    fn _cells(&self) -> String {
        self.cells.to_text()
    }
}

/// Two memory snapshots of `PyTorch` compared.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct TorchChange;

impl Content for SnapshotChange {
    fn kind(&self) -> &'static str {
        "a comparison of memory snapshots"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::torch_change(self, width)
    }

    fn json(&self) -> String {
        torch_change_json(self)
    }

    fn repr(&self) -> String {
        self.text(100)
    }
}

/// Reads a file of `torch.cuda.memory._dump_snapshot` without unpickling it. Its cells are those of a notebook's
/// file, else those that were typed in this session.
pub(crate) fn read(
    py: Python<'_>,
    path: &Path,
    bytes: &[u8],
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<TorchSnapshot>> {
    let cells = cells(py, notebook)?;
    let read = py.detach(|| summary_in(bytes, &cells));
    let summary = read.map_err(|error| refused(py, path, error.offset, error))?;
    object(py, summary, |summary| TorchSnapshot { summary, cells })
}
