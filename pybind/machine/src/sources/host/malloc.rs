//! The heap of glibc's `malloc`: how much the program has freed without `malloc` returning it to
//! the system.
//!
//! `mallinfo2` adds up every arena of the process. It walks the lists of free blocks, each under
//! its arena's lock. This usually takes some microseconds, but 20 ms if a program has left 200,000
//! holes. The slower the last call was, the rarer are the next ones: on such a heap, a block that
//! is allocated from a hole and freed before the run ends goes unnoticed.
#![expect(unsafe_code, reason = "a function of the C library, by its name")]

use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use gpumem_model::units::Bytes;

use super::Freshness;

use gpumem_base::locks::lock;

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

/// A call faster than this is repeated for every reading.
const CHEAP: Duration = Duration::from_millis(1);

/// Slower calls take at most this part of the time: 5 % between the ends of runs, …
const REST_PER_READING: u32 = 20;
/// … and 0.4 % in the sampler's thread.
const REST_PER_SAMPLE: u32 = 250;

/// Held while an arena may be locked. A copy of the process that is made then could never allocate.
static UNDER_WAY: Mutex<()> = Mutex::new(());

/// How long a fork waits for the lock: in the child it would never be released.
const PATIENCE: Duration = Duration::from_millis(50);

/// Blocks of the arenas. A large block is a mapping of its own, which is gone when it is freed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arenas {
    /// In blocks that the program has.
    pub(super) used: Bytes,
    /// In blocks that it gave back, the end of the heap among them.
    pub(super) free: Bytes,
}

/// The arenas' bytes at the last call.
pub(super) struct Malloc {
    arenas: Arenas,
    last_call: Option<LastCall>,
}

struct LastCall {
    at: Instant,
    /// The shorter of the latest two: on a busy machine one of them may have had to wait.
    took: Duration,
    latest: Duration,
}

impl Malloc {
    pub(super) fn new() -> Self {
        Self {
            arenas: Arenas::default(),
            last_call: None,
        }
    }

    /// The arenas' bytes now or at the last call; `None` if this C library has no `mallinfo2`.
    pub(super) fn arenas(&mut self, freshness: Freshness) -> Option<Arenas> {
        let ask = ask()?;
        if self.is_due(freshness) {
            let at = Instant::now();
            let under_way = lock(&UNDER_WAY);
            // SAFETY: glibc's function, which takes nothing and is safe on any thread.
            let counts = unsafe { ask() };
            drop(under_way);
            self.arenas = Arenas {
                used: Bytes::new(counts.uordblks as u64),
                free: Bytes::new(counts.fordblks as u64),
            };
            let latest = at.elapsed();
            let before = self.last_call.as_ref().map(|last| last.latest);
            let took = before.unwrap_or(latest).min(latest);
            self.last_call = Some(LastCall { at, took, latest });
        }
        Some(self.arenas)
    }

    fn is_due(&self, freshness: Freshness) -> bool {
        self.last_call.as_ref().is_none_or(|last| match freshness {
            Freshness::Now if last.took <= CHEAP => true,
            Freshness::Now => last.at.elapsed() >= last.took * REST_PER_READING,
            Freshness::Recent => last.at.elapsed() >= last.latest * REST_PER_SAMPLE,
        })
    }
}

/// Prevents calls of `mallinfo2`, which takes locks of `malloc`, until the guard is dropped. `None` if that takes
/// too long.
pub fn keep_still() -> Option<MutexGuard<'static, ()>> {
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
