//! The living processes that this one began, and those that they began.

use gpumem_model::units::{Bytes, Nanos};

/// A process that this one began, or one of those.
#[derive(Debug, Clone)]
pub struct LivingChild {
    /// Which process it is.
    pub id: ProcessId,
    /// The number of the process that began it.
    pub parent: u32,
    /// What it shares with no other process; `None` if there was no time to ask.
    pub own: Option<Bytes>,
    /// How long ago it began.
    pub age: Nanos,
    /// Its command line.
    pub command: String,
}

/// What names a process for ever: its number alone may be given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it began, in ticks since the machine did.
    pub began: u64,
}

#[cfg(target_os = "linux")]
pub use linux::{Children, end, own_bytes, pidfd};
#[cfg(not(target_os = "linux"))]
pub use portable::{Children, end};

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "whether there are children, and signals that only the right process gets, are libc's alone"
)]
mod linux {
    use std::collections::HashMap;
    use std::fs;
    use std::io;
    use std::mem;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::process;
    use std::time::{Duration, Instant};

    use gpumem_jobs::gpu_processes::shortened;
    use gpumem_model::units::Bytes;

    use super::super::system::{age, nul_separated};
    use super::{LivingChild, ProcessId};
    use crate::sources::process::{descends_from, stat};

    /// More than these are not looked at.
    const MAX_CHILDREN: usize = 512;
    /// To ask what a process has to itself takes the kernel a walk over its pages: no longer than this in all.
    const MAX_WALKS: Duration = Duration::from_millis(50);
    /// Processes of Python's own that hold nothing, by their command lines.
    const TRACKERS: [&str; 2] = ["resource_tracker", "semaphore_tracker"];
    const FORK_SERVER: &str = "multiprocessing.forkserver";

    /// Reads them, and caches what is expensive to read.
    #[derive(Default)]
    pub struct Children {
        /// The resident pages of each at the last walk, and what it had to itself then.
        known: HashMap<ProcessId, (u64, Bytes)>,
    }

    impl Children {
        /// Those that live now; without any child this is one call of the system.
        pub fn living(&mut self) -> Vec<LivingChild> {
            let mut known = HashMap::new();
            let mut living = Vec::new();
            if has_any() {
                let began = Instant::now();
                let own_pid = process::id();
                let mut parents = vec![own_pid];
                while let Some(parent) = parents.pop() {
                    for pid in children_of(parent) {
                        if living.len() == MAX_CHILDREN {
                            break;
                        }
                        let Some((child, works_for_python)) = self.child(pid, began, &mut known)
                        else {
                            continue;
                        };
                        parents.push(pid);
                        living.extend((!works_for_python).then_some(child));
                    }
                }
            }
            self.known = known;
            living
        }

        /// It, and whether it only serves Python's own modules and holds nothing. Nothing of one that has ended
        /// or is gpumem's own.
        fn child(
            &self,
            pid: u32,
            began: Instant,
            known: &mut HashMap<ProcessId, (u64, Bytes)>,
        ) -> Option<(LivingChild, bool)> {
            let stat = stat(pid).ok()?;
            if stat.is_zombie || !stat.signals_its_end {
                return None;
            }
            let id = ProcessId {
                pid,
                began: stat.began,
            };
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command: Vec<String> = nul_separated(&command).collect();
            let resident = resident_pages(pid);
            let then = self.known.get(&id).copied();
            let own = match then.filter(|(then, _)| Some(*then) == resident) {
                None if began.elapsed() < MAX_WALKS => {
                    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
                    resident.zip(text.ok().and_then(|text| own_bytes(&text)))
                }
                None => then,
                same => same,
            };
            known.extend(own.map(|own| (id, own)));
            let works_for_python = works_for_python(&command, stat.parent);
            let child = LivingChild {
                id,
                parent: stat.parent,
                own: own.map(|(_, own)| own),
                age: age(&stat).unwrap_or_default(),
                command: shortened(&command, true).unwrap_or(stat.name),
            };
            Some((child, works_for_python))
        }
    }

    fn works_for_python(command: &[String], parent: u32) -> bool {
        let says = |part: &str| command.iter().any(|word| word.contains(part));
        // What the server forks has its command line, too.
        let is_server = says(FORK_SERVER) && parent == process::id();
        is_server || TRACKERS.iter().any(|it| says(it))
    }

    /// This process has a child that signals its end, alive or to be waited for.
    fn has_any() -> bool {
        // SAFETY: zeroes are a valid value of this structure.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the call writes nothing but this structure.
        unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) == 0 }
    }

    /// Those that any thread of a process began.
    fn children_of(pid: u32) -> Vec<u32> {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        let threads = threads.into_iter().flatten().flatten();
        let texts = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
        let mut children = Vec::new();
        for text in texts {
            children.extend(
                text.split_ascii_whitespace()
                    .filter_map(|it| it.parse::<u32>().ok()),
            );
        }
        children
    }

    fn resident_pages(pid: u32) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// What a process has written and no other process maps, from its `smaps_rollup`.
    pub fn own_bytes(rollup: &str) -> Option<Bytes> {
        let mut lines = rollup.lines();
        let kib = lines.find_map(|line| line.strip_prefix("Private_Dirty:"))?;
        let kib: u64 = kib.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(Bytes::new(kib << 10))
    }

    /// Asks a process to end, and makes it if it has not after `patience`. False if it lives on, or is not one that
    /// this process, or a child of it, began.
    pub fn end(child: ProcessId, patience: Duration) -> bool {
        let Some(pidfd) = pidfd(child.pid) else {
            return false;
        };
        // From here on the number cannot be given to another process unnoticed.
        let is_it = stat(child.pid).is_ok_and(|it| it.began == child.began && it.signals_its_end);
        if !is_it || !descends_from(child.pid, process::id()) {
            return false;
        }
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            // SAFETY: the call takes no pointer but a null one.
            let sent = unsafe {
                let none = std::ptr::null::<libc::siginfo_t>();
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    pidfd.as_raw_fd(),
                    signal,
                    none,
                    0,
                )
            };
            if sent != 0 || has_ended(&pidfd, patience) {
                break;
            }
        }
        has_ended(&pidfd, Duration::ZERO)
    }

    /// It ends within `patience`. A signal, as of Ctrl-C, cuts no wait short.
    fn has_ended(pidfd: &OwnedFd, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            let mut polled = libc::pollfd {
                fd: pidfd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let left = until.saturating_duration_since(Instant::now());
            let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
            // SAFETY: the pointer is to one structure, which outlives the call.
            let n_ready = unsafe { libc::poll(&raw mut polled, 1, millis) };
            let is_interrupted =
                n_ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
            if !is_interrupted {
                return n_ready == 1;
            }
        }
    }

    /// A descriptor of a living process.
    pub fn pidfd(pid: u32) -> Option<OwnedFd> {
        let pid = i32::try_from(pid).ok()?;
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: it was opened just now and has no other owner.
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::time::Duration;

    use super::{LivingChild, ProcessId};

    /// This system does not list the children of a process.
    #[derive(Default)]
    pub struct Children;

    impl Children {
        /// None: they are not listed.
        #[expect(clippy::unused_self, reason = "as where it remembers")]
        pub fn living(&mut self) -> Vec<LivingChild> {
            Vec::new()
        }
    }

    /// No process is ended that was not listed.
    pub fn end(_: ProcessId, _: Duration) -> bool {
        false
    }
}
