//! Device memory profiles, for Python.

use std::path::Path;

use gpumem_core::json::device_profile_json;
use gpumem_core::read::device_profile::{DeviceProfile as Profile, read};
use gpumem_core::report;
use pyo3::prelude::*;

use crate::api::raised;

/// A device memory profile of JAX: what is alive on each device, and which lines allocated it.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct DeviceProfile {
    profile: Profile,
}

#[pymethods]
impl DeviceProfile {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "a device memory profile";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::device_profile(&self.profile, width)
    }

    /// Everything as JSON: sizes are bytes.
    fn to_json(&self) -> String {
        device_profile_json(&self.profile)
    }

    fn __repr__(&self) -> String {
        format!("<DeviceProfile {}>", self.profile.bytes)
    }
}

impl DeviceProfile {
    pub(crate) fn of(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Self> {
        match py.detach(|| read(bytes)) {
            Ok(profile) => Ok(Self { profile }),
            Err(error) => {
                let message = format!("{}: {error}", path.display());
                Err(raised(py, &message, error.offset))
            }
        }
    }
}
