//! What a profiled call does to one device: read before, after, and between.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use gpumem_model::recording::{DeviceKey, DeviceKind, Reading, RunIdx, Sample};
use gpumem_model::units::Bytes;
use pyo3::prelude::*;

use super::number::Number;
use super::records::MemorySnapshot;
use crate::recording::session;
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_base::text::Text;
use gpumem_machine::sampler::{Interval, Sampler};
use gpumem_machine::sources::SourceDevice;

/// A probe's sampler has no other run than the call.
const CALL: RunIdx = RunIdx(0);

/// Reads one device before and after a call, and samples it between where its
/// driver is all there is to ask. Resets no peak. One call at a time.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct Probe {
    state: Mutex<ProbeState>,
}

struct ProbeState {
    sampler: Option<Sampler>,
    before: Option<ProbeLevels>,
}

#[pymethods]
impl Probe {
    #[new]
    fn new(py: Python<'_>) -> Self {
        Self {
            state: Mutex::new(ProbeState {
                sampler: session::new_sampler(py),
                before: None,
            }),
        }
    }

    /// The call begins: the label of the device read, and its memory.
    fn begin(
        &self,
        py: Python<'_>,
        device: Option<Text>,
        current: Option<Text>,
        cpu: bool,
    ) -> PyResult<(Option<String>, MemorySnapshot)> {
        let levels = ProbeLevels::named(py, device, current, cpu);
        let shown = (levels.label.clone(), levels.snapshot(py)?);
        let mut state = lock_attached(py, &self.state);
        if let Some(sampler) = state.sampler.as_mut().filter(|_| !levels.has_allocator)
            && let Err(error) = sampler.begin(CALL, Interval::default())
        {
            guard::log_failure(py, "peaks are those of the ends", &error);
        }
        state.before = Some(levels);
        Ok(shown)
    }

    /// The call has ended: memory after it, and at its peak. There the allocated memory is the
    /// highest that is certain, and the highest allocated is where the peak cannot be above.
    fn end(&self, py: Python<'_>, cpu: bool) -> PyResult<(MemorySnapshot, MemorySnapshot)> {
        let mut state = lock_attached(py, &self.state);
        let sampled = state.sampler.as_mut().map(|it| it.end(CALL));
        let sampled = sampled.unwrap_or_default();
        let before = state.before.take().unwrap_or_default();
        drop(state);
        let mut after = ProbeLevels::now(py, before.label.as_deref(), None, cpu);
        let sampled = sampled.iter().find(|(key, _)| *key == before.key);
        let points = sampled.map_or(&[][..], |(_, points)| points);
        let peak = before.peak(&after, points);
        after.max_reserved = peak.reserved;
        if !after.has_allocator {
            after.max_allocated = peak.allocated;
        }
        Ok((after.snapshot(py)?, peak.snapshot(py)?))
    }
}

/// The memory of a device now, with the label of the one read: the one named; else the current
/// one, the first whose allocator is known, the first whose driver reports levels, or the host.
#[pyfunction]
pub(crate) fn classic_snapshot(
    py: Python<'_>,
    device: Option<Text>,
    current: Option<Text>,
    cpu: bool,
) -> PyResult<(Option<String>, MemorySnapshot)> {
    let levels = ProbeLevels::named(py, device, current, cpu);
    Ok((levels.label.clone(), levels.snapshot(py)?))
}

/// Levels of one device, each where it is known.
#[derive(Debug, Clone, Default)]
struct ProbeLevels {
    label: Option<String>,
    key: DeviceKey,
    has_allocator: bool,
    at: f64,
    allocated: Option<Bytes>,
    reserved: Option<Bytes>,
    /// The allocator's own counter, which its user may reset.
    max_allocated: Option<Bytes>,
    max_reserved: Option<Bytes>,
    active: Option<Bytes>,
    inactive: Option<Bytes>,
    /// Used on the host by every process; zero if the host is not read.
    cpu: Option<Bytes>,
}

impl ProbeLevels {
    /// Those of the device that the user names.
    fn named(py: Python<'_>, device: Option<Text>, current: Option<Text>, cpu: bool) -> Self {
        let (device, current) = (device.map(String::from), current.map(String::from));
        Self::now(py, device.as_deref(), current.as_deref(), cpu)
    }

