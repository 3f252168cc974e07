//! Logs of memory levels, for Python.

use std::path::Path;

use gpumem_core::json::level_log_json;
use gpumem_core::read::level_log::LevelLog as Log;
use gpumem_core::read::nvidia_smi;
use gpumem_core::report;
use pyo3::prelude::*;

use crate::api::raised;

/// A log of memory levels over time, as `nvidia-smi` writes them.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct LevelLog {
    log: Log,
}

#[pymethods]
impl LevelLog {
    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::level_log(&self.log, width)
    }

    /// Everything as JSON: sizes are bytes.
    fn to_json(&self) -> String {
        level_log_json(&self.log)
    }

    /// What messages call such a file.
    #[getter]
    fn _what(&self) -> String {
        format!("an {}", self.log.title)
    }

    fn __repr__(&self) -> String {
        let (n_devices, n_readings) = (self.log.devices.len(), self.log.n_readings);
        format!(
            "<LevelLog {}: {n_devices} devices, {n_readings} readings>",
            self.log.title
        )
    }
}

impl LevelLog {
    pub(crate) fn of_nvidia_smi(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Self> {
        match py.detach(|| nvidia_smi::read(bytes)) {
            Ok(log) => Ok(Self { log }),
            Err(error) => {
                let message = format!("{}: {error}", path.display());
                Err(raised(py, message, error.offset))
            }
        }
    }
}
