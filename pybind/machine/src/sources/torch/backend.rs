//! One kind of device of torch: `torch.cuda`, `torch.xpu`, an extension's.

use gpumem_model::recording::{AllocatorLevels, DeviceKey, DeviceKind, Level, Source, Unknown};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::stats::Stats;
use crate::out_of_memory::observer;
use crate::sources::SourceDevice;
use crate::sources::framework::{cuda_device, known, not_reported, pinned_device};

/// A backend that this torch has, and its devices once it runs.
pub(super) struct Backend {
    /// As in `cuda:0`.
    name: String,
    module: Py<PyAny>,
    is_initialized: Py<PyAny>,
    running: Option<Running>,
}

struct Running {
    /// Its devices by their numbers, and last the pinned memory where that is counted.
    devices: Vec<SourceDevice>,
    counters: Vec<AllocatorCounters>,
    memory_stats: Py<PyAny>,
    host_memory_stats: Option<Py<PyAny>>,
    /// What the user lets this process have of a device, from 0 to 1.
    memory_fraction: Option<Py<PyAny>>,
    current_device: Option<Py<PyAny>>,
    has_context: Option<Py<PyAny>>,
    allocator: TorchAllocator,
}

/// The allocator that serves torch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TorchAllocator {
    /// torch's own, which keeps every counter.
    Native,
    /// The driver's pool (`cudaMallocAsync`), of which most counters are always zero.
    DriverPool,
    /// One of the user's, which torch knows nothing of: asking is an error.
    Pluggable,
}

/// What is remembered of one device between two readings.
struct AllocatorCounters {
    total_bytes: Option<u64>,
    limit: Level,
    peaks: Vec<u64>,
    n_peak_resets: u64,
}

impl Backend {
    /// The backend of that name, if this torch has it. Starts nothing.
    pub(super) fn find(torch: &Bound<'_, PyAny>, name: String) -> Option<Self> {
        let module = torch.getattr(name.as_str()).ok()?;
        Some(Self {
            is_initialized: module.getattr("is_initialized").ok()?.unbind(),
            module: module.unbind(),
            name,
            running: None,
        })
    }

    /// Its devices; none where it is not initialised.
    pub(super) fn devices(&mut self, torch: &Bound<'_, PyAny>) -> PyResult<&[SourceDevice]> {
        let py = torch.py();
        if !self.is_initialized.bind(py).call0()?.is_truthy()? {
            self.running = None;
            return Ok(&[]);
        }
        let running = match self.running.take() {
            Some(running) => running,
            None => Running::new(torch, &self.name, self.module.bind(py))?,
        };
        Ok(&self.running.insert(running).devices)
    }

    /// The levels of one of its devices; `None` where it has no such device.
    pub(super) fn read(
        &mut self,
        py: Python<'_>,
        key: &DeviceKey,
    ) -> PyResult<Option<AllocatorLevels>> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        match running.position(key) {
            None => Ok(None),
            Some(idx) if idx >= running.counters.len() => running.pinned(py),
            Some(ordinal) => running.levels(py, ordinal).map(Some),
        }
    }

    /// The number of the device of that key, where torch's own allocator manages it and can say where
    /// its memory lies: on CUDA.
    pub(super) fn tells_segments_of(&self, key: &DeviceKey) -> Option<usize> {
        let running = self.running.as_ref()?;
        let ordinal = running.position(key)?;
        let tells = self.name == "cuda"
            && running.allocator == TorchAllocator::Native
            && ordinal < running.counters.len();
        tells.then_some(ordinal)
    }

    pub(super) fn reset_peak(&self, py: Python<'_>, key: &DeviceKey) -> PyResult<()> {
        let position = self.running.as_ref().and_then(|it| it.position(key));
        let n_devices = self.running.as_ref().map_or(0, |it| it.counters.len());
        if let Some(ordinal) = position.filter(|idx| *idx < n_devices) {
            let module = self.module.bind(py);
            module.call_method1("reset_peak_memory_stats", (ordinal,))?;
        }
        Ok(())
    }
}

