//! The host's memory behind a device's: mapped, and there once it is touched.

use std::ptr;

pub(super) const PAGE: usize = 4096;
/// The size in which drivers hand out memory.
pub(super) const GRANULE: usize = 2 << 20;

const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Whether a mapping can be used.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    Full,
    Forbidden,
}

impl Access {
    fn flags(self) -> i32 {
        match self {
            Self::Full => libc::PROT_READ | libc::PROT_WRITE,
            Self::Forbidden => libc::PROT_NONE,
        }
    }
}

/// Maps memory at a multiple of `align`; `None` if the address space is full.
pub(super) fn map(n_bytes: usize, align: usize, access: Access) -> Option<usize> {
    let align = align.max(PAGE);
    let n_bytes = n_bytes.checked_next_multiple_of(PAGE)?;
    let n_mapped = n_bytes.checked_add(align)?;
    // SAFETY: a new mapping, anywhere.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), n_mapped, access.flags(), ANONYMOUS, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let start = mapped as usize;
    let aligned = start.next_multiple_of(align);
    unmap(start, aligned - start);
    unmap(aligned + n_bytes, start + n_mapped - aligned - n_bytes);
    Some(aligned)
}

/// Ends a mapping of ours.
pub(super) fn unmap(start: usize, n_bytes: usize) {
    if n_bytes > 0 {
        // SAFETY: the caller names a mapping that `map` has made and that nobody uses any more.
        unsafe { libc::munmap(start as *mut _, n_bytes.next_multiple_of(PAGE)) };
    }
}

/// Empties a part of a reserved range, and forbids access to it.
pub(super) fn reset(start: usize, n_bytes: usize) -> bool {
    let flags = ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the caller names a part of a range that `map` has reserved.
    let at = unsafe { libc::mmap(start as *mut _, n_bytes, libc::PROT_NONE, flags, -1, 0) };
    at != libc::MAP_FAILED
}

/// Allows access to a part of a reserved range.
pub(super) fn allow(start: usize, n_bytes: usize) -> bool {
    // SAFETY: the caller names a part of a range that `map` has reserved.
    unsafe { libc::mprotect(start as *mut _, n_bytes, Access::Full.flags()) == 0 }
}

/// Makes zeros of whole pages by giving them back.
pub(super) fn clear_pages(start: usize, n_bytes: usize) {
    // SAFETY: the caller names whole pages that `map` has made, whose content is to be lost.
    unsafe { libc::madvise(start as *mut _, n_bytes, libc::MADV_DONTNEED) };
}
