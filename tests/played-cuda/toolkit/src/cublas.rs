//! `libcublas.so`: there are handles. Products are stubs that succeed.

use std::ffi::{CStr, c_char, c_int};

use played_machine::put;

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 7;
const STATUS: &CStr = c"not played";

fn status(answer: Result<(), played_machine::Fault>) -> c_int {
    answer.map_or(INVALID_VALUE, |()| SUCCESS)
}

/// A handle is never null, and nothing is behind it.
#[unsafe(no_mangle)]
extern "C" fn cublasCreate_v2(handle: *mut usize) -> c_int {
    status(put(handle, 1))
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetMathMode(_handle: usize, mode: *mut c_int) -> c_int {
    status(put(mode, 0))
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetPointerMode_v2(_handle: usize, mode: *mut c_int) -> c_int {
    status(put(mode, 0))
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetStream_v2(_handle: usize, stream: *mut usize) -> c_int {
    status(put(stream, 0))
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetVersion_v2(_handle: usize, version: *mut c_int) -> c_int {
    status(put(version, crate::version::cuda() * 10))
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusString(_status: c_int) -> *const c_char {
    STATUS.as_ptr()
}
