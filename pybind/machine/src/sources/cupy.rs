//! `CuPy`'s memory pools: the default one, and one that the user has set in its place.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use gpumem_model::recording::{AllocatorLevels, DeviceKey, Source};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyType};

use super::framework::{
    FrameworkSource, cuda_device, imported, known, limit, managed_device, not_imported, unused,
};
use super::{Answer, SourceDevice};

/// The most objects examined to find a pool's allocator.
const MAX_LOOKS: usize = 64;

/// The devices on which the user's threads were seen to have a context.
#[derive(Default)]
pub(super) struct CupySource {
    devices: BTreeMap<usize, SourceDevice>,
    /// A pool of managed memory was set: the device stays when it is no longer.
    uses_managed: bool,
}

impl FrameworkSource for CupySource {
    fn source(&self) -> Source {
        Source::Cupy
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        let Some(cupy) = imported(py, "cupy")? else {
            *self = Self::default();
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
        let mut devices: Vec<SourceDevice> = self.devices.values().cloned().collect();
        self.uses_managed |= matches!(Chosen::new(&cupy)?, Chosen::Managed(_));
        if self.uses_managed {
            devices.push(managed_device());
        }
        Ok(Ok(devices))
    }

    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        let Some(cupy) = imported(py, "cupy")? else {
            return Ok(AllocatorLevels::unread(Source::Cupy));
        };
        if *key == managed_device().key {
            return self.managed(&cupy);
        }
        let mut devices = self.devices.iter();
        let Some((&ordinal, _)) = devices.find(|(_, found)| found.key == *key) else {
            return Ok(AllocatorLevels::unread(Source::Cupy));
        };
        let default = cupy.call_method0("get_default_memory_pool")?;
        let chosen = Chosen::new(&cupy)?;
        on_device(&cupy, ordinal, || {
            let held = PoolLevels::new(&default)?;
            Ok(match &chosen {
                Chosen::Device(pool) => held.and(&PoolLevels::new(pool)?).levels(),
                _ => held.levels(),
            })
        })
    }
}

impl CupySource {
    /// What the pool of managed memory holds for all devices.
    fn managed(&self, cupy: &Bound<'_, PyAny>) -> PyResult<AllocatorLevels> {
        let Chosen::Managed(pool) = Chosen::new(cupy)? else {
            return Ok(AllocatorLevels::unread(Source::Cupy));
        };
        let mut sum = PoolLevels::default();
        for ordinal in self.devices.keys() {
            sum = sum.and(&on_device(cupy, *ordinal, || PoolLevels::new(&pool))?);
        }
        Ok(sum.levels())
    }
}

/// What the user has `CuPy` allocate with.
enum Chosen<'py> {
    Default,
    Device(Bound<'py, PyAny>),
    /// A pool of managed memory.
    Managed(Bound<'py, PyAny>),
}

impl<'py> Chosen<'py> {
    fn new(cupy: &Bound<'py, PyAny>) -> PyResult<Self> {
        let cuda = cupy.getattr("cuda")?;
        // The allocator is a pool's method `malloc`.
        let allocator = cuda.call_method0("get_allocator");
        let Ok(pool) = allocator.and_then(|it| it.getattr("__self__")) else {
            return Ok(Self::Default);
        };
        let default = cupy.call_method0("get_default_memory_pool")?;
        let is_cupys = pool
            .get_type()
            .module()?
            .to_string_lossy()
            .starts_with("cupy.");
        if pool.is(&default) || !is_cupys || !pool.hasattr("used_bytes")? {
            return Ok(Self::Default);
        }
        Ok(if allocates_managed(&cuda, &pool)? {
            Self::Managed(pool)
        } else {
            Self::Device(pool)
        })
    }
}

/// Whether a pool was made on `malloc_managed`. The pool only refers to that function: its
/// references come from the garbage collector, which runs none of the object's code.
fn allocates_managed(cuda: &Bound<'_, PyAny>, pool: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(managed) = cuda.getattr("malloc_managed") else {
        return Ok(false);
    };
    let gc = pool.py().import("gc")?;
    let mut queue = vec![pool.clone()];
    let mut n_looks = 0;
    while n_looks < queue.len().min(MAX_LOOKS) {
        let referred = gc.call_method1("get_referents", (&queue[n_looks],))?;
        for object in referred.try_iter()? {
            let object = object?;
            if object.is(&managed) {
                return Ok(true);
            }
            if !leads_everywhere(&object)? {
                queue.push(object);
            }
        }
        n_looks += 1;
    }
    Ok(false)
}

/// A type, a module, or a module's names, which every function refers to.
fn leads_everywhere(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(names) = object.cast_exact::<PyDict>() {
        return names.contains(intern!(object.py(), "__spec__"));
    }
    Ok(object.is_instance_of::<PyType>() || object.is_instance_of::<PyModule>())
}

/// What pools hold of one device.
#[derive(Default)]
struct PoolLevels {
    used: u64,
    total: u64,
    limit: u64,
}

impl PoolLevels {
    fn new(pool: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ask = |function: &str| pool.call_method0(function)?.extract::<u64>();
        Ok(Self {
            used: ask("used_bytes")?,
            total: ask("total_bytes")?,
            limit: ask("get_limit")?,
        })
    }

    /// A limit of both there is only where both have one.
    fn and(&self, other: &Self) -> Self {
        let are_limited = self.limit > 0 && other.limit > 0;
        Self {
            used: self.used + other.used,
            total: self.total + other.total,
            limit: if are_limited {
                self.limit.saturating_add(other.limit)
            } else {
                0
            },
        }
    }

    fn levels(&self) -> AllocatorLevels {
        AllocatorLevels {
            allocated: known(self.used),
            reserved: known(self.total),
            limit: limit(self.limit),
            ..AllocatorLevels::unread(Source::Cupy)
        }
    }
}

fn current(cuda: &Bound<'_, PyAny>) -> PyResult<usize> {
    cuda.getattr("runtime")?
        .call_method0("getDevice")?
        .extract()
}

/// A pool answers for the device that is current.
fn on_device<T>(
    cupy: &Bound<'_, PyAny>,
    ordinal: usize,
    ask: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    let cuda = cupy.getattr("cuda")?;
    if current(&cuda)? == ordinal {
        return ask();
    }
    let device = cuda.call_method1("Device", (ordinal,))?;
    device.call_method0("__enter__")?;
    let answer = ask();
    let py = cupy.py();
    device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    answer
}

fn device(cuda: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<SourceDevice> {
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
