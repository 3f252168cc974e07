//! Exports of Nsight Systems, for Python.

mod database;

use std::path::Path;

use gpumem_explorer as explorer;
use gpumem_explorer::json::nsight_json;
use gpumem_model::units::count;
use gpumem_readers::nsight;
use pyo3::prelude::*;

use crate::python::other_file::{Content, OtherFile, object, refused};

/// An export of Nsight Systems: memory levels, failed calls, and what NVTX ranges kept.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct NsightExport;

impl Content for nsight::NsightExport {
    fn kind(&self) -> &'static str {
        "an export of Nsight Systems"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::nsight_export(self, width)
    }

    fn json(&self) -> String {
        nsight_json(self)
    }

    fn repr(&self) -> String {
        let failed = count(self.failed.len(), "failed call");
        let ranges = count(self.n_ranges, "range");
        format!("<NsightExport: {failed}, {ranges}>")
    }
}

/// Reads an SQLite file in place: no file is made beside it.
pub(crate) fn read(py: Python<'_>, path: &Path) -> PyResult<Py<NsightExport>> {
    let read = py.detach(|| database::read(path).map(nsight::Capture::summed_up));
    let export = read.map_err(|words| refused(py, path, 0, words))?;
    object(py, export, |_| NsightExport)
}

/// The error for a report that was not exported.
pub(crate) fn not_exported(py: Python<'_>, path: &Path) -> PyErr {
    let name = path.display();
    let message = format!(
        "a report of Nsight Systems, which only its own tools read\nhint: `nsys export --type sqlite {name}` makes what \
         gpumem reads"
    );
    refused(py, path, 0, message)
}
