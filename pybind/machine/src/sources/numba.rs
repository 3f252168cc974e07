//! Numba's allocations, which it makes without a cache but frees late.

use gpumem_model::recording::{AllocatorLevels, DeviceKey, Source};
use pyo3::prelude::*;

use super::framework::{
    FrameworkSource, cuda_device, imported, known, managed_device, not_imported, unused,
};
use super::{Answer, SourceDevice};

/// Reads the contexts that Numba has made. `current_context()` would make one.
#[derive(Default)]
pub(super) struct NumbaSource {
    devices: Vec<(SourceDevice, Py<PyAny>)>,
    /// It has held managed memory: the device stays when all of that is given back.
    uses_managed: bool,
}

const MANAGED: &str = "ManagedMemory";

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
        let devices = self.devices.iter().map(|(found, _)| found.clone());
        let mut devices: Vec<SourceDevice> = devices.collect();
        if self.uses_managed || self.usage(py, |kind| kind == MANAGED)?.1 > 0 {
            self.uses_managed = true;
            devices.push(managed_device());
        }
        Ok(Ok(devices))
    }

    /// What is reserved and not allocated waits to be freed.
    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        if *key == managed_device().key {
            let (allocated, n_blocks) = self.usage(py, |kind| kind == MANAGED)?;
            return Ok(AllocatorLevels {
                allocated: known(allocated),
                n_blocks: Some(n_blocks),
                ..AllocatorLevels::unread(Source::Numba)
            });
        }
        let mut devices = self.devices.iter();
        let Some((_, context)) = devices.find(|(found, _)| found.key == *key) else {
            return Ok(AllocatorLevels::unread(Source::Numba));
        };
        let manager = context.bind(py).getattr("memory_manager")?;
        // Mapped memory is the host's.
        let is_its_own = |kind: &str| ![MANAGED, "MappedMemory"].contains(&kind);
        let (allocated, n_blocks) = usage(&manager, is_its_own)?;
        let pending: u64 = manager
            .getattr("deallocations")?
            .getattr("_size")?
            .extract()?;
        Ok(AllocatorLevels {
            allocated: known(allocated),
            reserved: known(allocated + pending),
            n_blocks: Some(n_blocks),
            ..AllocatorLevels::unread(Source::Numba)
        })
    }
}

impl NumbaSource {
    /// Bytes and number of the allocations of all contexts whose kind `is_counted`.
    fn usage(&self, py: Python<'_>, is_counted: fn(&str) -> bool) -> PyResult<(u64, u64)> {
        let mut total = (0, 0);
        for (_, context) in &self.devices {
            let manager = context.bind(py).getattr("memory_manager")?;
            let (n_bytes, n_blocks) = usage(&manager, is_counted)?;
            total = (total.0 + n_bytes, total.1 + n_blocks);
        }
        Ok(total)
    }
}

fn usage(manager: &Bound<'_, PyAny>, is_counted: fn(&str) -> bool) -> PyResult<(u64, u64)> {
    let (mut n_bytes, mut n_blocks) = (0, 0);
    let allocations = manager.getattr("allocations")?.call_method0("values")?;
    for allocation in allocations.try_iter()? {
        let allocation = allocation?;
        if is_counted(&allocation.get_type().name()?.to_string_lossy()) {
            n_bytes += allocation.getattr("size")?.extract::<u64>()?;
            n_blocks += 1;
        }
    }
    Ok((n_bytes, n_blocks))
}

fn name(device: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = device.getattr("name")?;
    match name.extract::<Vec<u8>>() {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => name.extract(),
    }
}
