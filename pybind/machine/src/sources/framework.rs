//! What the framework sources have in common: they read what the user's own code
//! has imported and started, and never import or start anything.

use gpumem_model::recording::{AllocatorLevels, DeviceKey, DeviceKind, Level, Source, Unknown};
use gpumem_model::segments::Segments;
use gpumem_model::units::Bytes;
use pyo3::prelude::*;

use super::{Answer, SourceDevice, Unused};
pub(super) use gpumem_base::modules::imported;

/// A source that is read under the GIL. An error is the source's failure; the registry says so.
pub(crate) trait FrameworkSource: Send {
    fn source(&self) -> Source;
    /// Its devices if it already runs, or why it is not read. Called for every run: takes
    /// microseconds.
    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer>;
    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels>;
    /// The segments of a device; the reason if they are not known now, and `None` if they never are.
    fn segments(
        &mut self,
        _py: Python<'_>,
        _key: &DeviceKey,
    ) -> PyResult<Option<Result<Segments, String>>> {
        Ok(None)
    }
    /// Sets its peak counter to the present level, where it can: on the user's word only.
    fn reset_peak(&mut self, _py: Python<'_>, _key: &DeviceKey) -> PyResult<()> {
        Ok(())
    }
}

/// The answer of a framework that is not to be read.
pub(super) fn unused(reason: &'static str) -> Answer {
    Err(Unused(reason.into()))
}

/// The answer of a framework that is not imported.
pub(super) fn not_imported() -> Answer {
    unused("not imported")
}

/// The devices of a framework that runs and counts what they hold, beside what it keeps of each.
pub(super) fn counted<T>(devices: &[(SourceDevice, T)]) -> Answer {
    if devices.is_empty() {
        return unused("runs on the CPU, where it does not count its memory");
    }
    Ok(devices.iter().map(|(found, _)| found.clone()).collect())
}

/// A device under CUDA's own number, by which sources that know no UUID agree.
pub(super) fn cuda_device(ordinal: usize, uuid: Option<&str>, name: String) -> SourceDevice {
    let label = format!("cuda:{ordinal}");
    SourceDevice {
        key: uuid
            .map_or_else(|| label.clone(), |uuid| format!("GPU-{uuid}"))
            .into(),
        label,
        name,
        kind: DeviceKind::Gpu,
    }
}

/// What frameworks hold in managed memory, on whichever side it is.
pub(super) fn managed_device() -> SourceDevice {
    device_of_its_own("managed", "Managed memory", DeviceKind::Managed)
}

/// What frameworks hold in host memory that is pinned.
pub(super) fn pinned_device() -> SourceDevice {
    device_of_its_own("pinned", "Pinned host memory", DeviceKind::Pinned)
}

fn device_of_its_own(key: &str, name: &str, kind: DeviceKind) -> SourceDevice {
    SourceDevice {
        key: key.into(),
        label: key.to_owned(),
        name: name.to_owned(),
        kind,
    }
}

/// A figure that the framework keeps.
pub(super) fn known(n_bytes: u64) -> Level {
    Level::Known(Bytes::new(n_bytes))
}

/// A figure that the framework does not keep.
pub(super) fn not_reported() -> Level {
    Level::Unknown(Unknown::NotReported)
}

/// A limit of 0 is none.
pub(super) fn limit(n_bytes: u64) -> Level {
    match n_bytes {
        0 => not_reported(),
        n_bytes => known(n_bytes),
    }
}
