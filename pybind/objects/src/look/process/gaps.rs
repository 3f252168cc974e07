//! What a copy of the process does when it reaches for memory that was left out of it.
#![expect(
    unsafe_code,
    reason = "a handler of a signal, in a copy that ends with it"
)]

use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use gpumem_process::addresses::AddressRanges;

use super::Link;
use crate::look::message::{self, Tag};

/// A stack that overflows has no room for a handler.
const STACK_BYTES: usize = 1 << 16;

static mut STACK: [u8; STACK_BYTES] = [0; STACK_BYTES];
static LINE: AtomicI32 = AtomicI32::new(-1);
static RANGES: AtomicPtr<Range<usize>> = AtomicPtr::new(ptr::null_mut());
static N_RANGES: AtomicUsize = AtomicUsize::new(0);

/// In the copy: keeps the gaps free, so that whoever reaches for them meets nothing else, and says on
/// the line what was missing.
pub(super) fn watch(left_out: &AddressRanges, line: RawFd) {
    for range in left_out.iter() {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: nothing is mapped there in this copy.
        unsafe {
            let place = range.start as *mut libc::c_void;
            libc::mmap(place, range.len(), libc::PROT_NONE, flags, -1, 0);
        }
    }
    if let [first, ..] = left_out.as_slice() {
        RANGES.store(ptr::from_ref(first).cast_mut(), Ordering::Relaxed);
        N_RANGES.store(left_out.len(), Ordering::Relaxed);
        LINE.store(line, Ordering::Relaxed);
        handle();
    }
}

/// In the copy: what was left out of it.
pub(super) fn left_out() -> &'static [Range<usize>] {
    let (ranges, n) = (
        RANGES.load(Ordering::Relaxed),
        N_RANGES.load(Ordering::Relaxed),
    );
    if ranges.is_null() {
        return &[];
    }
    // SAFETY: as many as `watch` stored, of a set that lives as long as the copy.
    unsafe { std::slice::from_raw_parts(ranges, n) }
}

fn handle() {
    // SAFETY: plain structures for the calls; the stack is this thread's alone, and there is no other.
    unsafe {
        let stack = libc::stack_t {
            ss_sp: (&raw mut STACK).cast(),
            ss_flags: 0,
            ss_size: STACK_BYTES,
        };
        libc::sigaltstack(&raw const stack, ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
        let mut faults = std::mem::zeroed();
        libc::sigemptyset(&raw mut faults);
        libc::sigaddset(&raw mut faults, libc::SIGSEGV);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const faults, ptr::null_mut());
    }
}

// SAFETY: the system calls it with these arguments.
unsafe extern "C" fn on_fault(
    _signal: libc::c_int,
    information: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: of this signal, it has an address.
    let address = unsafe { (*information).si_addr() } as usize;
    if left_out().iter().any(|range| range.contains(&address)) {
        let line = LINE.load(Ordering::Relaxed);
        // SAFETY: the line of this copy, which ends here.
        let socket = unsafe { OwnedFd::from_raw_fd(line) };
        message::send(
            &Link { socket },
            Tag::Lacks,
            &(address as u64).to_le_bytes(),
        );
        super::leave();
    }
    // Any other fault happens again, without a handler.
}