    fn now(py: Python<'_>, device: Option<&str>, current: Option<&str>, cpu: bool) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since_epoch.unwrap_or_default().as_secs_f64();
        let readings = session::readings(py, &[]);
        let host = || {
            readings
                .iter()
                .find(|(found, _)| found.kind == DeviceKind::Host)
        };
        let cpu = if cpu {
            host().and_then(|(_, reading)| reading.driver.device_used.known())
        } else {
            Some(Bytes::ZERO)
        };
        let named = |label: &str| readings.iter().find(|(found, _)| found.label == label);
        let chosen = match device {
            Some(label) => named(label),
            None => current.and_then(named).or_else(|| choose(&readings)),
        };
        let levels = chosen.map(|(found, reading)| Self::from_reading(found, reading));
        Self {
            at,
            cpu,
            ..levels.unwrap_or_default()
        }
    }

    fn from_reading(found: &SourceDevice, reading: &Reading) -> Self {
        let allocators = &reading.allocators;
        let named = Self {
            label: Some(found.label.clone()),
            key: found.key.clone(),
            has_allocator: !allocators.is_empty(),
            ..Self::default()
        };
        if !named.has_allocator {
            let used = used(reading);
            return Self {
                allocated: used,
                reserved: used,
                max_allocated: used,
                max_reserved: used,
                ..named
            };
        }
        let reserved = reading.total(|it| &it.reserved);
        Self {
            allocated: reading.total(|it| &it.allocated),
            reserved,
            max_allocated: reading.total(|it| &it.peak_allocated),
            max_reserved: reserved,
            active: reading.total(|it| &it.active),
            inactive: reading.inactive_split(),
            ..named
        }
    }

    /// The levels at the peak of a call that began with these and ended with `after`.
    ///
    /// A counter that rose in the call tells its peak; one that fell was reset in it, and tells of
    /// the time since; one that stayed is a bound from above.
    fn peak(&self, after: &Self, sampled: &[Sample]) -> Self {
        let counted = after.max_allocated.filter(|_| after.has_allocator);
        let counted = counted.filter(|now| self.max_allocated.is_none_or(|then| *now != then));
        let seen = sampled.iter().filter_map(|sample| {
            let used = sample.process_used.or(sample.device_used);
            used.filter(|_| !after.has_allocator)
        });
        let ends = [self.allocated, after.allocated, counted];
        let allocated = seen.chain(ends.into_iter().flatten()).max();
        let reserved = self.reserved.max(after.reserved);
        Self {
            allocated,
            reserved: if after.has_allocator {
                reserved
            } else {
                allocated
            },
            max_allocated: self.max_allocated.max(after.max_allocated).max(allocated),
            max_reserved: if after.has_allocator {
                reserved
            } else {
                allocated
            },
            active: self.active.max(after.active),
            ..after.clone()
        }
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<MemorySnapshot> {
        let level = |level: Option<Bytes>| Number::level(py, level.map(Bytes::get));
        let ordinal = self
            .label
            .as_deref()
            .and_then(|label| label.split_once(':'));
        let ordinal = ordinal.and_then(|(_, ordinal)| ordinal.parse().ok());
        Ok(MemorySnapshot {
            timestamp: Number::Real(self.at),
            allocated_memory: level(self.allocated)?,
            reserved_memory: level(self.reserved)?,
            max_memory_allocated: level(self.max_allocated)?,
            max_memory_reserved: level(self.max_reserved)?,
            active_memory: level(self.active)?,
            inactive_memory: level(self.inactive)?,
            cpu_memory: level(self.cpu)?,
            // The host is no GPU.
            device_id: Number::Whole(ordinal.unwrap_or(-1)),
            operation: py.None(),
            stack_trace: py.None(),
        })
    }
}

/// Readings come real devices first, the simulated one next, the host last.
fn choose(readings: &[(SourceDevice, Reading)]) -> Option<&(SourceDevice, Reading)> {
    let with_allocator = readings.iter().find(|(_, it)| !it.allocators.is_empty());
    with_allocator.or_else(|| readings.iter().find(|(_, it)| used(it).is_some()))
}

/// What this process uses, else what every process does.
fn used(reading: &Reading) -> Option<Bytes> {
    let driver = &reading.driver;
    driver.process_used.known().or(driver.device_used.known())
}
