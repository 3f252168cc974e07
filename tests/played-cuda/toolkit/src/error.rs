//! `cudaError_t`, whose codes are mostly the driver's.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

use played_machine::{CodeName, Fault};

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Error(pub(crate) c_int);

impl Error {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const INVALID_SYMBOL: Self = Self(13);
    pub(crate) const INSUFFICIENT_DRIVER: Self = Self(35);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const SYMBOL_NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
}

impl From<Fault> for Error {
    fn from(_: Fault) -> Self {
        Self::INVALID_VALUE
    }
}

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(0) };
}

/// Notes the failure of a call for `cudaGetLastError`.
pub(crate) fn note(error: Error) -> c_int {
    LAST.set(error.0);
    error.0
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> c_int {
    LAST.replace(0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> c_int {
    LAST.get()
}

const UNKNOWN: &CStr = c"unrecognized error code";

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    CodeName::named(code)
        .map_or(UNKNOWN, |known| known.runtime)
        .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    CodeName::named(code)
        .map_or(UNKNOWN, |known| known.words)
        .as_ptr()
}
