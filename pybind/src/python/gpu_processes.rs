//! Who is on the GPUs, for Python: the drivers' lists, and what the system tells of the processes on them. The
//! core joins them.

use gpumem_jobs::gpu_processes::{self, DeviceProcesses, GpuProcess, Listing, ProcessLookup};
use gpumem_model::recording::Level;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_report as report;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::list;
use crate::recording::session;
use gpumem_machine::processes::process_table;

/// Who is on each device, at one moment.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct ProcessScan {
    found: gpu_processes::GpuProcesses,
}

#[pymethods]
impl ProcessScan {
    /// A dict for each device, in the order in which they are read.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list(py, &self.found.devices, plain_device)
    }

    /// It all in words.
    fn text(&self, width: usize) -> String {
        report::gpu_process_table(&self.found, width)
    }
}

/// Finds out who is on the GPUs now.
#[pyfunction]
pub(crate) fn scan_gpu_processes(py: Python<'_>) -> PyResult<ProcessScan> {
    let mut table = process_table(py, listings(py))?;
    // A process may have ended since the driver listed it: only one that it lists again is a
    // remnant.
    let mut lookups = table.processes.values();
    if table.are_ids_ours && lookups.any(|it| matches!(it, ProcessLookup::Gone)) {
        table = process_table(py, listings(py))?;
    }
    let found = py.detach(|| gpu_processes::gpu_processes(&table));
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

fn plain_device<'py>(py: Python<'py>, device: &DeviceProcesses) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "device": &device.device,
        "unlisted": &device.unlisted,
        "unattributed_bytes": device.unattributed.map(Bytes::get),
        "processes": list(py, &device.members, plain_member)?,
    }))
}

fn plain_member<'py>(py: Python<'py>, member: &GpuProcess) -> PyResult<Bound<'py, PyDict>> {
    let why_unknown = match &member.used {
        Level::Known(_) => None,
        Level::Unknown(why) => Some(why.message()),
    };
    Ok(dict!(py, {
        "pid": member.pid,
        "used_bytes": member.used.known().map(Bytes::get),
        "why_unknown": why_unknown,
        "kind": member.kind.name(),
        "is_suspect": member.kind.is_suspect(),
        "user": &member.user,
        "command": &member.command,
        "age_nanos": member.age.map(Nanos::get),
        "notebook": &member.notebook,
        "kernel_id": &member.kernel_id,
        "server": &member.server,
        "words": &member.words,
    }))
}
