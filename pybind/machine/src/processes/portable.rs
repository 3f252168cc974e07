//! Facts about processes on Windows and macOS, through `sysinfo`: parents and start times. There
//! are no sessions and groups as on Linux, and no user names.

use std::collections::BTreeMap;

use gpumem_jobs::gpu_processes::{ProcessFacts, ProcessLookup};
use gpumem_model::units::Nanos;
use sysinfo::{
    Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind,
};

use super::ScannedProcess;

/// These processes and their ancestors.
pub(super) fn scan(mut pids: Vec<u32>, _asks_for_gpus: bool) -> BTreeMap<u32, ScannedProcess> {
    let mut system = System::new();
    let kind = ProcessRefreshKind::nothing()
        .with_cmd(UpdateKind::Always)
        .with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    let mut seen: BTreeMap<u32, ScannedProcess> = BTreeMap::new();
    while let Some(pid) = pids.pop() {
        if seen.contains_key(&pid) {
            continue;
        }
        let sight = match system.process(Pid::from_u32(pid)) {
            Some(process) => ProcessLookup::Found(Box::new(facts(process))),
            None => ProcessLookup::Gone,
        };
        if let ProcessLookup::Found(facts) = &sight {
            pids.extend(facts.parent.filter(|parent| *parent != 0));
        }
        seen.insert(pid, ScannedProcess { sight, uid: None });
    }
    seen
}

fn facts(process: &Process) -> ProcessFacts {
    let variables = process.environ().iter();
    let mut variables = variables.map(|it| it.to_string_lossy());
    let session_name = variables.find_map(|it| {
        let name = it.strip_prefix("JPY_SESSION_NAME=")?;
        Some(name.to_owned())
    });
    let command = process.cmd().iter();
    ProcessFacts {
        name: process.name().to_string_lossy().into_owned(),
        command: command
            .map(|it| it.to_string_lossy().into_owned())
            .collect(),
        age: Some(Nanos::new(process.run_time().saturating_mul(1_000_000_000))),
        parent: Some(process.parent().map_or(0, Pid::as_u32)),
        is_zombie: matches!(
            process.status(),
            ProcessStatus::Zombie | ProcessStatus::Dead
        ),
        session_name,
        ..ProcessFacts::default()
    }
}
