//! JAX's allocators, one a device.

use gpumem_model::recording::{AllocatorLevels, DeviceKey, DeviceKind, Level, Source};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::framework::{
    FrameworkSource, counted, cuda_device, imported, known, limit, not_imported, not_reported,
    unused,
};
use super::{Answer, SourceDevice};

/// Reads the devices of the backends that JAX has made, without JAX's own functions, which would
/// make them: from then on `jax.distributed.initialize` is refused.
#[derive(Default)]
pub(super) struct JaxSource {
    devices: Vec<(SourceDevice, Py<PyAny>)>,
}

impl FrameworkSource for JaxSource {
    fn source(&self) -> Source {
        Source::Jax
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        self.devices.clear();
        if imported(py, "jax")?.is_none() {
            return Ok(not_imported());
        }
        // Not `backends_are_initialized()`: it waits for a lock that is held while they start.
        let backends =
            imported(py, "jax._src.xla_bridge")?.and_then(|it| it.getattr("_backends").ok());
        let Some(backends) = backends else {
            return Ok(unused(
                "this version of JAX does not tell whether it is initialised",
            ));
        };
        let backends = backends.cast::<PyDict>()?;
        if backends.is_empty() {
            return Ok(unused("imported, but no backend is initialised yet"));
        }
        for client in backends.values() {
            for device in client.call_method0("local_devices")?.try_iter()? {
                let device = device?;
                if let Some(found) = found(&device)? {
                    self.devices.push((found, device.unbind()));
                }
            }
        }
        Ok(counted(&self.devices))
    }

    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        let mut devices = self.devices.iter();
        let Some((_, device)) = devices.find(|(found, _)| found.key == *key) else {
            return Ok(AllocatorLevels::unread(Source::Jax));
        };
        let stats = device.bind(py).call_method0("memory_stats")?;
        if stats.is_none() {
            return Ok(AllocatorLevels {
                allocated: not_reported(),
                ..AllocatorLevels::unread(Source::Jax)
            });
        }
        let stats = stats.cast::<PyDict>()?;
        let level = |name: &str| -> PyResult<Level> {
            let figure = stats.get_item(name)?;
            figure.map_or(Ok(not_reported()), |it| Ok(known(it.extract()?)))
        };
        let limit_bytes = stats.get_item("bytes_limit")?;
        Ok(AllocatorLevels {
            allocated: level("bytes_in_use")?,
            reserved: level("pool_bytes")?,
            largest_free: level("largest_free_block_bytes")?,
            peak_allocated: level("peak_bytes_in_use")?,
            limit: limit_bytes.map_or(Ok(not_reported()), |it| it.extract().map(limit))?,
            ..AllocatorLevels::unread(Source::Jax)
        })
    }
}

/// A device that has memory of its own.
fn found(device: &Bound<'_, PyAny>) -> PyResult<Option<SourceDevice>> {
    let platform: String = device.getattr("platform")?.extract()?;
    let name: String = device.getattr("device_kind")?.extract()?;
    match platform.as_str() {
        "cpu" => Ok(None),
        "gpu" | "cuda" | "rocm" => {
            let ordinal = device.getattr("local_hardware_id")?.extract()?;
            Ok(Some(cuda_device(ordinal, None, name)))
        }
        platform => {
            let id: i64 = device.getattr("id")?.extract()?;
            let label = format!("{platform}:{id}");
            Ok(Some(SourceDevice {
                key: label.as_str().into(),
                label,
                name,
                kind: DeviceKind::Gpu,
            }))
        }
    }
}
