//! Memory snapshots of `PyTorch`, for Python.

use gpumem_readers::torch_snapshot::{SnapshotChange, TorchSnapshotSummary};
use pyo3::prelude::*;

use crate::python::other_file::{PyOtherFile, TorchSnapshot, object};

#[pymethods]
impl TorchSnapshot {
    /// What changed since an earlier snapshot of the same program, by stack and by holder.
    fn compare(slf: &Bound<'_, Self>, before: &Bound<'_, Self>) -> PyResult<Py<TorchChange>> {
        let [before, after] = [before, slf].map(|it| it.as_super().get());
        let between = || {
            SnapshotChange::between(
                before.content::<TorchSnapshotSummary>(),
                after.content::<TorchSnapshotSummary>(),
            )
        };
        let change = slf.py().detach(between);
        object(slf.py(), change, TorchChange)
    }
}

/// Two memory snapshots of `PyTorch` compared.
#[pyclass(frozen, extends = PyOtherFile, module = "gpumem._gpumem")]
pub(crate) struct TorchChange;
