//! How much memory a process has, in the pages in which the kernel counts.

#![expect(unsafe_code, reason = "only libc reports the size of a page")]

use gpumem_model::units::Bytes;

/// The size of a page of memory, bytes.
pub fn page_bytes() -> usize {
    // SAFETY: reads a constant of the system; no pointer is passed.
    let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(n).unwrap_or(4096)
}

/// Resident pages that are of no file and not shared, from a process's `statm`.
pub fn anonymous(statm: &str) -> Option<Bytes> {
    let mut fields = statm.split_ascii_whitespace().skip(1);
    let mut n_pages = || fields.next()?.parse::<u64>().ok();
    let (resident, shared) = (n_pages()?, n_pages()?);
    Some(Bytes::new(
        resident.saturating_sub(shared) * page_bytes() as u64,
    ))
}
