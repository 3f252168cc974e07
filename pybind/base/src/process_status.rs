//! Whether this process survives a new thread or a copy of itself, as read from `/proc`.

use std::fs;
use std::io;
use std::sync::LazyLock;

/// An error if the system may end whoever makes a thread or a process: there is a filter of system calls
/// (seccomp) that the parent does not have, so the program itself installed it. A container's filter is
/// the parent's, too; that of a service is not, but its parent is the init process.
pub(crate) fn allows_thread() -> io::Result<()> {
    check(&own())
}

/// The same, and an error if a debugger is attached: gdb takes the copy for a thread, and its end for that
/// of the program.
pub fn allows_copy() -> io::Result<()> {
    let own = own();
    if number(&own, "TracerPid:").is_some_and(|pid| pid != 0) {
        return Err(io::Error::other("a debugger is attached"));
    }
    check(&own)
}

fn check(own: &str) -> io::Result<()> {
    static N_INHERITED: LazyLock<Option<u64>> = LazyLock::new(|| {
        let parent = std::os::unix::process::parent_id();
        number(&status(parent), N_FILTERS).filter(|_| parent != INIT)
    });
    if N_INHERITED.is_some() && number(own, N_FILTERS) > *N_INHERITED {
        let words = "this process has restricted its own system calls";
        return Err(io::Error::other(words));
    }
    Ok(())
}

const N_FILTERS: &str = "Seccomp_filters:";
const INIT: u32 = 1;

fn own() -> String {
    status(std::process::id())
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
