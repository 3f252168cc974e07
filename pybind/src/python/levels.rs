//! What each device holds now, outside of every run.

use gpumem_analyzer::DeviceSummary;
use gpumem_model::recording::{Device, DeviceIdx, DeviceKind, Reading};
use gpumem_model::units::Bytes;
use gpumem_report as report;
use pyo3::prelude::*;

use crate::python::holders;
use crate::recording::session;
use gpumem_base::guard;
use gpumem_machine::sources::SourceDevice;

/// The levels of every device now, and what the accelerators are held for.
#[pyfunction]
pub(crate) fn levels_text(py: Python<'_>) -> String {
    let readings = session::readings(py, &[]).into_iter();
    let devices: Vec<(Device, Reading)> = readings
        .map(|(found, reading)| (device(found), reading))
        .collect();
    // Without an allocator's counters there is nothing to break down.
    let is_held = devices.iter().any(|(device, reading)| {
        let allocated = DeviceSummary::now(device.idx, reading).allocated;
        device.kind.is_accelerator() && allocated.is_some_and(|it| it > Bytes::ZERO)
    });
    let held = is_held.then(|| holders::find_now(py, 1)).transpose();
    let held = held.unwrap_or_else(|error| {
        guard::log_failure(py, "what memory is held for is not known", &error);
        None
    });
    let recording = session::snapshot(py).unwrap_or_default();
    report::levels(&recording, &devices, held.as_ref(), session::NOTEBOOK_WIDTH)
}

/// What a device holds: its label, whether it is the host, and in bytes what is allocated,
/// reserved and used by this process (else by every process), as far as it is known.
type DeviceFigures = (String, bool, Option<u64>, Option<u64>, Option<u64>);

/// The levels of every device now.
#[pyfunction]
pub(crate) fn device_levels(py: Python<'_>) -> Vec<DeviceFigures> {
    let of_device = |(found, reading): (SourceDevice, Reading)| {
        let device = device(found);
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

/// A device's label, whether it is the host, and the levels that are known, in bytes: `allocated`,
/// `reserved`, `process_used`, `device_used`, and the allocators' own `peak_counter`.
type DeviceScalars = (String, bool, Vec<(&'static str, u64)>);

/// The levels of every device now, for what draws them.
#[pyfunction]
pub(crate) fn device_scalars(py: Python<'_>) -> Vec<DeviceScalars> {
    let of_device = |(found, reading): (SourceDevice, Reading)| {
        let device = device(found);
        let levels = DeviceSummary::now(device.idx, &reading);
        let known = [
            ("allocated", levels.allocated),
            ("reserved", levels.reserved),
            ("process_used", levels.process_used),
            ("device_used", levels.device_used),
            ("peak_counter", reading.total(|it| &it.peak_allocated)),
        ];
        let known = known
            .into_iter()
            .filter_map(|(name, level)| Some((name, level?.get())));
        let is_host = device.kind == DeviceKind::Host;
        (device.label, is_host, known.collect())
    };
    let readings = session::readings(py, &[]);
    readings.into_iter().map(of_device).collect()
}

fn device(found: SourceDevice) -> Device {
    Device {
        idx: DeviceIdx(0),
        key: found.key,
        label: found.label,
        name: found.name,
        kind: found.kind,
        outside: None,
    }
}

/// A number of bytes as people write it: `420 MiB`.
#[pyfunction]
pub(crate) fn bytes_text(n_bytes: u64) -> String {
    Bytes::new(n_bytes).to_string()
}
