//! Threads of our own: no signal of the user's is delivered to them, and no fork of the user's meets them.
//!
//! Since 3.12, Python warns of a fork in a process with several threads. In a program that has none of its
//! own, a fork therefore pauses ours: their work returns and their threads end. As soon as the fork is over,
//! new threads go on with the same work.
#![expect(unsafe_code, reason = "a thread's signals, a list that is never freed")]

use std::ffi::{c_int, c_void};
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::locks::{lock, unpoisoned};
#[cfg(target_os = "linux")]
use crate::process_status;

/// A fork waits no longer for work to return: on a busy machine, a thread may not run for a while.
const PATIENCE: Duration = Duration::from_secs(1);

static ARE_PAUSED: AtomicBool = AtomicBool::new(false);

/// Why a thread's work has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has no more to do.
    Done,
    /// [`are_paused`]: it will be called again.
    Paused,
}

/// Work is to return soon.
pub fn are_paused() -> bool {
    ARE_PAUSED.load(Ordering::Acquire)
}

/// Starts a thread whose work can be paused. `wake` wakes it from a sleep in which it would not notice.
pub fn start(
    name: &str,
    work: impl FnMut() -> Progress + Send + 'static,
    wake: impl Fn() + Send + Sync + 'static,
) -> io::Result<()> {
    let thread = Arc::new(KeptThread {
        name: name.to_owned(),
        work: Mutex::new(Some(Box::new(work))),
        wake: Box::new(wake),
        handle: Mutex::new(None),
        is_paused: AtomicBool::new(false),
    });
    let threads = Threads::of_this_process();
    // The forking code has not returned to the interpreter yet.
    threads.resume();
    threads.start(thread)
}

/// Starts a thread whose work is short, so that nothing pauses it.
pub fn start_once(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut work = Some(work);
    let body = move || {
        if let Some(work) = work.take() {
            work();
        }
        Progress::Done
    };
    start(name, body, || {})
}

/// A thread, and the one after it that goes on with its work.
struct KeptThread {
    name: String,
    /// Locked as long as it works; `None` once it is done.
    work: Mutex<Option<ThreadWork>>,
    wake: Box<dyn Fn() + Send + Sync>,
    handle: Mutex<Option<JoinHandle<()>>>,
    /// It has ended, and its work has not. Written under the lock of the list.
    is_paused: AtomicBool,
}

type ThreadWork = Box<dyn FnMut() -> Progress + Send>;

/// The threads of one process: living, paused, and ended but not yet joined.
struct Threads {
    pid: u32,
    all: Mutex<Vec<Arc<KeptThread>>>,
    /// Some thread's work has returned.
    returned: Condvar,
    /// A fork has waited in vain since then: the next ones do not wait for the same work.
    is_stuck: AtomicBool,
}

impl Threads {
    /// In a process that was forked, its parent's threads do not exist, and their list may be locked for
    /// ever: a new one takes its place.
    fn of_this_process() -> &'static Self {
        static CURRENT: AtomicPtr<Threads> = AtomicPtr::new(ptr::null_mut());
        let pid = process::id();
        let current = CURRENT.load(Ordering::Acquire);
        // SAFETY: it is null, or was leaked below.
        if let Some(threads) = unsafe { current.as_ref() }.filter(|it| it.pid == pid) {
            return threads;
        }
        let new: &Self = Box::leak(Box::new(Self {
            pid,
            all: Mutex::default(),
            returned: Condvar::new(),
            is_stuck: AtomicBool::new(false),
        }));
        let place = ptr::from_ref(new).cast_mut();
        let was_first =
            CURRENT.compare_exchange(current, place, Ordering::AcqRel, Ordering::Acquire);
        // Another thread of this process was faster.
        was_first.map_or_else(|_| Self::of_this_process(), |_| new)
    }

    fn start(&'static self, thread: Arc<KeptThread>) -> io::Result<()> {
        self.forget_the_ended();
        let mut all = lock(&self.all);
        let own = Arc::clone(&thread);
        let handle = spawn(&thread.name, move || self.run(&own))?;
        *lock(&thread.handle) = Some(handle);
        all.push(thread);
        Ok(())
    }

    fn run(&self, thread: &KeptThread) {
        let mut work = lock(&thread.work);
        while let Some(body) = work.as_mut() {
            // The panic has already been printed.
            let returned = panic::catch_unwind(AssertUnwindSafe(body));
            let _all = lock(&self.all);
            self.is_stuck.store(false, Ordering::Relaxed);
            match returned.unwrap_or(Progress::Done) {
                Progress::Done => drop(work.take()),
                Progress::Paused if are_paused() => {
                    thread.is_paused.store(true, Ordering::Relaxed);
                    break;
                }
                // The fork is over already.
                Progress::Paused => {}
            }
        }
        drop(work);
        // A waiting thread has either seen the change or is already waiting.
        drop(lock(&self.all));
        self.returned.notify_all();
    }

    fn forget_the_ended(&self) {
        let is_done =
            |thread: &mut Arc<KeptThread>| thread.work.try_lock().is_ok_and(|work| work.is_none());
        let done: Vec<_> = lock(&self.all).extract_if(.., is_done).collect();
        for thread in done {
            thread.join();
        }
    }

    /// Has all work return and all threads end, if no other thread is in the process.
    fn pause(&self) {
        self.forget_the_ended();
        let all = lock(&self.all);
        if all.is_empty() || n_threads() != Some(all.len() + 1) {
            return;
        }
        ARE_PAUSED.store(true, Ordering::Release);
        let threads = all.clone();
        // To wake one takes a lock of its own.
        drop(all);
        for thread in &threads {
            (thread.wake)();
        }
        let all = lock(&self.all);
        let is_working = |thread: &Arc<KeptThread>| {
            matches!(thread.work.try_lock(), Err(TryLockError::WouldBlock))
        };
        let some_work = |all: &mut Vec<Arc<KeptThread>>| all.iter().any(is_working);
        let patience = if self.is_stuck.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            PATIENCE
        };
        let (all, waited) = unpoisoned(self.returned.wait_timeout_while(all, patience, some_work));
        self.is_stuck.store(waited.timed_out(), Ordering::Relaxed);
        let ended: Vec<_> = all.iter().filter(|it| !is_working(it)).cloned().collect();
        drop(all);
        for thread in ended {
            thread.join();
        }
    }

    /// Starts threads for all work that was paused.
    fn resume(&'static self) {
        if !are_paused() {
            return;
        }
        let mut all = lock(&self.all);
        ARE_PAUSED.store(false, Ordering::Release);
        let was_paused =
            |thread: &mut Arc<KeptThread>| thread.is_paused.swap(false, Ordering::Relaxed);
        let paused: Vec<_> = all.extract_if(.., was_paused).collect();
        drop(all);
        for thread in paused {
            // Without a thread the work is not done, as if it could not have been begun.
            drop(self.start(thread));
        }
    }
}