impl Running {
    /// Asks for the devices. The backend is initialised: no call here starts anything.
    fn new(torch: &Bound<'_, PyAny>, name: &str, module: &Bound<'_, PyAny>) -> PyResult<Self> {
        (observer().attach_to_torch)(torch, name);
        let n_devices: usize = module.call_method0("device_count")?.extract()?;
        let private = |function: &str| torch.getattr("_C").and_then(|c| c.getattr(function));
        let optional = |function: &str| private(function).ok().map(Bound::unbind);
        let memory_stats = private(&format!("_{name}_memoryStats"))
            .or_else(|_| module.getattr("memory_stats"))
            .or_else(|_| torch.getattr("accelerator")?.getattr("memory_stats"))?;
        let mut running = Self {
            devices: Vec::new(),
            counters: Vec::new(),
            memory_stats: memory_stats.unbind(),
            host_memory_stats: optional(&format!("_{name}_hostMemoryStats")),
            memory_fraction: optional(&format!("_{name}_getMemoryFraction")),
            current_device: optional(&format!("_{name}_getDevice")),
            has_context: optional(&format!("_{name}_hasPrimaryContext")),
            allocator: TorchAllocator::current(module)?,
        };
        for ordinal in 0..n_devices {
            let properties = module.call_method1("get_device_properties", (ordinal,))?;
            running
                .devices
                .push(device(torch, name, ordinal, &properties)?);
            let total = properties.getattr("total_memory");
            running.counters.push(AllocatorCounters {
                total_bytes: total.and_then(|total| total.extract()).ok(),
                limit: not_reported(),
                peaks: Vec::new(),
                n_peak_resets: 0,
            });
        }
        if running.host_memory_stats.is_some() {
            running.devices.push(pinned_device());
        }
        Ok(running)
    }

    fn position(&self, key: &DeviceKey) -> Option<usize> {
        self.devices.iter().position(|found| found.key == *key)
    }

    fn levels(&mut self, py: Python<'_>, ordinal: usize) -> PyResult<AllocatorLevels> {
        if self.allocator == TorchAllocator::Pluggable {
            return Ok(pluggable());
        }
        // torch asks the driver's pool with the device made current, which makes a context.
        if self.allocator == TorchAllocator::DriverPool && !self.has_context(py, ordinal)? {
            return Ok(AllocatorLevels::unread(Source::Torch));
        }
        let stats = self.memory_stats.bind(py).call1((ordinal,))?;
        let is_native = self.allocator == TorchAllocator::Native;
        let stats = Stats::new(stats.cast::<PyDict>()?, is_native);
        self.look_at_limit(py, ordinal)?;
        let counters = &mut self.counters[ordinal];
        let peaks = stats.peaks()?;
        let mut pairs = peaks.iter().zip(&counters.peaks);
        if pairs.any(|(now, then)| now < then) {
            counters.n_peak_resets += 1;
        }
        counters.peaks = peaks;
        Ok(AllocatorLevels {
            allocated: stats.level("allocated_bytes", "current")?,
            requested: stats.level("requested_bytes", "current")?,
            active: stats.level("active_bytes", "current")?,
            reserved: stats.level("reserved_bytes", "current")?,
            inactive_split: stats.level("inactive_split_bytes", "current")?,
            largest_free: not_reported(),
            peak_allocated: stats.level("allocated_bytes", "peak")?,
            total_allocated: stats.level("allocated_bytes", "allocated")?,
            limit: counters.limit.clone(),
            n_blocks: stats.n_blocks()?,
            n_peak_resets: Some(counters.n_peak_resets),
            n_retries: stats.count("num_alloc_retries")?,
            n_ooms: stats.count("num_ooms")?,
            ..AllocatorLevels::unread(Source::Torch)
        })
    }

