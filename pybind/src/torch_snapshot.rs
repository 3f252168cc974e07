//! Memory snapshots of `PyTorch`, for Python.

use std::path::Path;

use gpumem_core::json::torch_snapshot_json;
use gpumem_core::read::torch_snapshot::{Summary, summary};
use gpumem_core::report;
use pyo3::prelude::*;

use crate::api::raised;

/// A memory snapshot of `PyTorch`: who holds what on each device, and who did at the peak.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct TorchSnapshot {
    summary: Summary,
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

    fn __repr__(&self) -> String {
        let devices = self.summary.devices.iter();
        let devices: Vec<_> = devices
            .map(|device| format!("{}: {} allocated", device.device, device.allocated))
            .collect();
        format!("<TorchSnapshot {}>", devices.join(", "))
    }
}

/// Reads a file of `torch.cuda.memory._dump_snapshot` without unpickling it.
pub(crate) fn read(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<TorchSnapshot> {
    match py.detach(|| summary(bytes)) {
        Ok(summary) => Ok(TorchSnapshot { summary }),
        Err(error) => {
            let message = format!("{}: {error}", path.display());
            Err(raised(py, message, error.offset))
        }
    }
}
