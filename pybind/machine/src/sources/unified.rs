//! Machines whose GPU has no memory of its own: host and device are one pool, counted once.

use gpumem_model::recording::{DeviceKind, DriverLevels, Level, Reading, Unknown};

use super::SourceDevice;

/// Why CUDA gives no figures of such a GPU.
pub(super) const INTEGRATED: &str = "this GPU shares the host's memory, which `host` counts";
/// Why NVML gives none.
pub(super) const NOT_SUPPORTED: &str =
    "this GPU has no such figure: it may share the host's memory";

/// Limits such a device by what the host has. The host's own levels show its use.
pub(super) fn share_with_host(readings: &mut [(SourceDevice, Reading)]) {
    let mut hosts = readings.iter();
    let host = hosts.find(|(found, _)| found.kind == DeviceKind::Host);
    let Some(host) = host.map(|(_, reading)| &reading.driver) else {
        return;
    };
    let limits = [host.capacity.known(), host.container_limit.known()];
    let limit = limits.into_iter().flatten().min();
    for (found, reading) in readings {
        if shares_host(found, &reading.driver) {
            reading.driver.host_limit = limit.into();
        }
    }
}

fn shares_host(found: &SourceDevice, driver: &DriverLevels) -> bool {
    let is_metal = found.label.starts_with("mps:");
    is_metal
        || matches!(
            &driver.capacity,
            Level::Unknown(Unknown::Withheld(why)) if [INTEGRATED, NOT_SUPPORTED].contains(&why.as_str())
        )
}
