//! `cudaError_t`, whose codes are mostly the driver's.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

use played_machine::Fault;

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

/// Codes with their names and what the runtime says of them.
const ERRORS: [(c_int, &CStr, &CStr); 18] = [
    (0, c"cudaSuccess", c"no error"),
    (1, c"cudaErrorInvalidValue", c"invalid argument"),
    (2, c"cudaErrorMemoryAllocation", c"out of memory"),
    (3, c"cudaErrorInitializationError", c"initialization error"),
    (13, c"cudaErrorInvalidSymbol", c"invalid device symbol"),
    (
        35,
        c"cudaErrorInsufficientDriver",
        c"CUDA driver version is insufficient for CUDA runtime version",
    ),
    (
        100,
        c"cudaErrorNoDevice",
        c"no CUDA-capable device is detected",
    ),
    (101, c"cudaErrorInvalidDevice", c"invalid device ordinal"),
    (
        201,
        c"cudaErrorDeviceUninitialized",
        c"invalid device context",
    ),
    (
        400,
        c"cudaErrorInvalidResourceHandle",
        c"invalid resource handle",
    ),
    (
        401,
        c"cudaErrorIllegalState",
        c"the operation cannot be performed in the present state",
    ),
    (500, c"cudaErrorSymbolNotFound", c"named symbol not found"),
    (600, c"cudaErrorNotReady", c"device not ready"),
    (
        700,
        c"cudaErrorIllegalAddress",
        c"an illegal memory access was encountered",
    ),
    (710, c"cudaErrorAssert", c"device-side assert triggered"),
    (
        719,
        c"cudaErrorLaunchFailure",
        c"unspecified launch failure",
    ),
    (801, c"cudaErrorNotSupported", c"operation not supported"),
    (999, c"cudaErrorUnknown", c"unknown error"),
];

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

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    let known = ERRORS.iter().find(|(of, ..)| *of == code);
    known
        .map_or(c"unrecognized error code", |(_, name, _)| name)
        .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    let known = ERRORS.iter().find(|(of, ..)| *of == code);
    known
        .map_or(c"unrecognized error code", |(.., words)| words)
        .as_ptr()
}
