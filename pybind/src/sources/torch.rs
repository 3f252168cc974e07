//! PyTorch's caching allocator, where the user has imported torch and CUDA runs.

use gpumem_core::recording::{AllocatorLevels, DeviceKind, Level, Source, Unknown};
use gpumem_core::units::Bytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Answer, Found, FrameworkSource, Unused};

/// Reads `torch._C._cuda_memoryStats`. Its flat form, `torch.cuda.memory_stats`, costs 180 µs more.
#[derive(Default)]
pub(super) struct TorchSource {
    attached: Option<Attached>,
}

/// The functions of the torch that is imported, and its devices once CUDA runs.
struct Attached {
    module: Py<PyAny>,
    is_initialized: Py<PyAny>,
    running: Option<Running>,
}

struct Running {
    memory_stats: Py<PyAny>,
    devices: Vec<Found>,
    /// Another backend (cudaMallocAsync) leaves most counters at zero.
    is_native: bool,
}

impl FrameworkSource for TorchSource {
    fn source(&self) -> Source {
        Source::Torch
    }

    fn devices(&mut self, py: Python<'_>) -> Answer {
        let asked = self.running(py);
        asked.unwrap_or_else(|error| Err(Unused(error.to_string())))
    }

    fn read(&mut self, py: Python<'_>, key: &str) -> AllocatorLevels {
        let running = self.attached.as_ref().and_then(|it| it.running.as_ref());
        let Some(running) = running else {
            return AllocatorLevels::unread(Source::Torch);
        };
        let Some(ordinal) = running.devices.iter().position(|found| found.key == key) else {
            return AllocatorLevels::unread(Source::Torch);
        };
        running
            .levels(py, ordinal)
            .unwrap_or_else(|error| failed(&error.to_string()))
    }
}

impl TorchSource {
    fn running(&mut self, py: Python<'_>) -> PyResult<Answer> {
        let Some(torch) = imported(py)? else {
            self.attached = None;
            return Ok(Err(Unused("not imported".to_owned())));
        };
        let is_same = |it: &Attached| it.module.is(&torch);
        let attached = match self.attached.take().filter(is_same) {
            Some(attached) => attached,
            None => Attached {
                is_initialized: torch
                    .getattr(intern!(py, "cuda"))?
                    .getattr(intern!(py, "is_initialized"))?
                    .unbind(),
                module: torch.clone().unbind(),
                running: None,
            },
        };
        let attached = self.attached.insert(attached);
        if !attached.is_initialized.bind(py).call0()?.is_truthy()? {
            attached.running = None;
            let reason = "imported, but CUDA is not initialised yet";
            return Ok(Err(Unused(reason.to_owned())));
        }
        let running = match attached.running.take() {
            Some(running) => running,
            None => Running::new(&torch)?,
        };
        Ok(Ok(attached.running.insert(running).devices.clone()))
    }
}

impl Running {
    /// Asks torch for its devices. CUDA is initialised: no call here starts anything.
    fn new(torch: &Bound<'_, PyAny>) -> PyResult<Self> {
        let cuda = torch.getattr("cuda")?;
        let n_devices: usize = cuda.call_method0("device_count")?.extract()?;
        let devices = (0..n_devices).map(|ordinal| device(&cuda, ordinal));
        let nested = torch
            .getattr("_C")
            .and_then(|c| c.getattr("_cuda_memoryStats"));
        let backend = cuda.call_method0("get_allocator_backend");
        Ok(Self {
            devices: devices.collect::<PyResult<_>>()?,
            memory_stats: nested.or_else(|_| cuda.getattr("memory_stats"))?.unbind(),
            // Before torch 1.13 there was no other.
            is_native: backend.map_or(Ok(true), |name| name.eq("native"))?,
        })
    }

    fn levels(&self, py: Python<'_>, ordinal: usize) -> PyResult<AllocatorLevels> {
        let stats = self.memory_stats.bind(py).call1((ordinal,))?;
        let stats = Stats {
            stats: stats.cast::<PyDict>()?,
            is_native: self.is_native,
        };
        Ok(AllocatorLevels {
            source: Source::Torch,
            allocated: stats.level("allocated_bytes", "current")?,
            active: stats.level("active_bytes", "current")?,
            reserved: stats.level("reserved_bytes", "current")?,
            inactive_split: stats.level("inactive_split_bytes", "current")?,
            largest_free: Level::Unknown(Unknown::NotReported),
            peak_allocated: stats.level("allocated_bytes", "peak")?,
            n_retries: stats.count("num_alloc_retries")?,
            n_ooms: stats.count("num_ooms")?,
        })
    }
}

/// The allocator's counters, nested (`stats["allocated_bytes"]["all"]["current"]`) or flat
/// (`stats["allocated_bytes.all.current"]`).
struct Stats<'a, 'py> {
    stats: &'a Bound<'py, PyDict>,
    is_native: bool,
}

impl Stats<'_, '_> {
    fn level(&self, counter: &str, which: &str) -> PyResult<Level> {
        let nested = self.stats.get_item(counter)?;
        let figure = match nested {
            Some(pools) => Some(pools.get_item("all")?.get_item(which)?),
            None => self.stats.get_item(format!("{counter}.all.{which}"))?,
        };
        let Some(figure) = figure else {
            return Ok(Level::Unknown(Unknown::NotReported));
        };
        let n_bytes: u64 = figure.extract()?;
        // The two that cudaMallocAsync keeps: allocated and reserved.
        let is_kept = self.is_native || matches!(counter, "allocated_bytes" | "reserved_bytes");
        if n_bytes == 0 && !is_kept {
            return Ok(Level::Unknown(Unknown::NotReported));
        }
        Ok(Level::Known(Bytes::new(n_bytes)))
    }

    fn count(&self, counter: &str) -> PyResult<Option<u64>> {
        let count = self.stats.get_item(counter)?;
        let count: Option<u64> = count.map(|count| count.extract()).transpose()?;
        Ok(count.filter(|n| self.is_native || *n > 0))
    }
}

/// The torch that the user imported. Importing it is not ours to do.
fn imported(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py
        .import(intern!(py, "sys"))?
        .getattr(intern!(py, "modules"))?;
    let torch = modules.cast::<PyDict>()?.get_item(intern!(py, "torch"))?;
    // `sys.modules["torch"] = None` forbids an import.
    Ok(torch.filter(|torch| !torch.is_none()))
}

fn device(cuda: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<Found> {
    let properties = cuda.call_method1("get_device_properties", (ordinal,))?;
    let label = format!("cuda:{ordinal}");
    let uuid = properties.getattr("uuid").and_then(|uuid| uuid.str());
    Ok(Found {
        // Older than torch 2.4 they have no UUID, and so no other source in common.
        key: uuid.map_or_else(|_| label.clone(), |uuid| format!("GPU-{uuid}")),
        label,
        name: properties.getattr("name")?.extract()?,
        kind: DeviceKind::Gpu,
    })
}

fn failed(words: &str) -> AllocatorLevels {
    let level = Level::Unknown(Unknown::Failed(words.to_owned()));
    AllocatorLevels {
        source: Source::Torch,
        allocated: level.clone(),
        active: level.clone(),
        reserved: level.clone(),
        inactive_split: level.clone(),
        largest_free: level.clone(),
        peak_allocated: level,
        n_retries: None,
        n_ooms: None,
    }
}
