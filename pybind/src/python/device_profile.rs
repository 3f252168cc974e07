//! Device memory profiles, for Python.

use std::path::Path;

use gpumem_explorer as explorer;
use gpumem_explorer::json::device_profile_json;
use gpumem_readers::device_profile;
use pyo3::prelude::*;

use crate::python::other_file::{Content, OtherFile, object, refused};

/// A device memory profile of JAX: what is alive on each device, and which lines allocated it.
#[pyclass(frozen, extends = OtherFile, module = "gpumem._gpumem")]
pub(crate) struct DeviceProfile;

impl Content for device_profile::DeviceProfile {
    fn kind(&self) -> &'static str {
        "a device memory profile"
    }

    fn text(&self, width: usize) -> String {
        explorer::report::device_profile(self, width)
    }

    fn json(&self) -> String {
        device_profile_json(self)
    }

    fn repr(&self) -> String {
        format!("<DeviceProfile {}>", self.bytes)
    }
}

pub(crate) fn read(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<Py<DeviceProfile>> {
    let read = py.detach(|| device_profile::read(bytes));
    let profile = read.map_err(|error| refused(py, path, error.offset, error))?;
    object(py, profile, |_| DeviceProfile)
}
