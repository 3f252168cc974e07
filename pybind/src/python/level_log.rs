//! Logs of memory levels, for Python.

use std::path::Path;

use gpumem_explorer as explorer;
use gpumem_explorer::json::level_log_json;
use gpumem_model::units::count;
use gpumem_readers::level_log::LevelLog as Log;
use gpumem_readers::{nvidia_smi, stormlog};
use pyo3::prelude::*;

use crate::python::other_file::{Content, OtherFile, object, refused};

/// A log of memory levels over time: of nvidia-smi or stormlog.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct LevelLog;

impl Content for Log {
    fn kind(&self) -> &'static str {
        "a log of memory levels"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::level_log(self, width)
    }

    fn json(&self) -> String {
        level_log_json(self)
    }

    fn repr(&self) -> String {
        let devices = count(self.devices.len(), "device");
        let readings = count(self.n_readings, "reading");
        format!("<LevelLog {}: {devices}, {readings}>", self.title)
    }
}

pub(crate) fn of_nvidia_smi(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Py<LevelLog>> {
    let read = py.detach(|| nvidia_smi::read(bytes));
    let log = read.map_err(|error| refused(py, path, error.offset, error))?;
    object(py, log, |_| LevelLog)
}

pub(crate) fn of_stormlog(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Py<LevelLog>> {
    let read = py.detach(|| stormlog::read(bytes));
    let log = read.map_err(|error| refused(py, path, error.offset, error))?;
    object(py, log, |_| LevelLog)
}
