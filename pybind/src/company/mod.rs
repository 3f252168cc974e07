//! Who is on the GPUs, for Python: the drivers' lists, what the system tells of the
//! processes on them, Jupyter's files. The core joins them.

mod jupyter;
#[cfg_attr(not(target_os = "linux"), path = "portable.rs")]
#[cfg_attr(target_os = "linux", path = "linux.rs")]
mod system;

use std::collections::BTreeMap;
use std::process;

use gpumem_jobs::company::{self, DeviceCompany, Listing, Member, ProcessTable, Sight};
use gpumem_model::recording::Level;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_report as report;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) use jupyter::data_dir;

use crate::session;
use crate::sources::process::is_in_first_pid_namespace;
use crate::text::Text;

/// Who is on each device, at one moment.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct GpuProcesses {
    found: company::GpuProcesses,
}

#[pymethods]
impl GpuProcesses {
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
pub(crate) fn find_company(py: Python<'_>) -> PyResult<GpuProcesses> {
    let mut sightings = look(py)?;
    // A process may have ended since the driver listed it: only one that it lists again is a
    // remnant.
    let mut sights = sightings.processes.values();
    if sightings.are_ids_ours && sights.any(|it| matches!(it, Sight::Gone)) {
        sightings = look(py)?;
    }
    let found = py.detach(|| company::company(&sightings));
    Ok(GpuProcesses { found })
}

fn look(py: Python<'_>) -> PyResult<ProcessTable> {
    let devices = listings(py);
    let own_pid = process::id();
    let listed: Vec<u32> = devices
        .iter()
        .flat_map(|it| it.processes.iter().flatten())
        .map(|(pid, _)| *pid)
        .collect();
    // A driver that lists this process by its own id speaks of the same ids.
    let are_ids_ours = is_in_first_pid_namespace() || listed.contains(&own_pid);
    let pids = listed.into_iter().chain([own_pid]).collect();
    let seen = py.detach(|| system::seen(pids, !are_ids_ours));
    let own_uid = seen.get(&own_pid).and_then(|it| it.uid);
    let notebooks = jupyter::notebooks(py, seen.values().filter(|it| it.uid == own_uid))?;
    let servers = jupyter::servers(py)?;
    Ok(ProcessTable {
        own_pid,
        devices,
        processes: named(py, seen),
        are_ids_ours,
        notebooks,
        servers,
        home: std::env::home_dir().map(|it| it.to_string_lossy().into_owned()),
    })
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

/// What is seen of one process, before its user has a name.
pub(crate) struct Seen {
    pub(crate) sight: Sight,
    pub(crate) uid: Option<u32>,
}

/// The same with the names of the users, which Python asks the system's directory for.
fn named(py: Python<'_>, seen: BTreeMap<u32, Seen>) -> BTreeMap<u32, Sight> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut name = |uid: u32| {
        let known = names.entry(uid);
        known.or_insert_with(|| user_name(py, uid)).clone()
    };
    let seen = seen.into_iter();
    seen.map(|(pid, Seen { mut sight, uid })| {
        if let Sight::There(facts) = &mut sight {
            facts.user = uid.map(&mut name);
        }
        (pid, sight)
    })
    .collect()
}

fn user_name(py: Python<'_>, uid: u32) -> String {
    let entry = py
        .import("pwd")
        .and_then(|pwd| pwd.call_method1("getpwuid", (uid,)));
    let name = entry.and_then(|entry| entry.getattr("pw_name")?.extract::<Text>());
    name.map_or_else(|_| format!("uid {uid}"), String::from)
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