impl KeptThread {
    fn join(&self) {
        let handle = lock(&self.handle).take();
        // It does not panic.
        drop(handle.map(JoinHandle::join));
    }
}

/// Of this process; `None` if the system does not report it.
fn n_threads() -> Option<usize> {
    Some(fs::read_dir("/proc/self/task").ok()?.count())
}

/// Has forks pause the threads.
pub fn watch_forks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let os = module.py().import("os")?;
    let warns = module.py().version_info() >= (3, 12);
    if !warns || !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let hooks = PyDict::new(module.py());
    hooks.set_item("before", wrap_pyfunction!(fork_begins, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(fork_is_over, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(is_forked, module)?)?;
    os.call_method("register_at_fork", (), Some(&hooks))
        .map(drop)
}

/// The frame that forks: compared, and nothing else.
static FORKING: AtomicPtr<ffi::PyFrameObject> = AtomicPtr::new(ptr::null_mut());

/// When the fork was over.
static FORKED_AT: Mutex<Option<Instant>> = Mutex::new(None);
/// What another library's handler may take.
const MAX_HANDLER_TIME: Duration = Duration::from_secs(1);

/// One of them may wait for the GIL.
#[pyfunction]
fn fork_begins(py: Python<'_>) {
    py.detach(|| Threads::of_this_process().pause());
    FORKING.store(frame(), Ordering::Relaxed);
}

/// Python counts the threads only after this: they start when the frame that forks goes on.
#[pyfunction]
fn fork_is_over() {
    if are_paused() {
        *lock(&FORKED_AT) = Some(Instant::now());
        resume_soon();
    }
}

#[pyfunction]
fn is_forked() {
    ARE_PAUSED.store(false, Ordering::Release);
}

fn resume_soon() {
    // SAFETY: a function that lives as long as the process, and takes nothing.
    let is_full = unsafe { ffi::Py_AddPendingCall(Some(go_on), ptr::null_mut()) } != 0;
    if is_full {
        Threads::of_this_process().resume();
    }
}

/// The interpreter comes by between two instructions. They may be those of another library's handler,
/// which the fork calls before the threads are counted.
extern "C" fn go_on(_: *mut c_void) -> c_int {
    let is_in_handler = frame() != FORKING.load(Ordering::Relaxed);
    let is_early = lock(&FORKED_AT).is_some_and(|it| it.elapsed() < MAX_HANDLER_TIME);
    if is_in_handler && is_early {
        resume_soon();
    } else {
        Threads::of_this_process().resume();
    }
    0
}

/// The frame that runs in this thread, which has the GIL.
fn frame() -> *mut ffi::PyFrameObject {
    // SAFETY: the GIL is held.
    unsafe { ffi::PyEval_GetFrame() }
}

/// Starts a thread that handles no signal.
///
/// The kernel hands a signal of the process to any thread that does not block it. A Ctrl-C that is
/// handled in ours would not wake the main thread, and the user's cell would sleep on.
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    #[cfg(target_os = "linux")]
    process_status::allows_thread()?;
    let spawn = || Builder::new().name(name.to_owned()).spawn(body);
    without_signals(spawn)
}

/// Blocks every signal on this thread for as long as `body` takes; a thread that it starts keeps them
/// blocked.
#[cfg(target_os = "linux")]
fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;

    let (mut every, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both are places for a set of signals; the call writes the second before it is read.
    let is_blocked = unsafe {
        libc::sigfillset(every.as_mut_ptr());
        // A program may answer system calls itself: the system ends a thread that blocks this.
        libc::sigdelset(every.as_mut_ptr(), libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_BLOCK, every.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = body();
    if is_blocked {
        // SAFETY: the set was written by the call above, which did not fail.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    result
}

#[cfg(not(target_os = "linux"))]
fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    body()
}
