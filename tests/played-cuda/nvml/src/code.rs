//! `nvmlReturn_t`.

use std::ffi::{CStr, c_int};

use played_machine::Fault;

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

/// The failures that tests name; `unlisted` is one that no header has.
const NAMES: [(&str, Code); 10] = [
    ("uninitialised", Code(1)),
    ("invalid", Code::INVALID),
    ("not_supported", Code::NOT_SUPPORTED),
    ("no_permission", Code(4)),
    ("not_found", Code::NOT_FOUND),
    ("driver_not_loaded", Code(9)),
    ("timeout", Code(10)),
    ("lost", Code(15)),
    ("reset_required", Code(16)),
    ("mismatch", Code(18)),
];

impl Code {
    pub(crate) const INVALID: Self = Self(2);
    pub(crate) const NOT_SUPPORTED: Self = Self(3);
    pub(crate) const NOT_FOUND: Self = Self(6);
    pub(crate) const INSUFFICIENT_SIZE: Self = Self(7);
    const UNKNOWN: Self = Self(999);

    /// The one that a state file names.
    pub(crate) fn named(failure: &str) -> Self {
        let known = NAMES.iter().find(|(name, _)| *name == failure);
        match (known, failure, failure.parse()) {
            (Some((_, code)), ..) => *code,
            (None, "unlisted", _) => Self(424_242),
            (None, _, Ok(number)) => Self(number),
            (None, _, Err(_)) => Self::UNKNOWN,
        }
    }

    pub(crate) fn message(self) -> &'static CStr {
        match self.0 {
            0 => c"Success",
            2 => c"Invalid Argument",
            3 => c"Not Supported",
            4 => c"Insufficient Permissions",
            6 => c"Not Found",
            7 => c"Insufficient Size",
            9 => c"Driver Not Loaded",
            15 => c"GPU is lost",
            _ => c"Unknown Error",
        }
    }
}

impl From<Fault> for Code {
    fn from(_: Fault) -> Self {
        Self::INVALID
    }
}
