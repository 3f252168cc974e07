//! How the children of this process end, as their parent sees it.
//!
//! One thread sleeps until a child makes its file or ends. It looks at the exit status and leaves it:
//! whoever started the child still waits for it.
#![expect(unsafe_code, reason = "of a process that ends libc alone tells")]

use std::collections::HashMap;
use std::ffi::CString;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex};

use gpumem_model::units::Nanos;

use super::found;
use crate::recording::store;
use gpumem_base::clock::Clock;
use gpumem_base::locks::lock;
use gpumem_base::threads::{self, Progress};
use gpumem_machine::processes::children::pidfd;

/// More children than these are not watched at once.
const MAX_WATCHED: usize = 512;

/// Polling interval: a grandchild's end is known only once its own parent has waited for it.
const AGAIN: i32 = 100;
const MAX_TRIES: u8 = 50;

static WATCHER: Mutex<Option<Watcher>> = Mutex::new(None);

struct Watcher {
    pid: u32,
    inotify: i32,
}

struct WatchedChild {
    pidfd: OwnedFd,
    file: PathBuf,
    clock: Clock,
}

/// A child that has ended with an unknown status.
struct EndedChild {
    child: WatchedChild,
    at: Nanos,
    n_tries: u8,
}

/// Notes how children end that record themselves in `folder`, by the session's clock. Where this cannot
/// be watched, nobody knows how they end. The first child makes the folder.
pub(crate) fn watch(folder: &Path, clock: Clock) {
    let Some(sessions) = folder.parent() else {
        return;
    };
    if store::create_folder(sessions).is_err() {
        return;
    }
    let mut watcher = lock(&WATCHER);
    if watcher.as_ref().is_none_or(|it| it.pid != process::id()) {
        *watcher = Watcher::start(folder, clock);
    } else if let Some(watcher) = watcher.as_ref() {
        watcher.add(folder, clock);
    }
}

/// A folder of children that may not be there yet.
#[derive(Clone)]
struct Folder {
    path: PathBuf,
    clock: Clock,
    /// inotify's numbers of the folder around it, and of the folder itself once it is there.
    around: i32,
    itself: Option<i32>,
}

/// The folders that are watched.
static FOLDERS: Mutex<Vec<Folder>> = Mutex::new(Vec::new());

impl Watcher {
    fn start(folder: &Path, clock: Clock) -> Option<Self> {
        // SAFETY: the call takes no pointer.
        let inotify = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if inotify < 0 {
            return None;
        }
        // SAFETY: it was opened just now and is nobody else's.
        let owned = unsafe { OwnedFd::from_raw_fd(inotify) };
        let watcher = Self {
            pid: process::id(),
            inotify,
        };
        watcher.add(folder, clock);
        let awake = Arc::new(eventfd()?);
        let waker = Arc::clone(&awake);
        let mut watching = WatchedChildren::default();
        let work = move || watching.run(&owned, &awake);
        threads::start("gpumem-children", work, move || wake(&waker)).ok()?;
        Some(watcher)
    }

    fn add(&self, folder: &Path, clock: Clock) {
        let around = folder.parent().and_then(|it| add(self.inotify, it));
        if let Some(around) = around {
            let mut folders = lock(&FOLDERS);
            folders.push(Folder {
                path: folder.to_owned(),
                clock,
                around,
                itself: None,
            });
        }
    }
}

fn add(inotify: i32, folder: &Path) -> Option<i32> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // A folder is created; a file gets its name when it has its first frames.
    let events = libc::IN_CREATE | libc::IN_MOVED_TO;
    // SAFETY: the path ends with a zero and outlives the call.
    let wd = unsafe { libc::inotify_add_watch(inotify, path.as_ptr(), events) };
    (wd >= 0).then_some(wd)
}

#[derive(Default)]
struct WatchedChildren {
    children: HashMap<u32, WatchedChild>,
    ended: Vec<EndedChild>,
}

impl WatchedChildren {
    /// The thread's life. `awake` wakes it when threads pause.
    fn run(&mut self, inotify: &OwnedFd, awake: &OwnedFd) -> Progress {
        while !threads::are_paused() {
            let waiting = |fd: i32| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            let pids: Vec<u32> = self.children.keys().copied().collect();
            let mut polled = vec![waiting(inotify.as_raw_fd()), waiting(awake.as_raw_fd())];
            polled.extend(
                pids.iter()
                    .map(|pid| waiting(self.children[pid].pidfd.as_raw_fd())),
            );
            let patience = if self.ended.is_empty() { -1 } else { AGAIN };
            let (first, n_polled) = (polled.as_mut_ptr(), polled.len() as libc::nfds_t);
            // SAFETY: the pointer and the length are those of one vector.
            let answer = unsafe { libc::poll(first, n_polled, patience) };
            if answer < 0 {
                if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                return Progress::Done;
            }
            for (pid, polled) in pids.iter().zip(&polled[2..]) {
                if polled.revents != 0
                    && let Some(child) = self.children.remove(pid)
                {
                    let at = child.clock.now();
                    let n_tries = 0;
                    self.ended.push(EndedChild { child, at, n_tries });
                }
            }
            self.ended.retain_mut(|ended| !ended.is_noted());
            if polled[0].revents != 0 {
                for (file, pid, clock) in created(inotify) {
                    if self.children.len() < MAX_WATCHED
                        && let Some(pidfd) = pidfd(pid)
                    {
                        self.children
                            .insert(pid, WatchedChild { pidfd, file, clock });
                    }
                }
            }
            if polled[1].revents != 0 {
                sleep_again(awake);
            }
        }
        Progress::Paused
    }
}

