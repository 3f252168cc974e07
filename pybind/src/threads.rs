//! Threads of our own, which no signal of the user's is delivered to.

use std::io;
use std::thread::{Builder, JoinHandle};

#[cfg(target_os = "linux")]
use crate::standing;

/// Starts a thread that handles no signal.
///
/// The kernel hands a signal of the process to any thread that does not block it. A Ctrl-C that is
/// handled in ours would not wake the main thread, and the user's cell would sleep on.
pub(crate) fn start(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    #[cfg(target_os = "linux")]
    if standing::Standing::own().restricts_itself {
        return Err(standing::restricted());
    }
    let spawn = || Builder::new().name(name.to_owned()).spawn(body);
    without_signals(spawn)
}

/// Blocks every signal on this thread for as long as `body` takes; a thread that it starts keeps them
/// blocked.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a thread's signals are told by libc alone")]
fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;
    use std::ptr;

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
