//! A copy of this process, as it stood at one instant, that looks and ends.
//!
//! Made by the bare system call and not by `fork()`: that runs the handlers of libraries (`OpenBLAS`
//! waits in its own for threads that wait for the GIL) and lets `SIGCHLD` and `wait()` of the user's
//! know of the child. The bare one is invisible to the user's program.
//!
//! Only the thread that made it goes on in the copy. What other threads were in the middle of stays
//! as it was: a lock of theirs is never released there. So the copy tries `malloc` first and says
//! that it works; one that says nothing is killed, and another is made.
#![expect(unsafe_code, reason = "the system's own calls")]

mod exclusions;
mod gaps;
mod mappings;
mod window;

use std::fs;
use std::io;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use gpumem_model::units::Bytes;
use gpumem_process::addresses::AddressRanges;

use super::{FaultPoint, faults};
use gpumem_base::pages::page_bytes;
use gpumem_base::{cpu_time, process_status};
use gpumem_machine::sources::host;
use window::CopyWindow;

pub(super) use exclusions::{learn, miss, survey};
pub(super) use mappings::are_many as has_many_mappings;

/// Where the copy finds itself, and where the original does.
pub(super) enum Side {
    /// In the copy: what it says, it says here.
    Child(Link),
    Parent(Child),
}

/// One end of the line between both.
pub(super) struct Link {
    socket: OwnedFd,
}

/// The copy, as the original sees it.
pub(super) struct Child {
    pub(super) process: Process,
    pub(super) link: Link,
    /// What the copy took of the original's time.
    pub(super) took: Duration,
    /// What the original had in memory.
    pub(super) resident: usize,
}

/// A process that ends with this, so that nothing of it is left.
pub(super) struct Process {
    /// 0 once it was waited for.
    pid: libc::pid_t,
}

/// Why nothing was received.
pub(super) enum Silence {
    /// The time limit was exceeded.
    Late,
    /// The other side is gone.
    Gone,
    /// The other side sleeps and will not be woken.
    Asleep,
    /// This thread is to pause.
    Paused,
}

/// Goes on twice: as the original, and as a copy of it.
///
/// The GIL must be held by this thread, so that no Python object is in the middle of a change.
/// The copy takes at most `room` of address space beyond what this process has.
pub(super) fn split(room: Option<Bytes>, leaves_out: bool) -> io::Result<Side> {
    process_status::allows_copy()?;
    let (own, childs) = pair()?;
    let most = room.and_then(|room| Some(address_space_used()? + room));
    let parent = process_id();
    let resident = exclusions::resident_bytes().unwrap_or_default();
    let signals = BlockedSignals::new();
    let malloc = host::keep_malloc_still();
    let began = cpu_time::spent();
    // Of the copy, too, as long as that lives.
    let mut left_out = ManuallyDrop::new(if leaves_out {
        exclusions::choose(resident)
    } else {
        AddressRanges::EMPTY
    });
    // The copy reads this list before it can say what it lacks.
    left_out.remove_itself();
    let window = CopyWindow::open(&mut left_out);
    faults::pause_in_copy();
    let none = 0_usize;
    // SAFETY: with no flags this copies the process as `fork` does, and tells nobody. The child goes
    // on in this frame, on its copy of the stack.
    let pid = unsafe { libc::syscall(libc::SYS_clone, none, none, none, none, none) };
    if pid == 0 {
        // Closed with everything else.
        mem::forget((own, signals));
        let line = childs.socket.as_raw_fd();
        gaps::watch(ManuallyDrop::new(window).left_out(), line);
        faults::begin(line);
        faults::at(FaultPoint::Begun);
        isolate(parent, line, most);
        faults::at(FaultPoint::Isolated);
        return Ok(Side::Child(childs));
    }
    let error = io::Error::last_os_error();
    drop(window);
    let took = cpu_time::spent().saturating_sub(began);
    drop(malloc);
    drop(signals);
    drop(ManuallyDrop::into_inner(left_out));
    if pid < 0 {
        return Err(error);
    }
    Ok(Side::Parent(Child {
        process: Process {
            pid: pid as libc::pid_t,
        },
        link: own,
        took,
        resident,
    }))
}

