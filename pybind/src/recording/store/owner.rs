//! Whether the process that wrote a file still runs, or was killed by the system.
//!
//! A file may be somebody else's: nothing that it names is opened. Its facts are only compared with what this
//! process finds out by itself.

use std::path::Path;

use super::file::{self, SessionFacts};

/// Facts that a process writes about itself, so that others can check whether it still runs.
#[cfg(target_os = "linux")]
pub(crate) fn facts() -> SessionFacts {
    let pid = std::process::id();
    let began = gpumem_machine::sources::process::stat(pid).ok();
    let events = linux::memory_events();
    let n_kills = events.as_ref().and_then(|events| events.n_kills);
    let known = [
        ("pid", Some(pid.to_string())),
        ("boot", linux::boot()),
        ("pids", linux::pids()),
        ("began", began.map(|it| it.began.to_string())),
        ("memory_group", events.map(|events| events.group)),
        ("n_kills", n_kills.map(|n| n.to_string())),
    ];
    let known = known.into_iter();
    known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn facts() -> SessionFacts {
    let began = portable::began(std::process::id()).map(|it| it.to_string());
    let pid = Some(std::process::id().to_string());
    let known = [("pid", pid), ("began", began)].into_iter();
    known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Whether the process that wrote these facts into that file still runs; `None` if unknown.
pub(crate) fn is_running(path: &Path, facts: &SessionFacts) -> Option<bool> {
    // A fork of it may still have its lock.
    here(facts).or_else(|| file::is_locked(path))
}

/// Whether a process of this machine runs, if this process can see it.
#[cfg(target_os = "linux")]
fn here(facts: &SessionFacts) -> Option<bool> {
    let same = |name: &str, own: Option<String>| own.is_some() && facts.get(name) == own.as_ref();
    let is_here = same("boot", linux::boot()) && same("pids", linux::pids());
    let began = facts.get("began").filter(|_| is_here)?;
    let pid = facts.get("pid")?.parse().ok()?;
    let stat = gpumem_machine::sources::process::stat(pid).ok();
    Some(stat.is_some_and(|stat| !stat.is_zombie && *began == stat.began.to_string()))
}

#[cfg(not(target_os = "linux"))]
fn here(facts: &SessionFacts) -> Option<bool> {
    let began: u64 = facts.get("began")?.parse().ok()?;
    let pid = facts.get("pid")?.parse().ok()?;
    Some(portable::began(pid) == Some(began))
}

/// The system says that it killed the process because memory ran out: in the process's group, or
/// in its log, where those can be read.
#[cfg(target_os = "linux")]
pub(crate) fn was_killed(facts: &SessionFacts) -> bool {
    if facts.get("boot") != linux::boot().as_ref() {
        return false;
    }
    let events = linux::memory_events();
    let of_group = events.filter(|it| facts.get("memory_group") == Some(&it.group));
    let now = of_group.and_then(|events| events.n_kills);
    let then = facts.get("n_kills").and_then(|n| n.parse::<u64>().ok());
    if matches!((now, then), (Some(now), Some(then)) if now > then) {
        return true;
    }
    let pid = facts.get("pid").and_then(|pid| pid.parse().ok());
    pid.is_some_and(linux::log_names_killed)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn was_killed(_: &SessionFacts) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use sysinfo::{Pid, ProcessesToUpdate, System};

    /// When a process that is there began, in seconds since 1970.
    pub(super) fn began(pid: u32) -> Option<u64> {
        let pid = Pid::from_u32(pid);
        let mut system = System::new();
        system.refresh_processes(ProcessesToUpdate::Some(&[pid]), true);
        Some(system.process(pid)?.start_time())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File, OpenOptions};
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    /// The system's log is not read any further.
    const N_MESSAGES: usize = 20_000;

    /// This start of the machine.
    pub(super) fn boot() -> Option<String> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned())
    }

    /// The namespace of this process's numbers.
    pub(super) fn pids() -> Option<String> {
        let link = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(link.to_string_lossy().into_owned())
    }

    /// What the system counts in this process's control group.
    pub(super) struct MemoryEvents {
        /// Tells the group from others: containers call theirs by the same path.
        pub(super) group: String,
        /// How many processes it has killed there because memory ran out.
        pub(super) n_kills: Option<u64>,
    }

    pub(super) fn memory_events() -> Option<MemoryEvents> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        // In a container the group that is seen as the root may be another one's inside.
        let inside = format!(
            "/sys/fs/cgroup{}/memory.events",
            group.trim_end_matches('/')
        );
        let paths = [&*inside, "/sys/fs/cgroup/memory.events"];
        let mut events = paths.iter().find_map(|path| File::open(path).ok())?;
        let found = events.metadata().ok()?;
        let mut counts = String::new();
        events.read_to_string(&mut counts).ok()?;
        let mut counts = counts.lines();
        let n_kills = counts.find_map(|line| line.strip_prefix("oom_kill "));
        Some(MemoryEvents {
            group: format!("{}:{}", found.dev(), found.ino()),
            n_kills: n_kills.and_then(|n| n.trim().parse().ok()),
        })
    }

    /// The system's log says that this process was killed; false where it cannot be read.
    pub(super) fn log_names_killed(pid: u32) -> bool {
        let mut options = OpenOptions::new();
        let log = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg");
        let Ok(mut log) = log else { return false };
        let words = format!("Killed process {pid} (");
        let mut message = [0; 8192];
        for _ in 0..N_MESSAGES {
            match log.read(&mut message) {
                Ok(0) => return false,
                Ok(n) => {
                    if String::from_utf8_lossy(&message[..n]).contains(&words) {
                        return true;
                    }
                }
                // Messages were overwritten meanwhile: the next ones are there.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return false,
            }
        }
        false
    }
}
