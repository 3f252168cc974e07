//! Which toolkit a library was linked for.

use std::ffi::c_int;

// SAFETY: what links the archive defines it, and nothing writes to it.
unsafe extern "C" {
    /// The version of CUDA, such as 12080.
    safe static played_cuda_version: c_int;
}

/// The version of CUDA, such as 12080.
pub(crate) fn cuda() -> c_int {
    played_cuda_version
}

/// Whether structures have the form of CUDA 13.
pub(crate) fn is_13() -> bool {
    cuda() >= 13_000
}