    /// Less than the device has, where the user set a fraction of it.
    ///
    /// To answer, torch makes the device current and leaves it so. Therefore only the current device
    /// is read, if it has a context; the others keep their last value.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "torch itself multiplies as doubles; a fraction is from 0 to 1"
    )]
    fn look_at_limit(&mut self, py: Python<'_>, ordinal: usize) -> PyResult<()> {
        let (Some(ask), Some(total)) = (&self.memory_fraction, self.counters[ordinal].total_bytes)
        else {
            return Ok(());
        };
        let Some(current) = &self.current_device else {
            return Ok(());
        };
        let is_current = current.bind(py).call0()?.extract::<usize>()? == ordinal;
        if is_current && self.has_context(py, ordinal)? {
            let fraction: f64 = ask.bind(py).call1((ordinal,))?.extract()?;
            self.counters[ordinal].limit = if (0.0..1.0).contains(&fraction) {
                known((total as f64 * fraction) as u64)
            } else {
                not_reported()
            };
        }
        Ok(())
    }

    /// Whether the device has the context that CUDA's runtime shares; other backends have none.
    fn has_context(&self, py: Python<'_>, ordinal: usize) -> PyResult<bool> {
        match &self.has_context {
            Some(ask) => ask.bind(py).call1((ordinal,))?.is_truthy(),
            None => Ok(true),
        }
    }

    /// In use, and held by torch.
    fn pinned(&self, py: Python<'_>) -> PyResult<Option<AllocatorLevels>> {
        let Some(memory_stats) = &self.host_memory_stats else {
            return Ok(None);
        };
        let stats = memory_stats.bind(py).call0()?;
        let stats = stats.cast::<PyDict>()?;
        // Up to torch 2.9 what is in use was called `allocated_bytes`, then what is held.
        let [in_use, held] = if stats.contains("active_bytes")? {
            ["active_bytes", "allocated_bytes"]
        } else {
            ["allocated_bytes", "reserved_bytes"]
        };
        let stats = Stats::new(stats, true);
        Ok(Some(AllocatorLevels {
            allocated: stats.level(in_use, "current")?,
            reserved: stats.level(held, "current")?,
            ..AllocatorLevels::unread(Source::Torch)
        }))
    }
}

impl TorchAllocator {
    /// Before torch 1.13 there was no other than its own, and only CUDA has several.
    fn current(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(name) = module.call_method0("get_allocator_backend") else {
            return Ok(Self::Native);
        };
        Ok(match name.extract::<String>()?.as_str() {
            "native" => Self::Native,
            "cudaMallocAsync" => Self::DriverPool,
            _ => Self::Pluggable,
        })
    }
}

fn pluggable() -> AllocatorLevels {
    let why = "torch runs on an allocator that was plugged in, and counts nothing itself";
    AllocatorLevels {
        allocated: Level::Unknown(Unknown::Withheld(why.into())),
        ..AllocatorLevels::unread(Source::Torch)
    }
}

fn device(
    torch: &Bound<'_, PyAny>,
    backend: &str,
    ordinal: usize,
    properties: &Bound<'_, PyAny>,
) -> PyResult<SourceDevice> {
    let mut name: String = properties.getattr("name")?.extract()?;
    if backend != "cuda" {
        let label = format!("{backend}:{ordinal}");
        return Ok(SourceDevice {
            key: label.as_str().into(),
            label,
            name,
            kind: DeviceKind::Gpu,
        });
    }
    let rocm = torch.getattr("version").and_then(|it| it.getattr("hip"));
    if let Ok(version) = rocm.and_then(|version| version.extract::<String>()) {
        name = format!("{name} (ROCm {version})");
    }
    // Older than torch 2.4 they have no UUID.
    let uuid = properties.getattr("uuid").and_then(|uuid| uuid.str());
    let uuid = uuid.ok().map(|uuid| uuid.to_string());
    Ok(cuda_device(ordinal, uuid.as_deref(), name))
}
