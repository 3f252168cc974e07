//! `CUresult`, and what its codes are called.

use std::ffi::{c_char, c_int};

use played_machine::{CodeName, Fault, put};

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

impl Code {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const ILLEGAL_STATE: Self = Self(401);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    const UNKNOWN: Self = Self(999);

    /// The one that a state file names: by its number, or as tests call it.
    pub(crate) fn named(failure: &str) -> Self {
        match failure {
            "invalid" => Self::INVALID_VALUE,
            "out_of_memory" => Self::OUT_OF_MEMORY,
            "not_initialised" => Self::NOT_INITIALIZED,
            "deinitialised" => Self(4),
            "no_device" => Self::NO_DEVICE,
            "invalid_context" => Self::INVALID_CONTEXT,
            "not_supported" => Self::NOT_SUPPORTED,
            "lost" => Self(719),
            // No header has it.
            "unlisted" => Self(424_242),
            number => number.parse().map_or(Self::UNKNOWN, Self),
        }
    }
}

impl From<Fault> for Code {
    fn from(_: Fault) -> Self {
        Self::INVALID_VALUE
    }
}

fn known(code: c_int) -> Result<&'static CodeName, Code> {
    let known = CodeName::named(code).filter(|it| !it.driver.is_empty());
    known.ok_or(Code::INVALID_VALUE)
}

calls! {
    /// The name of a code; unknown codes have none.
    cuGetErrorName(_call, code: c_int, name: *mut *const c_char) {
        Ok(put(name, known(code)?.driver.as_ptr())?)
    }

    cuGetErrorString(_call, code: c_int, words: *mut *const c_char) {
        Ok(put(words, known(code)?.words.as_ptr())?)
    }
}