impl Process {
    /// It sleeps, although it has only this process to wait for.
    pub(super) fn is_asleep(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid));
        // The state stands behind the name, which may hold anything.
        stat.is_ok_and(|stat| {
            stat.rsplit(')')
                .next()
                .is_some_and(|it| it.starts_with(" S"))
        })
    }

    /// How it ended, once it has.
    fn wait(&mut self) -> String {
        let mut status = 0;
        let pid = mem::take(&mut self.pid);
        loop {
            // SAFETY: a child of this process that only this code waits for: it sends no signal.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WCLONE) };
            if waited == pid {
                return described(Some(status));
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return described(None);
            }
        }
    }

    /// Waits for a child whose line is closed, and says how it ended.
    pub(super) fn ended(mut self) -> String {
        self.wait()
    }
}

impl Drop for Process {
    /// Kills it if it still runs.
    fn drop(&mut self) {
        if self.pid != 0 {
            // SAFETY: it is not waited for yet, so the number is still its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }
}

fn described(status: Option<libc::c_int>) -> String {
    match status {
        Some(status) if libc::WIFSIGNALED(status) => {
            format!("it was ended by signal {}", libc::WTERMSIG(status))
        }
        Some(status) => format!("it ended with {}", libc::WEXITSTATUS(status)),
        None => "it is gone".to_owned(),
    }
}

/// Ends the copy at once: nothing that the user's program does when it ends is done.
pub(super) fn leave() -> ! {
    // SAFETY: it runs no handler and flushes nothing.
    unsafe { libc::_exit(0) }
}

/// Three sizes that `malloc` takes from different places, none of them this thread's own cache.
const PROBED: [usize; 3] = [1_100, 5_000, 40_000];

/// Hangs if a thread that is not here holds a lock of `malloc`.
pub(super) fn probe_malloc() {
    for size in PROBED {
        // SAFETY: what was allocated is freed; it is written to, so that nothing is left out.
        unsafe {
            let place = libc::malloc(size);
            if !place.is_null() {
                place.cast::<u8>().write_volatile(1);
            }
            libc::free(place);
        }
    }
}

/// Takes from the copy what reaches beyond it.
fn isolate(parent: libc::pid_t, kept: RawFd, most: Option<Bytes>) {
    end_with(parent);
    // First to go where memory runs out; a process that cannot be dumped may not say so any more.
    // Plain calls: a Rust file allocates.
    // SAFETY: constant strings, and a descriptor that was just opened.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        if file >= 0 {
            libc::write(file, c"1000".as_ptr().cast(), 4);
        }
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        if let Some(most) = most {
            let mut limit = address_space_limit();
            limit.rlim_cur = limit.rlim_cur.min(most.get());
            libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
        }
    }
    close_all_but(kept);
    // A library that aborts must not print to the user's terminal.
    // SAFETY: every descriptor but the line is closed: these become 0, 1 and 2.
    unsafe {
        let mut fd = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        while (0..2).contains(&fd) {
            fd = libc::dup(fd);
        }
    }
}

/// The process id of the original.
static ORIGINAL: AtomicI32 = AtomicI32::new(0);

/// Ends this copy with its original. The system also sends the signal when no more than the thread
/// has ended that made the copy.
fn end_with(original: libc::pid_t) {
    extern "C" fn on_end(_signal: libc::c_int) {
        // SAFETY: it only asks.
        if unsafe { libc::getppid() } != ORIGINAL.load(Ordering::Relaxed) {
            leave();
        }
    }
    ORIGINAL.store(original, Ordering::Relaxed);
    let signal = libc::SIGUSR2;
    // SAFETY: plain structures for the calls; every signal is blocked until the handler is there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_end as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        let mut ends = std::mem::zeroed();
        libc::sigemptyset(&raw mut ends);
        libc::sigaddset(&raw mut ends, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ends, ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0);
    }
    // It may have ended before that.
    on_end(signal);
}

