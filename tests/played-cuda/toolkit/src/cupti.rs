//! `libcupti.so`: its stubs say that it is not initialised, and a profiler does without.

use std::ffi::{c_char, c_int};

use played_machine::put;

const NOT_INITIALIZED: c_int = 15;

/// Sets the text, which callers print without a look at the status.
#[unsafe(no_mangle)]
extern "C" fn cuptiGetResultString(_code: c_int, text: *mut *const c_char) -> c_int {
    let _ = put(text, c"CUPTI is not played".as_ptr());
    NOT_INITIALIZED
}
