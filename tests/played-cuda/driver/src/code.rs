//! `CUresult`, and what its codes are called.

use std::ffi::{CStr, c_char, c_int};

use played_machine::{Fault, put};

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

/// Codes with their names and what the driver says of them.
const CODES: [(c_int, &CStr, &CStr); 18] = [
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (
        100,
        c"CUDA_ERROR_NO_DEVICE",
        c"no CUDA-capable device is detected",
    ),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (
        201,
        c"CUDA_ERROR_INVALID_CONTEXT",
        c"invalid device context",
    ),
    (
        400,
        c"CUDA_ERROR_INVALID_HANDLE",
        c"invalid resource handle",
    ),
    (
        401,
        c"CUDA_ERROR_ILLEGAL_STATE",
        c"the operation cannot be performed in the present state",
    ),
    (500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (600, c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (
        700,
        c"CUDA_ERROR_ILLEGAL_ADDRESS",
        c"an illegal memory access was encountered",
    ),
    (
        704,
        c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        c"peer access is already enabled",
    ),
    (710, c"CUDA_ERROR_ASSERT", c"device-side assert triggered"),
    (
        719,
        c"CUDA_ERROR_LAUNCH_FAILED",
        c"unspecified launch failure",
    ),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

fn known(code: c_int) -> Result<(&'static CStr, &'static CStr), Code> {
    let known = CODES.iter().find(|(of, ..)| *of == code);
    let (_, name, words) = known.ok_or(Code::INVALID_VALUE)?;
    Ok((name, words))
}

calls! {
    /// The name of a code; unknown codes have none.
    cuGetErrorName(_call, code: c_int, name: *mut *const c_char) {
        Ok(put(name, known(code)?.0.as_ptr())?)
    }

    cuGetErrorString(_call, code: c_int, words: *mut *const c_char) {
        Ok(put(words, known(code)?.1.as_ptr())?)
    }
}
