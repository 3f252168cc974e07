//! What each device holds now, outside of every run.

use gpumem_core::recording::{Device, DeviceIdx, Reading};
use gpumem_core::report;
use pyo3::prelude::*;

use crate::session;

/// A line for each device: what fills it, as far as it is known.
#[pyfunction]
pub(crate) fn levels_text(py: Python<'_>) -> String {
    let readings = session::readings(py, &[]);
    let devices: Vec<(Device, Reading)> = (0..)
        .zip(readings)
        .map(|(idx, (found, reading))| {
            let device = Device {
                idx: DeviceIdx(idx),
                key: found.key,
                label: found.label,
                name: found.name,
                kind: found.kind,
            };
            (device, reading)
        })
        .collect();
    report::levels(&devices)
}
