//! How the system and others treat this process.

use std::fs;
use std::io;
use std::sync::LazyLock;

/// What of it matters to whoever makes threads and processes.
pub(crate) struct Standing {
    /// A debugger watches it, and what it makes.
    pub(crate) is_traced: bool,
    /// It has a filter of system calls (seccomp) that its parent has not, so that the program itself
    /// installed it. A container's filter is the parent's, too.
    pub(crate) restricts_itself: bool,
}

impl Standing {
    pub(crate) fn own() -> Self {
        static N_INHERITED: LazyLock<Option<u64>> = LazyLock::new(|| {
            let parent = std::os::unix::process::parent_id();
            number(&status(parent), "Seccomp_filters:")
        });
        let own = status(std::process::id());
        let n_filters = number(&own, "Seccomp_filters:");
        let n_own = n_filters.zip(*N_INHERITED);
        Self {
            is_traced: number(&own, "TracerPid:").is_some_and(|pid| pid != 0),
            restricts_itself: n_own.is_some_and(|(own, inherited)| own > inherited),
        }
    }
}

/// Of a process that restricts itself: the system may end whoever makes a thread or a process.
pub(crate) fn restricted() -> io::Error {
    io::Error::other("this process has restricted its own system calls")
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// Of a line such as `TracerPid:\t0`.
fn number(status: &str, name: &str) -> Option<u64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    value.trim().parse().ok()
}
