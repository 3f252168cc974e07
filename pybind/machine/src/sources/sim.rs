//! The simulated devices, as their driver and as their allocators.

use gpumem_model::recording::{
    AllocatorLevels, DeviceKey, DeviceKind, DriverLevels, Level, Source,
};
use gpumem_model::segments::Segments;
use pyo3::{PyResult, Python};

use super::framework::FrameworkSource;
use super::visible::Visibility;
use super::{Answer, DriverSource, SourceDevice, Unused};
use crate::sim;

/// The driver's view of simulated devices: segments, not the blocks inside.
pub(super) struct SimDriver;

/// What the simulated devices' caching allocators count.
pub(super) struct SimAllocator;

impl DriverSource for SimDriver {
    fn source(&self) -> Source {
        Source::Sim
    }

    fn devices(&mut self, _visibility: &Visibility) -> Answer {
        devices()
    }

    fn read(&mut self, key: &DeviceKey) -> DriverLevels {
        let Some(shown) = number(key).and_then(sim::shown) else {
            return DriverLevels::default();
        };
        DriverLevels {
            device_used: Level::Known(shown.reserved),
            process_used: Level::Known(shown.reserved),
            capacity: Level::Known(shown.capacity),
            ..DriverLevels::default()
        }
    }
}

impl FrameworkSource for SimAllocator {
    fn source(&self) -> Source {
        Source::Sim
    }

    fn devices(&mut self, _py: Python<'_>) -> PyResult<Answer> {
        Ok(devices())
    }

    fn read(&mut self, _py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        let Some(stats) = number(key).and_then(sim::stats) else {
            return Ok(AllocatorLevels::unread(Source::Sim));
        };
        Ok(AllocatorLevels {
            source: Source::Sim,
            allocated: stats.allocated.into(),
            requested: stats.requested.into(),
            // One stream only: no block ever awaits another.
            active: stats.allocated.into(),
            reserved: stats.reserved.into(),
            inactive_split: stats.inactive_split.into(),
            largest_free: stats.largest_free.into(),
            peak_allocated: stats.peak_allocated.into(),
            total_allocated: stats.total_allocated.into(),
            limit: Level::default(),
            n_blocks: Some(stats.n_blocks),
            n_peak_resets: Some(stats.n_peak_resets),
            n_retries: Some(stats.n_retries),
            n_ooms: Some(stats.n_ooms),
        })
    }

    fn segments(
        &mut self,
        _py: Python<'_>,
        key: &DeviceKey,
    ) -> PyResult<Option<Result<Segments, String>>> {
        Ok(number(key).and_then(sim::segments).map(Ok))
    }

    fn reset_peak(&mut self, _py: Python<'_>, key: &DeviceKey) -> PyResult<()> {
        if let Some(number) = number(key) {
            sim::reset_peaks(number);
        }
        Ok(())
    }
}

fn devices() -> Answer {
    let numbers = (0..).take_while(|number| sim::shown(*number).is_some());
    let found: Vec<SourceDevice> = numbers.map(found).collect();
    if found.is_empty() {
        return Err(Unused("not in use: `gpumem.sim.use()` starts it".into()));
    }
    Ok(found)
}

fn found(number: usize) -> SourceDevice {
    let label = format!("sim:{number}");
    SourceDevice {
        key: label.clone().into(),
        label,
        name: "Simulated GPU".to_owned(),
        kind: DeviceKind::Simulated,
    }
}

/// The reverse of [`found`].
fn number(key: &DeviceKey) -> Option<usize> {
    key.as_str().strip_prefix("sim:")?.parse().ok()
}
