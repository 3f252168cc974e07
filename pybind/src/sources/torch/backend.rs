//! One kind of device of torch: `torch.cuda`, `torch.xpu`, an extension's.

use gpumem_core::recording::{AllocatorLevels, DeviceKind, Level, Source};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::stats::Stats;
use crate::sources::Found;
use crate::sources::framework::{cuda_device, known, not_reported};

const HOST: &str = "host";

/// A backend that this torch has, and its devices once it runs.
pub(super) struct Backend {
    /// As in `cuda:0`.
    name: String,
    module: Py<PyAny>,
    is_initialized: Py<PyAny>,
    running: Option<Running>,
}

struct Running {
    devices: Vec<Found>,
    counters: Vec<Counters>,
    memory_stats: Py<PyAny>,
    /// Pinned host memory.
    host_memory_stats: Option<Py<PyAny>>,
    /// What the user lets this process have of a device, from 0 to 1.
    memory_fraction: Option<Py<PyAny>>,
    /// Another backend of the allocator (cudaMallocAsync) leaves most counters at zero.
    is_native: bool,
}

/// What is remembered of one device between two readings.
struct Counters {
    total_bytes: Option<u64>,
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
    pub(super) fn devices(&mut self, torch: &Bound<'_, PyAny>) -> PyResult<&[Found]> {
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
    pub(super) fn read(&mut self, py: Python<'_>, key: &str) -> PyResult<Option<AllocatorLevels>> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        match running.position(key) {
            None => Ok(None),
            Some(_) if key == HOST => running.pinned(py),
            Some(ordinal) => running.levels(py, ordinal).map(Some),
        }
    }

    pub(super) fn reset_peak(&self, py: Python<'_>, key: &str) -> PyResult<()> {
        let position = self.running.as_ref().and_then(|it| it.position(key));
        if let Some(ordinal) = position.filter(|_| key != HOST) {
            let module = self.module.bind(py);
            module.call_method1("reset_peak_memory_stats", (ordinal,))?;
        }
        Ok(())
    }
}

impl Running {
    /// Asks for the devices. The backend is initialised: no call here starts anything.
    fn new(torch: &Bound<'_, PyAny>, name: &str, module: &Bound<'_, PyAny>) -> PyResult<Self> {
        let n_devices: usize = module.call_method0("device_count")?.extract()?;
        let private = |function: &str| torch.getattr("_C").and_then(|c| c.getattr(function));
        let memory_stats = private(&format!("_{name}_memoryStats"))
            .or_else(|_| module.getattr("memory_stats"))
            .or_else(|_| torch.getattr("accelerator")?.getattr("memory_stats"))?;
        let host_memory_stats = private(&format!("_{name}_hostMemoryStats")).ok();
        // Before torch 1.13 there was no other, and only CUDA has two.
        let backend = module.call_method0("get_allocator_backend");
        let mut running = Self {
            devices: Vec::new(),
            counters: Vec::new(),
            memory_stats: memory_stats.unbind(),
            memory_fraction: private(&format!("_{name}_getMemoryFraction"))
                .ok()
                .map(Bound::unbind),
            host_memory_stats: host_memory_stats.map(Bound::unbind),
            is_native: backend.map_or(Ok(true), |name| name.eq("native"))?,
        };
        for ordinal in 0..n_devices {
            let properties = module.call_method1("get_device_properties", (ordinal,))?;
            running
                .devices
                .push(device(torch, name, ordinal, &properties)?);
            let total = properties.getattr("total_memory");
            running.counters.push(Counters {
                total_bytes: total.and_then(|total| total.extract()).ok(),
                peaks: Vec::new(),
                n_peak_resets: 0,
            });
        }
        if running.host_memory_stats.is_some() {
            running.devices.push(pinned_device());
        }
        Ok(running)
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.devices.iter().position(|found| found.key == key)
    }

    fn levels(&mut self, py: Python<'_>, ordinal: usize) -> PyResult<AllocatorLevels> {
        let stats = self.memory_stats.bind(py).call1((ordinal,))?;
        let stats = Stats::new(stats.cast::<PyDict>()?, self.is_native);
        let limit = self.limit(py, ordinal)?;
        let counters = &mut self.counters[ordinal];
        let peaks = stats.peaks()?;
        if peaks
            .iter()
            .zip(&counters.peaks)
            .any(|(now, then)| now < then)
        {
            counters.n_peak_resets += 1;
        }
        counters.peaks = peaks;
        Ok(AllocatorLevels {
            allocated: stats.level("allocated_bytes", "current")?,
            active: stats.level("active_bytes", "current")?,
            reserved: stats.level("reserved_bytes", "current")?,
            inactive_split: stats.level("inactive_split_bytes", "current")?,
            largest_free: not_reported(),
            peak_allocated: stats.level("allocated_bytes", "peak")?,
            total_allocated: stats.level("allocated_bytes", "allocated")?,
            limit,
            n_peak_resets: Some(counters.n_peak_resets),
            n_retries: stats.count("num_alloc_retries")?,
            n_ooms: stats.count("num_ooms")?,
            ..AllocatorLevels::unread(Source::Torch)
        })
    }

    /// Less than the device has, where the user set a fraction of it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "torch itself multiplies as doubles; a fraction is from 0 to 1"
    )]
    fn limit(&self, py: Python<'_>, ordinal: usize) -> PyResult<Level> {
        let (Some(fraction), Some(total)) =
            (&self.memory_fraction, self.counters[ordinal].total_bytes)
        else {
            return Ok(not_reported());
        };
        let fraction: f64 = fraction.bind(py).call1((ordinal,))?.extract()?;
        Ok(if (0.0..1.0).contains(&fraction) {
            known((total as f64 * fraction) as u64)
        } else {
            not_reported()
        })
    }

    /// In use, and held by torch: of these `allocated_bytes` tells the second.
    fn pinned(&self, py: Python<'_>) -> PyResult<Option<AllocatorLevels>> {
        let Some(memory_stats) = &self.host_memory_stats else {
            return Ok(None);
        };
        let stats = memory_stats.bind(py).call0()?;
        let stats = Stats::new(stats.cast::<PyDict>()?, true);
        Ok(Some(AllocatorLevels {
            allocated: stats.level("active_bytes", "current")?,
            reserved: stats.level("allocated_bytes", "current")?,
            ..AllocatorLevels::unread(Source::Torch)
        }))
    }
}

fn device(
    torch: &Bound<'_, PyAny>,
    backend: &str,
    ordinal: usize,
    properties: &Bound<'_, PyAny>,
) -> PyResult<Found> {
    let mut name: String = properties.getattr("name")?.extract()?;
    if backend != "cuda" {
        let label = format!("{backend}:{ordinal}");
        return Ok(Found {
            key: label.clone(),
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

fn pinned_device() -> Found {
    Found {
        key: HOST.to_owned(),
        label: HOST.to_owned(),
        name: "Host memory".to_owned(),
        kind: DeviceKind::Host,
    }
}
