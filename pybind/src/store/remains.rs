//! What is left of the process that wrote a session: whether it is there, and whether the system
//! killed it.

use std::path::Path;

use super::file::Facts;

/// What a process writes of itself, so that others can tell what has become of it.
#[cfg(target_os = "linux")]
pub(crate) fn facts() -> Facts {
    let pid = std::process::id();
    let began = crate::sources::process::stat(pid).ok();
    let events = linux::memory_events();
    let n_kills = events.as_deref().and_then(linux::n_kills);
    let known = [
        ("pid", Some(pid.to_string())),
        ("boot", linux::boot()),
        ("pids", linux::pids()),
        ("began", began.map(|it| it.began.to_string())),
        ("memory_events", events),
        ("n_kills", n_kills.map(|n| n.to_string())),
    ];
    let known = known.into_iter();
    known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn facts() -> Facts {
    [("pid".to_owned(), std::process::id().to_string())].into()
}

/// The process that wrote these facts into that file is there.
#[cfg(target_os = "linux")]
pub(crate) fn is_running(path: &Path, facts: &Facts) -> bool {
    if linux::is_locked(path) {
        return true;
    }
    let is_ours = facts.get("boot") == linux::boot().as_ref()
        && facts.get("pids") == linux::pids().as_ref()
        && facts.contains_key("began");
    let pid = facts.get("pid").and_then(|pid| pid.parse().ok());
    let stat = pid.filter(|_| is_ours);
    let stat = stat.and_then(|pid| crate::sources::process::stat(pid).ok());
    stat.is_some_and(|stat| !stat.is_zombie && facts.get("began") == Some(&stat.began.to_string()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_running(_: &Path, facts: &Facts) -> bool {
    use sysinfo::{Pid, ProcessesToUpdate, System};

    let Some(pid) = facts.get("pid").and_then(|pid| pid.parse().ok()) else {
        return false;
    };
    let pid = Pid::from_u32(pid);
    let mut system = System::new();
    system.refresh_processes(ProcessesToUpdate::Some(&[pid]), true);
    let started = facts.get("started").and_then(|it| it.parse::<u64>().ok());
    let started = started.unwrap_or_default() / 1_000_000_000;
    // A process that began later has the number of one that is gone.
    system
        .process(pid)
        .is_some_and(|it| it.start_time() <= started)
}

/// The system says that it killed the process because memory ran out: in the process's group, or
/// in its log, where those can be read.
#[cfg(target_os = "linux")]
pub(crate) fn was_killed(facts: &Facts) -> bool {
    let events = facts.get("memory_events");
    let now = events.and_then(|path| linux::n_kills(path));
    let then = facts.get("n_kills").and_then(|n| n.parse::<u64>().ok());
    let is_same_boot = facts.get("boot") == linux::boot().as_ref();
    if is_same_boot && matches!((now, then), (Some(now), Some(then)) if now > then) {
        return true;
    }
    let pid = facts.get("pid").and_then(|pid| pid.parse().ok());
    is_same_boot && pid.is_some_and(linux::log_names_killed)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn was_killed(_: &Facts) -> bool {
    false
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "who has locked a file is told by libc alone")]
mod linux {
    use std::fs::{self, File, OpenOptions};
    use std::io::{ErrorKind, Read};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    /// Where SQLite locks what it has open: `PENDING_BYTE`, and what is behind it.
    const LOCKED_FROM: i64 = 0x4000_0000;
    const N_LOCKED: i64 = 512;
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

    /// The file in which the system counts what it has killed in this process's group.
    pub(super) fn memory_events() -> Option<String> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        // In a container the group that is seen as the root may be another one's inside.
        let inside = format!(
            "/sys/fs/cgroup{}/memory.events",
            group.trim_end_matches('/')
        );
        [inside, "/sys/fs/cgroup/memory.events".to_owned()]
            .into_iter()
            .find(|path| Path::new(path).exists())
    }

    /// How many processes the system has killed there because memory ran out.
    pub(super) fn n_kills(path: &str) -> Option<u64> {
        let events = fs::read_to_string(path).ok()?;
        let n = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))?;
        n.trim().parse().ok()
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

    /// Another process has the file open with SQLite. Not for a file that this process has open:
    /// closing it here would give back its locks.
    pub(super) fn is_locked(path: &Path) -> bool {
        let Ok(file) = File::open(path) else {
            return false;
        };
        let mut lock = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: LOCKED_FROM,
            l_len: N_LOCKED,
            l_pid: 0,
        };
        // SAFETY: the file is open, and the call writes nothing but this structure.
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
        answer == 0 && i32::from(lock.l_type) != libc::F_UNLCK
    }
}