fn eventfd() -> Option<OwnedFd> {
    // SAFETY: the call takes no pointer.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    // SAFETY: it was opened just now and is nobody else's.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn wake(awake: &OwnedFd) {
    let one = 1_u64;
    // SAFETY: eight bytes are borrowed for the call.
    unsafe {
        libc::write(
            awake.as_raw_fd(),
            (&raw const one).cast(),
            size_of_val(&one),
        )
    };
}

fn sleep_again(awake: &OwnedFd) {
    let mut n = 0_u64;
    // SAFETY: there is room for eight bytes.
    unsafe { libc::read(awake.as_raw_fd(), (&raw mut n).cast(), size_of_val(&n)) };
}

/// The files that children have made since this was last called.
fn created(inotify: &OwnedFd) -> Vec<(PathBuf, u32, Clock)> {
    const HEAD: usize = mem::size_of::<libc::inotify_event>();
    let mut buffer = [0_u8; 1 << 13];
    // SAFETY: the pointer and the length are those of one array.
    let n_read = unsafe {
        libc::read(
            inotify.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    let mut rest = &buffer[..usize::try_from(n_read).unwrap_or_default()];
    let mut created = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(HEAD) {
        let number = |at: usize| {
            let bytes = head[at..at + 4].try_into().expect("four bytes");
            u32::from_ne_bytes(bytes)
        };
        let (wd, length) = (number(0).cast_signed(), number(12) as usize);
        let Some((name, after)) = after.split_at_checked(length) else {
            break;
        };
        rest = after;
        let name = String::from_utf8_lossy(name);
        let name = name.trim_end_matches('\0');
        let mut folders = lock(&FOLDERS);
        for folder in folders.iter_mut() {
            let is_its_own = folder.path.file_name().is_some_and(|it| it == name);
            let mut files = Vec::new();
            if folder.itself == Some(wd) {
                files.push(folder.path.join(name));
            } else if folder.around == wd && is_its_own {
                folder.itself = add(inotify.as_raw_fd(), &folder.path);
                // Its first child may have been faster.
                files.extend(found::files(&folder.path));
            }
            let known = files.into_iter().filter_map(|file| {
                let pid = found::pid(&file)?;
                Some((file, pid, folder.clock))
            });
            created.extend(known);
        }
    }
    created
}

impl EndedChild {
    /// Its exit status is noted, or only its parent knows it.
    fn is_noted(&mut self) -> bool {
        let pidfd = &self.child.pidfd;
        let code = waited(pidfd).or_else(|| reaped(pidfd));
        if code.is_some() || self.n_tries == 0 {
            // Its parent may have noted it already.
            let by_parent = found::noted(&self.child.file).and_then(|it| it.code);
            found::note(&self.child.file, self.at, code.or(by_parent));
        }
        self.n_tries += 1;
        code.is_some() || self.n_tries > MAX_TRIES
    }
}

/// The exit code, or the signal as a negative number, of a child that nobody has waited for yet. It is
/// left to be waited for.
fn waited(pidfd: &OwnedFd) -> Option<i32> {
    // SAFETY: zeroes are a valid value of this structure.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let id = libc::id_t::try_from(pidfd.as_raw_fd()).ok()?;
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the call writes nothing but this structure.
    let answer = unsafe { libc::waitid(libc::P_PIDFD, id, &raw mut info, options) };
    // SAFETY: a child's state has changed, if the call found one: these fields were written.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if answer != 0 || pid == 0 {
        return None;
    }
    Some(match info.si_code {
        libc::CLD_EXITED => status,
        _ => -status,
    })
}

/// The same of a child that was waited for: Linux 6.15 remembers.
fn reaped(pidfd: &OwnedFd) -> Option<i32> {
    /// `PIDFD_INFO_EXIT`
    const EXIT: u64 = 1 << 3;
    /// `PIDFD_GET_INFO`, of a structure of 64 bytes.
    const GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xff << 8) | 0x0b;
    #[repr(C)]
    struct PidfdInfo {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    let mut info = PidfdInfo {
        mask: EXIT,
        cgroup: 0,
        ids: [0; 11],
        exit_code: 0,
    };
    // SAFETY: the kernel writes at most the 64 bytes that the number of the call names.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    if answer != 0 || info.mask & EXIT == 0 {
        return None;
    }
    let status = info.exit_code;
    Some(if libc::WIFSIGNALED(status) {
        -libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    })
}
