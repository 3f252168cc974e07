//! The memory that one call takes at most.
#![expect(unsafe_code, reason = "an allocator that counts what it hands on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTED: Counted = Counted;

thread_local! {
    /// Bytes that this thread has and has not given back.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most it had since [`peak_of`] began.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Calls, and returns the most bytes that the call held at one moment, too.
pub(crate) fn peak_of<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let value = call();
    (value, PEAK.get().saturating_sub(before).unsigned_abs())
}

/// The system's allocator, counted for each thread.
struct Counted;

// SAFETY: every call is the system allocator's own; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    // SAFETY: the caller asks for a layout of a size above zero, as `GlobalAlloc` says.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the layout is the caller's, of a size above zero.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller asks for a layout of a size above zero, as `GlobalAlloc` says.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the layout is the caller's, of a size above zero.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the caller hands in a block of this allocator with its layout, as `GlobalAlloc` says.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    // SAFETY: the caller hands in a block of this allocator with its layout, as `GlobalAlloc` says.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

fn count(more: isize) {
    let held = HELD.get() + more;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}
