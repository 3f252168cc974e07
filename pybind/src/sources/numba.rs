//! Numba's allocations, which it makes without a cache but frees late.

use gpumem_core::recording::{AllocatorLevels, Source};
use pyo3::prelude::*;

use super::framework::{FrameworkSource, cuda_device, imported, known, not_imported, unused};
use super::{Answer, Found};

/// Reads the contexts that Numba has made. `current_context()` would make one.
#[derive(Default)]
pub(super) struct NumbaSource {
    devices: Vec<(Found, Py<PyAny>)>,
}

impl FrameworkSource for NumbaSource {
    fn source(&self) -> Source {
        Source::Numba
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        self.devices.clear();
        if imported(py, "numba")?.is_none() {
            return Ok(not_imported());
        }
        let Some(module) = imported(py, "numba.cuda.cudadrv.devices")? else {
            return Ok(unused("imported, but not `numba.cuda`"));
        };
        // An attribute of the list that is not there yet would start the driver.
        let gpus = module.getattr("gpus")?.getattr("__dict__")?.get_item("lst");
        if let Ok(gpus) = gpus {
            for (ordinal, gpu) in gpus.try_iter()?.enumerate() {
                let device = gpu?.getattr("_device")?;
                let context = device.getattr("primary_context")?;
                if !context.is_none() {
                    let uuid = device.getattr("uuid").and_then(|it| it.extract::<String>());
                    let uuid = uuid.ok();
                    let uuid = uuid.as_deref().and_then(|it| it.strip_prefix("GPU-"));
                    let name = name(&device)?;
                    let found = cuda_device(ordinal, uuid, name);
                    self.devices.push((found, context.unbind()));
                }
            }
        }
        if self.devices.is_empty() {
            return Ok(unused("imported, but it has no CUDA context yet"));
        }
        Ok(Ok(self
            .devices
            .iter()
            .map(|(found, _)| found.clone())
            .collect()))
    }

    /// What is reserved and not allocated waits to be freed.
    fn read(&mut self, py: Python<'_>, key: &str) -> PyResult<AllocatorLevels> {
        let mut devices = self.devices.iter();
        let Some((_, context)) = devices.find(|(found, _)| found.key == key) else {
            return Ok(AllocatorLevels::unread(Source::Numba));
        };
        let manager = context.bind(py).getattr("memory_manager")?;
        let mut allocated = 0;
        let allocations = manager.getattr("allocations")?.call_method0("values")?;
        for allocation in allocations.try_iter()? {
            let allocation = allocation?;
            // Mapped memory is the host's.
            if allocation.get_type().name()? != "MappedMemory" {
                allocated += allocation.getattr("size")?.extract::<u64>()?;
            }
        }
        let pending: u64 = manager
            .getattr("deallocations")?
            .getattr("_size")?
            .extract()?;
        Ok(AllocatorLevels {
            allocated: known(allocated),
            reserved: known(allocated + pending),
            ..AllocatorLevels::unread(Source::Numba)
        })
    }
}

fn name(device: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = device.getattr("name")?;
    match name.extract::<Vec<u8>>() {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => name.extract(),
    }
}
