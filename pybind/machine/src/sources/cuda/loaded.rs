//! Whether the CUDA driver's library is in this process, checked before every run.
//!
//! Calling the loader this often is too slow: for a missing library it searches the disk, even
//! when it may not load it, and it waits for a library that another thread is loading. Reading its
//! list takes less than a microsecond and shows whether the list has changed.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a library with the driver's name was loaded since the last call.
pub(super) fn may_be_loaded() -> bool {
    static N_LOADED: AtomicU64 = AtomicU64::new(0);
    let mut list = List {
        n_known: N_LOADED.load(Ordering::Relaxed),
        n_loaded: 0,
        has_driver: false,
    };
    // SAFETY: `look` takes what is handed to it here, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut list).cast()) };
    // A name alone proves nothing: only then is the loader called, each time.
    if !list.has_driver {
        N_LOADED.store(list.n_loaded, Ordering::Relaxed);
    }
    list.has_driver
}

/// The loader's list, and how much of it was known before.
struct List {
    n_known: u64,
    n_loaded: u64,
    has_driver: bool,
}

/// Looks at one library of the list. Anything but 0 ends it.
extern "C" fn look(library: *mut libc::dl_phdr_info, _size: usize, list: *mut c_void) -> c_int {
    // SAFETY: the loader hands out one of its entries, and the list that `may_be_loaded` gave it.
    let (library, list) = unsafe { (&*library, &mut *list.cast::<List>()) };
    list.n_loaded = library.dlpi_adds;
    if list.n_loaded == list.n_known {
        return 1;
    }
    if library.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: a name of the loader's is a string that lives as long as its library.
    let path = unsafe { CStr::from_ptr(library.dlpi_name) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next();
    list.has_driver = name.is_some_and(|name| name.starts_with(b"libcuda.so"));
    c_int::from(list.has_driver)
}