/// Pipes and sockets of the user's see their end when the user's own process closes them.
fn close_all_but(kept: RawFd) {
    let close_range = |first: u32, last: u32| {
        // SAFETY: this copy uses only the line's descriptor.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    };
    let kept = kept as u32;
    let is_closed = (kept == 0 || close_range(0, kept - 1)) && close_range(kept + 1, u32::MAX);
    if is_closed {
        return;
    }
    // Before Linux 5.9.
    for fd in (0..=MOST_DESCRIPTORS).filter(|fd| *fd != kept.cast_signed()) {
        // SAFETY: this copy does not use this descriptor; closing one that is not open is harmless.
        unsafe { libc::close(fd) };
    }
}

const MOST_DESCRIPTORS: RawFd = 1 << 16;

/// What this process can still get of address space, if that is limited.
pub(super) fn address_space() -> Option<Bytes> {
    let limit = address_space_limit().rlim_cur;
    let is_limited = limit != libc::RLIM_INFINITY;
    let left = is_limited.then(|| Some(Bytes::new(limit).saturating_sub(address_space_used()?)));
    left.flatten().into_iter().chain(commit_left()).min()
}

/// What the system still promises to all processes, if it promises no more than it has
/// (`vm.overcommit_memory = 2`).
fn commit_left() -> Option<Bytes> {
    let mode = fs::read_to_string("/proc/sys/vm/overcommit_memory").ok()?;
    if mode.trim() != "2" {
        return None;
    }
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(Bytes::new(kib << 10))
    };
    Some(bytes("CommitLimit:")?.saturating_sub(bytes("Committed_AS:")?))
}

fn address_space_limit() -> libc::rlimit {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: it is written to a limit.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    limit
}

fn address_space_used() -> Option<Bytes> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let n_pages: u64 = statm.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Bytes::new(n_pages * page_bytes() as u64))
}

fn process_id() -> libc::pid_t {
    // SAFETY: it only asks.
    unsafe { libc::getpid() }
}

/// No signal is delivered to this thread as long as this lives.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> Self {
        let (mut every, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both are places for a set of signals, and written by these calls.
        unsafe {
            libc::sigfillset(every.as_mut_ptr());
            // A program may answer system calls itself.
            libc::sigdelset(every.as_mut_ptr(), libc::SIGSYS);
            libc::sigemptyset(before.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, every.as_ptr(), before.as_mut_ptr());
            Self {
                before: before.assume_init(),
            }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set that this thread had.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}

fn pair() -> io::Result<(Link, Link)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; each is owned once from here on.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let link = |end| Link {
            socket: OwnedFd::from_raw_fd(end),
        };
        Ok((link(ends[0]), link(ends[1])))
    }
}

impl Link {
    /// Sends all of it; false if the other side is gone. It waits for room.
    pub(super) fn send(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            // SAFETY: the bytes are borrowed for the call. Who is gone raises no signal.
            let n = unsafe {
                let flags = libc::MSG_NOSIGNAL;
                libc::send(
                    self.socket.as_raw_fd(),
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    flags,
                )
            };
            match usize::try_from(n) {
                Ok(n) => bytes = &bytes[n.min(bytes.len())..],
                Err(_) if is_interrupted() => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Fills `place`; `wait` returns when there may be something to receive.
    pub(super) fn receive(
        &self,
        place: &mut [u8],
        wait: &mut dyn FnMut() -> Result<(), Silence>,
    ) -> Result<(), Silence> {
        let mut n_received = 0;
        while n_received < place.len() {
            wait()?;
            let rest = &mut place[n_received..];
            // SAFETY: the buffer has room for these bytes.
            let n = unsafe {
                let flags = libc::MSG_DONTWAIT;
                libc::recv(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr().cast(),
                    rest.len(),
                    flags,
                )
            };
            match usize::try_from(n) {
                Ok(0) => return Err(Silence::Gone),
                Ok(n) => n_received += n,
                Err(_) if is_interrupted() => {}
                Err(_) => return Err(Silence::Gone),
            }
        }
        Ok(())
    }

    /// Waits until there is something to receive or the sender is gone.
    pub(super) fn wait_until(&self, until: Instant) -> Result<(), Silence> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut descriptor = libc::pollfd {
                fd: self.socket.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let left_millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
            // The last part of a millisecond counts as one.
            let timeout = left_millis.saturating_add(i32::from(!left.is_zero()));
            // SAFETY: one live descriptor.
            match unsafe { libc::poll(&raw mut descriptor, 1, timeout) } {
                0 => return Err(Silence::Late),
                1.. => return Ok(()),
                _ if is_interrupted() => {}
                _ => return Err(Silence::Gone),
            }
        }
    }
}

fn is_interrupted() -> bool {
    let error = io::Error::last_os_error();
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}
