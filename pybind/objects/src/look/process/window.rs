//! The moment in which a copy of the process is made, and memory is left out of it.
//!
//! `MADV_DONTFORK` leaves memory out of every copy: also of one that the user's program makes. So
//! between the two calls no other thread may fork, and nothing can go wrong: signals are blocked,
//! nothing allocates, nothing panics.
#![expect(unsafe_code, reason = "the system's own calls")]

use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gpumem_process::addresses::AddressRanges;

use super::mappings;
use gpumem_base::pages::page_bytes;

/// A fork in another thread takes longer than this only if one of its handlers waits: perhaps for
/// the GIL, which this thread has.
const PATIENCE: Duration = Duration::from_millis(20);
const PAUSE_MICROS: libc::useconds_t = 50;
/// Parts of a mapping that are smaller are not worth a mark.
const SMALLEST_PART: usize = 1 << 20;

static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Threads that are in the middle of a fork.
static N_FORKS: AtomicU32 = AtomicU32::new(0);

/// While it lives, copies of the process omit this memory, and no other copy is made.
pub(super) struct CopyWindow<'r> {
    left_out: &'r AddressRanges,
}

impl<'r> CopyWindow<'r> {
    /// Leaves `ranges` out. Those that cannot be left out as a whole are removed from the set, and
    /// all of them if another thread forks.
    pub(super) fn open(ranges: &'r mut AddressRanges) -> Self {
        if !ranges.is_empty() && !keep_forks_away() {
            ranges.retain(|_| false);
        }
        ranges.retain(|range| {
            let is_left_out = advise(range, libc::MADV_DONTFORK);
            if !is_left_out {
                // Part of it is not mapped any more.
                advise(range, libc::MADV_DOFORK);
            }
            is_left_out
        });
        Self { left_out: ranges }
    }

    pub(super) fn left_out(&self) -> &'r AddressRanges {
        self.left_out
    }
}

impl Drop for CopyWindow<'_> {
    fn drop(&mut self) {
        for range in self.left_out.iter() {
            advise(range, libc::MADV_DOFORK);
        }
        IS_OPEN.store(false, Ordering::SeqCst);
    }
}

/// The parts of the ranges that can be left out: private memory that nobody else leaves out of copies,
/// as libraries do with memory that devices write to.
///
/// The kernel tells of such a mark only together with a visit of every page. But a mark on the first
/// page of a mapping splits it, unless all of it has the mark already.
pub(super) fn without_marks_of_others(ranges: &AddressRanges) -> AddressRanges {
    let mappings = mappings::all().unwrap_or_default();
    let private = mappings.iter().filter(|it| it.is_private_memory);
    let parts: Vec<Range<usize>> = private
        .flat_map(|it| ranges.parts_in(&it.range))
        .filter(|part| part.len() >= SMALLEST_PART)
        .collect();
    let first = |part: &Range<usize>| part.start..part.start + page_bytes();
    if parts.is_empty() || !keep_forks_away() {
        return AddressRanges::EMPTY;
    }
    for part in &parts {
        advise(&first(part), libc::MADV_DONTFORK);
    }
    let mappings = mappings::all().unwrap_or_default();
    let is_ours = |part: &Range<usize>| {
        let page = first(part);
        let at = mappings.partition_point(|it| it.range.end < page.end);
        let rest = mappings.get(at + 1).map_or(page.end, |it| it.range.end);
        let is_split = mappings.get(at).is_some_and(|it| it.range.end == page.end);
        if is_split {
            advise(&page, libc::MADV_DOFORK);
        }
        // A mark further on would end it earlier.
        is_split && rest >= part.end
    };
    let ours = parts.into_iter().filter(is_ours).collect();
    IS_OPEN.store(false, Ordering::SeqCst);
    ours
}

/// Whole pages.
fn advise(range: &Range<usize>, advice: libc::c_int) -> bool {
    // SAFETY: it changes what a copy of this process has, and nothing in this process.
    unsafe { libc::madvise(range.start as *mut libc::c_void, range.len(), advice) == 0 }
}

/// Makes forks wait from now on. False if a fork is in progress.
fn keep_forks_away() -> bool {
    static HAS_HANDLERS: LazyLock<bool> = LazyLock::new(|| {
        // SAFETY: they touch nothing but two atomic numbers, and this library is never unloaded.
        unsafe {
            libc::pthread_atfork(Some(fork_begins), Some(fork_is_over), Some(fork_in_child)) == 0
        }
    });
    if !*HAS_HANDLERS {
        return false;
    }
    IS_OPEN.store(true, Ordering::SeqCst);
    let until = Instant::now() + PATIENCE;
    while N_FORKS.load(Ordering::SeqCst) > 0 {
        if Instant::now() >= until {
            IS_OPEN.store(false, Ordering::SeqCst);
            return false;
        }
        pause();
    }
    true
}

fn pause() {
    // SAFETY: it only waits.
    unsafe { libc::usleep(PAUSE_MICROS) };
}

// SAFETY: a handler of `fork`, called in the thread that forks; it reads and changes atomic numbers, and waits.
unsafe extern "C" fn fork_begins() {
    loop {
        N_FORKS.fetch_add(1, Ordering::SeqCst);
        if !IS_OPEN.load(Ordering::SeqCst) {
            return;
        }
        N_FORKS.fetch_sub(1, Ordering::SeqCst);
        while IS_OPEN.load(Ordering::SeqCst) {
            pause();
        }
    }
}

// SAFETY: a handler of `fork`, called in the parent; it changes one atomic number.
unsafe extern "C" fn fork_is_over() {
    // A fork may have begun before there were handlers.
    let fewer = |n: u32| n.checked_sub(1);
    // An error means that there was none.
    let _ = N_FORKS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
}

// SAFETY: in the child, where no other thread is.
unsafe extern "C" fn fork_in_child() {
    N_FORKS.store(0, Ordering::SeqCst);
}
