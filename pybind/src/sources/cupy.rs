//! `CuPy`'s default memory pools, one a device.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use gpumem_core::recording::{AllocatorLevels, Source};
use pyo3::prelude::*;

use super::framework::{
    FrameworkSource, cuda_device, imported, known, limit, not_imported, unused,
};
use super::{Answer, Found};

/// The devices on which the user's threads were seen to have a context.
#[derive(Default)]
pub(super) struct CupySource {
    devices: BTreeMap<usize, Found>,
}

impl FrameworkSource for CupySource {
    fn source(&self) -> Source {
        Source::Cupy
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        let Some(cupy) = imported(py, "cupy")? else {
            self.devices.clear();
            return Ok(not_imported());
        };
        let cuda = cupy.getattr("cuda")?;
        // Of all questions about CUDA this one starts nothing: without a context it says so.
        let context = cuda.getattr("driver")?.call_method0("ctxGetCurrent");
        let has_context = context.and_then(|it| it.extract::<usize>()).unwrap_or(0) != 0;
        if has_context {
            let ordinal = current(&cuda)?;
            if let Entry::Vacant(entry) = self.devices.entry(ordinal) {
                entry.insert(device(&cuda, ordinal)?);
            }
        }
        if self.devices.is_empty() {
            return Ok(unused("imported, but not used yet: no CUDA context"));
        }
        Ok(Ok(self.devices.values().cloned().collect()))
    }

    fn read(&mut self, py: Python<'_>, key: &str) -> PyResult<AllocatorLevels> {
        let mut devices = self.devices.iter();
        let ordinal = devices.find(|(_, found)| found.key == key);
        let (Some(cupy), Some((&ordinal, _))) = (imported(py, "cupy")?, ordinal) else {
            return Ok(AllocatorLevels::unread(Source::Cupy));
        };
        let cuda = cupy.getattr("cuda")?;
        if current(&cuda)? == ordinal {
            return levels(&cupy);
        }
        // The pool of the device that is current is the one that answers.
        let device = cuda.call_method1("Device", (ordinal,))?;
        device.call_method0("__enter__")?;
        let levels = levels(&cupy);
        device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
        levels
    }
}

fn current(cuda: &Bound<'_, PyAny>) -> PyResult<usize> {
    cuda.getattr("runtime")?
        .call_method0("getDevice")?
        .extract()
}

fn levels(cupy: &Bound<'_, PyAny>) -> PyResult<AllocatorLevels> {
    let pool = cupy.call_method0("get_default_memory_pool")?;
    let ask = |function: &str| pool.call_method0(function)?.extract::<u64>();
    Ok(AllocatorLevels {
        allocated: known(ask("used_bytes")?),
        reserved: known(ask("total_bytes")?),
        limit: limit(ask("get_limit")?),
        ..AllocatorLevels::unread(Source::Cupy)
    })
}

fn device(cuda: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<Found> {
    let runtime = cuda.getattr("runtime")?;
    let properties = runtime.call_method1("getDeviceProperties", (ordinal,))?;
    let name: Vec<u8> = properties.get_item("name")?.extract()?;
    let uuid = properties.get_item("uuid").and_then(|uuid| uuid.extract());
    let uuid = uuid.ok().map(|uuid: [u8; 16]| uuid_text(uuid));
    let name = String::from_utf8_lossy(&name).into_owned();
    Ok(cuda_device(ordinal, uuid.as_deref(), name))
}

/// `3f1a8c55-0000-4b7e-9d21-000000000000`.
fn uuid_text(uuid: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(uuid));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    parts.join("-")
}
