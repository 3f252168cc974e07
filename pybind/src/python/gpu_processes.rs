//! Who is on the GPUs, for Python: the drivers' lists, and what the system tells of the processes on them. The
//! core joins them.

use gpumem_jobs::company::{self, DeviceCompany, Listing, Member, Sight};
use gpumem_model::recording::Level;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_report as report;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::machine::company::process_table;
use crate::recording::session;

/// Who is on each device, at one moment.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct ProcessScan {
    found: company::GpuProcesses,
}

#[pymethods]
impl ProcessScan {
    /// A dict for each device, in the order in which they are read.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let devices = self.found.devices.iter();
        let devices: PyResult<Vec<_>> = devices.map(|device| plain_device(py, device)).collect();
        PyList::new(py, devices?)
    }

    /// It all in words.
    fn text(&self, width: usize) -> String {
        report::company(&self.found, width)
    }
}

/// Finds out who is on the GPUs now.
#[pyfunction]
pub(crate) fn scan_gpu_processes(py: Python<'_>) -> PyResult<ProcessScan> {
    let mut sightings = process_table(py, listings(py))?;
    // A process may have ended since the driver listed it: only one that it lists again is a
    // remnant.
    let mut sights = sightings.processes.values();
    if sightings.are_ids_ours && sights.any(|it| matches!(it, Sight::Gone)) {
        sightings = process_table(py, listings(py))?;
    }
    let found = py.detach(|| company::company(&sightings));
    Ok(ProcessScan { found })
}

fn listings(py: Python<'_>) -> Vec<Listing> {
    let devices = session::processes(py).into_iter();
    devices
        .map(|(found, levels, processes)| Listing {
            device: found.label,
            name: found.name,
            used: levels.device_used.known(),
            capacity: levels.capacity.known(),
            processes,
        })
        .collect()
}

fn plain_device<'py>(py: Python<'py>, device: &DeviceCompany) -> PyResult<Bound<'py, PyDict>> {
    let members = device.members.iter();
    let members: PyResult<Vec<_>> = members.map(|it| plain_member(py, it)).collect();
    let plain = PyDict::new(py);
    plain.set_item("device", &device.device)?;
    plain.set_item("unlisted", &device.unlisted)?;
    plain.set_item("unattributed_bytes", device.unattributed.map(Bytes::get))?;
    plain.set_item("processes", members?)?;
    Ok(plain)
}

fn plain_member<'py>(py: Python<'py>, member: &Member) -> PyResult<Bound<'py, PyDict>> {
    let why_unknown = match &member.used {
        Level::Known(_) => None,
        Level::Unknown(why) => Some(why.words()),
    };
    let plain = PyDict::new(py);
    plain.set_item("pid", member.pid)?;
    plain.set_item("used_bytes", member.used.known().map(Bytes::get))?;
    plain.set_item("why_unknown", why_unknown)?;
    plain.set_item("kind", member.kind.name())?;
    plain.set_item("is_suspect", member.kind.is_suspect())?;
    plain.set_item("user", &member.user)?;
    plain.set_item("command", &member.command)?;
    plain.set_item("age_nanos", member.age.map(Nanos::get))?;
    plain.set_item("notebook", &member.notebook)?;
    plain.set_item("kernel_id", &member.kernel_id)?;
    plain.set_item("server", &member.server)?;
    plain.set_item("words", &member.words)?;
    Ok(plain)
}
