//! Memory snapshots of `PyTorch`, for Python.

use std::path::Path;

use gpumem_core::json::{torch_change_json, torch_snapshot_json};
use gpumem_core::read::cell_files::CellFiles;
use gpumem_core::read::torch_snapshot::{SnapshotChange, Summary, summary_in};
use gpumem_core::report;
use pyo3::prelude::*;

use crate::api::raised;
use crate::cells::cells;

/// A memory snapshot of `PyTorch`: who holds what on each device, and who did at the peak.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct TorchSnapshot {
    summary: Summary,
    cells: CellFiles,
}

#[pymethods]
impl TorchSnapshot {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "a memory snapshot of PyTorch";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::torch_snapshot(&self.summary, width)
    }

    /// Everything as JSON: sizes are bytes.
    fn to_json(&self) -> String {
        torch_snapshot_json(&self.summary)
    }

    /// What changed since an earlier snapshot of the same program, by stack and by holder.
    fn compare(&self, before: &Self) -> TorchChange {
        TorchChange {
            change: SnapshotChange::between(&before.summary, &self.summary),
        }
    }

    /// The names of cells, for the page.
    fn _cells(&self) -> String {
        self.cells.to_text()
    }

    fn __repr__(&self) -> String {
        let devices = self.summary.devices.iter();
        let devices: Vec<_> = devices
            .map(|device| format!("{}: {} allocated", device.device, device.allocated))
            .collect();
        format!("<TorchSnapshot {}>", devices.join(", "))
    }
}

/// Two memory snapshots of `PyTorch` compared.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct TorchChange {
    change: SnapshotChange,
}

#[pymethods]
impl TorchChange {
    /// What messages call it.
    #[classattr]
    const _KIND: &'static str = "a comparison of memory snapshots";

    /// The levels before and after, and which stacks and holders grew or shrank; lines are at most `width`
    /// columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::torch_change(&self.change, width)
    }

    /// Everything as JSON: sizes are bytes, before and after.
    fn to_json(&self) -> String {
        torch_change_json(&self.change)
    }

    fn __repr__(&self) -> String {
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
) -> PyResult<TorchSnapshot> {
    let cells = cells(py, notebook)?;
    match py.detach(|| summary_in(bytes, &cells)) {
        Ok(summary) => Ok(TorchSnapshot { summary, cells }),
        Err(error) => {
            let message = format!("{}: {error}", path.display());
            Err(raised(py, &message, error.offset))
        }
    }
}
