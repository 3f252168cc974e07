//! The processes on the GPUs: the drivers' lists, the system's facts and Jupyter's files.

pub mod children;
mod jupyter;
#[cfg_attr(not(target_os = "linux"), path = "portable.rs")]
#[cfg_attr(target_os = "linux", path = "linux.rs")]
mod system;

use std::collections::BTreeMap;
use std::process;

use gpumem_jobs::gpu_processes::{Listing, ProcessLookup, ProcessTable};
use pyo3::prelude::*;

pub use jupyter::data_dir;

use crate::sources::process::is_in_first_pid_namespace;
use gpumem_base::text::Text;

/// The system's facts about the processes on these devices.
pub fn process_table(py: Python<'_>, devices: Vec<Listing>) -> PyResult<ProcessTable> {
    let own_pid = process::id();
    let listed: Vec<u32> = devices
        .iter()
        .flat_map(|it| it.processes.iter().flatten())
        .map(|(pid, _)| *pid)
        .collect();
    // A driver that lists this process by its own id speaks of the same ids.
    let are_ids_ours = is_in_first_pid_namespace() || listed.contains(&own_pid);
    let pids = listed.into_iter().chain([own_pid]).collect();
    let seen = py.detach(|| system::scan(pids, !are_ids_ours));
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

/// What is seen of one process, before its user has a name.
pub(crate) struct ScannedProcess {
    pub(crate) sight: ProcessLookup,
    pub uid: Option<u32>,
}

/// The same with the names of the users, which Python asks the system's directory for.
fn named(py: Python<'_>, seen: BTreeMap<u32, ScannedProcess>) -> BTreeMap<u32, ProcessLookup> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut name = |uid: u32| {
        let known = names.entry(uid);
        known.or_insert_with(|| user_name(py, uid)).clone()
    };
    let seen = seen.into_iter();
    seen.map(|(pid, ScannedProcess { mut sight, uid })| {
        if let ProcessLookup::Found(facts) = &mut sight {
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
