//! Whether a file lies on another machine: there SQLite's log cannot be shared.

use std::path::Path;
#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by a test, which can mount nothing.
#[cfg(feature = "testing")]
static ALWAYS: AtomicBool = AtomicBool::new(false);

/// From now on every folder counts as one of another machine.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
pub(crate) fn store_on_network(yes: bool) {
    ALWAYS.store(yes, Ordering::Relaxed);
}

/// The file lies on a file system of which SQLite cannot map the log's index.
pub(super) fn is_on_network(path: &Path) -> bool {
    #[cfg(feature = "testing")]
    if ALWAYS.load(Ordering::Relaxed) {
        return true;
    }
    is_remote(path)
}

/// The numbers of `statfs(2)` and of the kernel's `magic.h`: NFS, SMB, CIFS, SMB 2, FUSE, 9P, AFS,
/// Ceph, Lustre, GPFS, `BeeGFS`, Coda.
#[cfg(target_os = "linux")]
const REMOTE: [u32; 12] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
    0x0bd0_0bd0,
    0x4750_4653,
    0x1983_0326,
    0x7375_7245,
];

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the kind of a file system is told by libc alone"
)]
fn is_remote(path: &Path) -> bool {
    use std::ffi::CString;
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;

    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero, and the call writes what it is read for where it returns 0.
    let found = unsafe {
        if libc::statfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return false;
        }
        found.assume_init()
    };
    REMOTE.contains(&(found.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_: &Path) -> bool {
    false
}
