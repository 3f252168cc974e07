//! Facts about processes from `/proc`. Some are unknown for processes of other users.

#![expect(
    unsafe_code,
    reason = "only libc reports whether a hidden process lives, and the length of a tick"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io;

use gpumem_jobs::gpu_processes::{ProcessFacts, ProcessLookup};
use gpumem_model::units::Nanos;

use super::ScannedProcess;
use crate::sources::process::{Stat, stat};

/// More than that belong to no GPU: an end for ids that lead on and on.
const N_PROCESSES: usize = 4096;

/// These processes, and what they lead to: parents, and the leaders of their groups and sessions.
pub(super) fn scan(mut pids: Vec<u32>, asks_for_gpus: bool) -> BTreeMap<u32, ScannedProcess> {
    let mut seen: BTreeMap<u32, ScannedProcess> = BTreeMap::new();
    while let Some(pid) = pids.pop() {
        if pid == 0 || seen.contains_key(&pid) || seen.len() == N_PROCESSES {
            continue;
        }
        let found = look(pid, asks_for_gpus);
        if let ProcessLookup::Found(facts) = &found.sight {
            pids.extend(
                [facts.parent, facts.group, facts.session]
                    .into_iter()
                    .flatten(),
            );
        }
        seen.insert(pid, found);
    }
    seen
}

fn look(pid: u32, asks_for_gpus: bool) -> ScannedProcess {
    let Ok(stat) = stat(pid) else {
        let sight = if lives(pid) {
            ProcessLookup::Hidden
        } else {
            ProcessLookup::Gone
        };
        return ScannedProcess { sight, uid: None };
    };
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variable = |name: &str| {
        let mut variables = nul_separated(&environment);
        variables.find_map(|it| Some(it.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    };
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let facts = ProcessFacts {
        command: nul_separated(&command).collect(),
        // Named by its number until the user's name is looked up.
        user: None,
        age: age(&stat),
        parent: Some(stat.parent),
        group: Some(stat.group),
        session: Some(stat.session),
        is_zombie: stat.is_zombie,
        has_gpu_open: asks_for_gpus && has_gpu_open(pid),
        session_name: variable("JPY_SESSION_NAME"),
        server_pid: variable("JPY_PARENT_PID").and_then(|it| it.parse().ok()),
        name: stat.name,
    };
    ScannedProcess {
        sight: ProcessLookup::Found(Box::new(facts)),
        uid: uid(pid),
    }
}

/// NUL-terminated strings, as in `/proc/PID/cmdline`.
pub(super) fn nul_separated(texts: &[u8]) -> impl Iterator<Item = String> {
    let texts = texts.strip_suffix(&[0]).unwrap_or(texts);
    let words = texts.split(|byte| *byte == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned())
}

/// The user id. It is read from `status`, because root owns the folder of a process that guards its memory.
fn uid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of_user = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    of_user.split_ascii_whitespace().next()?.parse().ok()
}

fn has_gpu_open(pid: u32) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let mut opened = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok());
    opened.any(|path| {
        let number = path.to_str().and_then(|it| it.strip_prefix("/dev/nvidia"));
        number.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    })
}

pub(super) fn age(stat: &Stat) -> Option<Nanos> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    // SAFETY: reads a constant of the system; no pointer is passed.
    let n_ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let seconds = uptime - stat.began as f64 / n_ticks as f64;
    (seconds >= 0.0).then(|| Nanos::new((seconds * 1e9) as u64))
}

/// Whether there is such a process: one that is hidden may not be sent a signal, but it is there.
fn lives(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return false;
    };
    // SAFETY: signal 0 is none: it only asks whether one could be sent.
    let is_sendable = unsafe { libc::kill(pid, 0) } == 0;
    is_sendable || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}
