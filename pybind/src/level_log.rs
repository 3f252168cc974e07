//! Logs of memory levels, for Python.

use std::path::Path;

use gpumem_core::json::level_log_json;
use gpumem_core::read::level_log::LevelLog as Log;
use gpumem_core::read::{nvidia_smi, stormlog};
use gpumem_core::report;
use gpumem_core::wording::count;
use pyo3::prelude::*;

use crate::api::raised;

/// A log of memory levels over time: of nvidia-smi or stormlog.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct LevelLog {
    log: Log,
}

#[pymethods]
impl LevelLog {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "a log of memory levels";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::level_log(&self.log, width)
    }

    /// Everything as JSON: sizes are bytes.
    fn to_json(&self) -> String {
        level_log_json(&self.log)
    }

    fn __repr__(&self) -> String {
        let devices = count(self.log.devices.len(), "device");
        let readings = count(self.log.n_readings, "reading");
        format!("<LevelLog {}: {devices}, {readings}>", self.log.title)
    }
}

impl LevelLog {
    pub(crate) fn of_nvidia_smi(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Self> {
        let read = py.detach(|| nvidia_smi::read(bytes));
        let read = read.map_err(|error| (error.offset, error.to_string()));
        Self::of(py, path, read)
    }

    pub(crate) fn of_stormlog(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Self> {
        let read = py.detach(|| stormlog::read(bytes));
        let read = read.map_err(|error| (error.offset, error.to_string()));
        Self::of(py, path, read)
    }

    fn of(py: Python<'_>, path: &Path, read: Result<Log, (usize, String)>) -> PyResult<Self> {
        match read {
            Ok(log) => Ok(Self { log }),
            Err((offset, words)) => {
                let message = format!("{}: {words}", path.display());
                Err(raised(py, &message, offset))
            }
        }
    }
}
