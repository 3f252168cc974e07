//! What glibc's `malloc` says of itself: how much the program has given back, and the system has not.
//!
//! `mallinfo2` adds up every arena of the process. It goes through the lists of free blocks, each
//! arena's under its lock: some microseconds as a rule, and 20 ms where a program has left 200,000
//! holes. So it is asked no more often than its last answer has earned: on such a heap a block that
//! comes from a hole, and goes back before the run ends, is not seen.
#![expect(unsafe_code, reason = "a function of the C library, by its name")]

use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use gpumem_model::units::Bytes;

use super::Freshness;

/// From glibc's `malloc.h`.
#[repr(C)]
struct Mallinfo2 {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

// SAFETY: it takes nothing, and may be called on any thread.
type Ask = unsafe extern "C" fn() -> Mallinfo2;

/// Faster than this it is asked whenever its figure is wanted.
const CHEAP: Duration = Duration::from_millis(1);

/// Else asking takes at most this part of the time: 5 % between the ends of runs, …
const REST_PER_READING: u32 = 20;
/// … and 0.4 % in the sampler's thread.
const REST_PER_SAMPLE: u32 = 250;

/// Held while an arena may be locked. A copy of the process that is made then could never allocate.
static UNDER_WAY: Mutex<()> = Mutex::new(());

/// How long a fork waits for the lock: in the child, nobody would release it.
const PATIENCE: Duration = Duration::from_millis(50);

/// Blocks of the arenas. A large block is a mapping of its own, which is gone when it is freed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arenas {
    /// In blocks that the program has.
    pub(super) used: Bytes,
    /// In blocks that it gave back, the end of the heap among them.
    pub(super) free: Bytes,
}

/// The latest answer.
pub(super) struct Malloc {
    arenas: Arenas,
    asked: Option<Asked>,
}

struct Asked {
    at: Instant,
    /// The shorter of the latest two: on a busy machine one of them may have had to wait.
    took: Duration,
    /// The latest.
    latest: Duration,
}

impl Malloc {
    pub(super) fn new() -> Self {
        Self {
            arenas: Arenas::default(),
            asked: None,
        }
    }

    /// What the arenas have, or had when it was asked last. `None` where `malloc` does not tell.
    pub(super) fn arenas(&mut self, freshness: Freshness) -> Option<Arenas> {
        let ask = ask()?;
        if self.is_due(freshness) {
            let at = Instant::now();
            let under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: glibc's function, which takes nothing and is safe on any thread.
            let told = unsafe { ask() };
            drop(under_way);
            self.arenas = Arenas {
                used: Bytes::new(told.uordblks as u64),
                free: Bytes::new(told.fordblks as u64),
            };
            let latest = at.elapsed();
            let before = self.asked.as_ref().map(|asked| asked.latest);
            let took = before.unwrap_or(latest).min(latest);
            self.asked = Some(Asked { at, took, latest });
        }
        Some(self.arenas)
    }

    fn is_due(&self, freshness: Freshness) -> bool {
        self.asked.as_ref().is_none_or(|asked| match freshness {
            Freshness::Now if asked.took <= CHEAP => true,
            Freshness::Now => asked.at.elapsed() >= asked.took * REST_PER_READING,
            Freshness::Recent => asked.at.elapsed() >= asked.latest * REST_PER_SAMPLE,
        })
    }
}

/// Keeps `malloc` from being asked until the guard is dropped. `None` if that takes too long.
pub(super) fn keep_still() -> Option<MutexGuard<'static, ()>> {
    let until = Instant::now() + PATIENCE;
    loop {
        match UNDER_WAY.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
            Err(TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
}

/// Whether `malloc` tells.
pub(super) fn is_told() -> bool {
    ask().is_some()
}

/// `mallinfo2` of the C library that runs here: glibc has it since 2.33, and musl has none.
fn ask() -> Option<Ask> {
    static ASK: OnceLock<Option<Ask>> = OnceLock::new();
    *ASK.get_or_init(|| {
        // SAFETY: a constant string; the result is the address of the function, or null.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        // SAFETY: the function of that name has this signature wherever there is one.
        (!found.is_null()).then(|| unsafe { mem::transmute::<*mut libc::c_void, Ask>(found) })
    })
}
