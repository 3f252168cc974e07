//! What each device holds now, in words: one line per device.

use gpumem_core::analyze::DeviceSummary;
use gpumem_core::recording::{Device, DeviceIdx, DeviceKind, Level, Reading, Unknown};
use gpumem_core::units::Bytes;
use pyo3::prelude::*;

use crate::session;
use crate::sources::Found;

/// The levels of every device now; in place of one that could not be read, why not.
#[pyfunction]
pub(crate) fn levels_text(py: Python<'_>) -> String {
    let readings = session::readings(py, &[]);
    let width = readings.iter().map(|(found, _)| found.label.len()).max();
    let lines: Vec<String> = readings
        .iter()
        .map(|(found, reading)| line(found, reading, width.unwrap_or(0)))
        .collect();
    lines.join("\n")
}

/// What a device holds: its label, whether it is the host, and in bytes what is allocated,
/// reserved and used by this process (else by every process), as far as it is known.
type DeviceLevels = (String, bool, Option<u64>, Option<u64>, Option<u64>);

/// The levels of every device now.
#[pyfunction]
pub(crate) fn device_levels(py: Python<'_>) -> Vec<DeviceLevels> {
    let of_device = |(found, reading): (Found, Reading)| {
        let device = Device {
            idx: DeviceIdx(0),
            key: found.key,
            label: found.label,
            name: found.name,
            kind: found.kind,
        };
        let levels = DeviceSummary::now(device.idx, &reading);
        let is_host = device.kind == DeviceKind::Host;
        let used = levels.process_used.or(levels.device_used);
        let bytes = |level: Option<Bytes>| level.map(Bytes::get);
        let (allocated, reserved) = (bytes(levels.allocated), bytes(levels.reserved));
        (device.label, is_host, allocated, reserved, bytes(used))
    };
    let readings = session::readings(py, &[]);
    readings.into_iter().map(of_device).collect()
}

/// A number of bytes as people write it: `420 MiB`.
#[pyfunction]
pub(crate) fn bytes_text(n_bytes: u64) -> String {
    Bytes::new(n_bytes).to_string()
}

fn line(found: &Found, reading: &Reading, width: usize) -> String {
    let driver = &reading.driver;
    let mut parts = Vec::new();
    match (driver.device_used.known(), driver.capacity.known()) {
        (Some(used), Some(capacity)) => parts.push(format!("{used} of {capacity}")),
        (Some(used), None) => parts.push(format!("{used} used")),
        (None, Some(capacity)) => parts.push(format!("{capacity} in all")),
        (None, None) => parts.extend(failure("the driver", &driver.device_used)),
    }
    parts.extend(known("this process", &driver.process_used));
    for (words, level) in [
        ("the container's limit", &driver.container_limit),
        ("the limit of CUDA MPS", &driver.service_limit),
        ("shared with the host", &driver.host_limit),
        ("its children", &driver.children_used),
        ("the driver", &driver.driver_reserved),
        ("pool used", &driver.pool_used),
        ("pool reserved", &driver.pool_reserved),
        ("graphs used", &driver.graph_used),
        ("graphs reserved", &driver.graph_reserved),
    ] {
        if level.known() != Some(Bytes::ZERO) {
            parts.extend(known(words, level));
        }
    }
    for levels in &reading.allocators {
        let source = levels.source.name();
        parts.extend(known(&format!("{source} allocated"), &levels.allocated));
        parts.extend(known(&format!("{source} reserved"), &levels.reserved));
        parts.extend(known(&format!("{source}'s limit"), &levels.limit));
        parts.extend(failure(source, &levels.allocated));
    }
    if parts.is_empty() {
        parts.push("no level is known".to_owned());
    }
    let (label, name) = (&found.label, &found.name);
    format!("{label:<width$}  {name}  {}", parts.join(" · "))
}

fn known(words: &str, level: &Level) -> Option<String> {
    level.known().map(|bytes| format!("{words} {bytes}"))
}

fn failure(source: &str, level: &Level) -> Option<String> {
    match level {
        Level::Unknown(Unknown::Failed(reason)) => Some(format!("{source} failed: {reason}")),
        _ => None,
    }
}
