//! The processes that use a device, as NVML lists them.

use std::ffi::c_uint;

use crate::state::size;
use crate::{Device, State, ledger};

/// A process with memory on a device; `u64::MAX` bytes are "not available".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// The kernel's number of it.
    pub pid: c_uint,
    /// The bytes it uses.
    pub used: u64,
}

/// The processes of one kind: those that the file lists, `computing = self:512 4711:all`,
/// and of those that compute the ones on the played libraries.
///
/// `hide_processes` leaves the latter out, as drivers do in a container with process
/// numbers of its own; `withhold_process_memory` leaves out everybody's bytes.
pub fn processes(state: &State, device: Device, kind: &str) -> Vec<Process> {
    let listed = device.text(state, kind).unwrap_or_default();
    let mut processes: Vec<Process> = listed.split_ascii_whitespace().filter_map(entry).collect();
    if kind == "computing" && device.text(state, "hide_processes").is_none() {
        for (pid, used) in ledger::of_machine().processes(device.place()) {
            if processes.iter().all(|it| it.pid != pid) {
                processes.push(Process { pid, used });
            }
        }
    }
    if device.text(state, "withhold_process_memory").is_some() {
        for process in &mut processes {
            process.used = u64::MAX;
        }
    }
    processes
}

fn entry(text: &str) -> Option<Process> {
    let (pid, n_mib) = text.split_once(':')?;
    let pid = match pid {
        "self" => std::process::id(),
        pid => pid.parse().ok()?,
    };
    Some(Process {
        pid,
        used: size(n_mib),
    })
}
