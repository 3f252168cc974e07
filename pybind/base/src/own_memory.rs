//! How much memory gpumem itself holds: it is not the user's, and grows with what is recorded.
#![expect(unsafe_code, reason = "an allocator that counts what it hands on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use gpumem_model::units::Bytes;

#[global_allocator]
static COUNTED: Counted = Counted;

/// Bytes of blocks that Rust code of this extension has and has not given back.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of blocks that Rust code of this extension has and has not given back.
pub fn allocated_bytes() -> Bytes {
    Bytes::new(ALLOCATED.load(Ordering::Relaxed) as u64)
}

/// The system's allocator, counted.
struct Counted;

// SAFETY: every call is the system allocator's own; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    // SAFETY: the caller asks for a layout of a size above zero, as `GlobalAlloc` says.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is the caller's, of a size above zero.
        counted(unsafe { System.alloc(layout) }, layout.size())
    }

    // SAFETY: the caller asks for a layout of a size above zero, as `GlobalAlloc` says.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is the caller's, of a size above zero.
        counted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    // SAFETY: the caller hands in a block of this allocator with its layout, as `GlobalAlloc` says.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(block_bytes(layout.size()), Ordering::Relaxed);
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    // SAFETY: the caller hands in a block of this allocator with its layout, as `GlobalAlloc` says.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block came from the system's allocator with this layout.
        let block = counted(unsafe { System.realloc(block, layout, new_size) }, new_size);
        if !block.is_null() {
            ALLOCATED.fetch_sub(block_bytes(layout.size()), Ordering::Relaxed);
        }
        block
    }
}

fn counted(block: *mut u8, size: usize) -> *mut u8 {
    if !block.is_null() {
        ALLOCATED.fetch_add(block_bytes(size), Ordering::Relaxed);
    }
    block
}

/// What a block of that size takes: glibc puts a header of 8 bytes before it, and rounds to 16.
fn block_bytes(size: usize) -> usize {
    const HEADER: usize = 8;
    (size + HEADER).next_multiple_of(16).max(32)
}
