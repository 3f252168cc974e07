//! Exports of Nsight Systems, for Python.

mod database;

use std::path::Path;

use gpumem_core::json::nsight_json;
use gpumem_core::read::nsight::NsightExport as Export;
use gpumem_core::report;
use gpumem_core::wording::count;
use pyo3::prelude::*;

use crate::api::raised;

/// An export of Nsight Systems: memory levels, failed calls, and what NVTX ranges kept.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct NsightExport {
    export: Export,
}

#[pymethods]
impl NsightExport {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "an export of Nsight Systems";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::nsight_export(&self.export, width)
    }

    /// Everything as JSON: sizes are bytes.
    fn to_json(&self) -> String {
        nsight_json(&self.export)
    }

    fn __repr__(&self) -> String {
        let failed = count(self.export.failed.len(), "failed call");
        let ranges = count(self.export.n_ranges, "range");
        format!("<NsightExport: {failed}, {ranges}>")
    }
}

impl NsightExport {
    /// Reads an SQLite file in place: no file is made beside it.
    pub(crate) fn of_sqlite(py: Python<'_>, path: &Path) -> PyResult<Self> {
        match py.detach(|| database::read(path)) {
            Ok(capture) => {
                let export = py.detach(|| capture.summed_up());
                Ok(Self { export })
            }
            Err(words) => Err(raised(py, &format!("{}: {words}", path.display()), 0)),
        }
    }
}

/// The error for a report that was not exported.
pub(crate) fn not_exported(py: Python<'_>, path: &Path) -> PyErr {
    let name = path.display();
    let message = format!(
        "{name}: a report of Nsight Systems, which only its own tools read\nhint: `nsys export --type sqlite {name}` \
         makes what gpumem reads"
    );
    raised(py, &message, 0)
}
