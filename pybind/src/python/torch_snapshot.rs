//! Memory snapshots of `PyTorch`, for Python.

use gpumem_readers::torch_snapshot::{SnapshotChange, Summary};
use pyo3::prelude::*;

use crate::python::other_file::{OtherFile, TorchSnapshot, object};

#[pymethods]
impl TorchSnapshot {
    /// What changed since an earlier snapshot of the same program, by stack and by holder.
    fn compare(slf: &Bound<'_, Self>, before: &Bound<'_, Self>) -> PyResult<Py<TorchChange>> {
        let [before, after] = [before, slf].map(|it| it.as_super().get());
        let between =
            || SnapshotChange::between(before.content::<Summary>(), after.content::<Summary>());
        let change = slf.py().detach(between);
        object(slf.py(), change, TorchChange)
    }
}

/// Two memory snapshots of `PyTorch` compared.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct TorchChange;
