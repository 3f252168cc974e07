//! What CUDA's codes are called.

use std::ffi::{CStr, c_int};

/// A code of the driver and of the runtime.
pub struct CodeName {
    code: c_int,
    /// Empty for a code of the runtime alone.
    pub driver: &'static CStr,
    /// Every code has one.
    pub runtime: &'static CStr,
    /// What both say of it.
    pub words: &'static CStr,
}

impl CodeName {
    /// The names of a code, if it has any.
    pub fn named(code: c_int) -> Option<&'static Self> {
        CODES.iter().find(|it| it.code == code)
    }
}

macro_rules! codes {
    ($($code:literal $driver:literal $runtime:literal $words:literal;)*) => {
        const CODES: &[CodeName] = &[
            $(CodeName { code: $code, driver: $driver, runtime: $runtime, words: $words },)*
        ];
    };
}

codes! {
    0 c"CUDA_SUCCESS" c"cudaSuccess" c"no error";
    1 c"CUDA_ERROR_INVALID_VALUE" c"cudaErrorInvalidValue" c"invalid argument";
    2 c"CUDA_ERROR_OUT_OF_MEMORY" c"cudaErrorMemoryAllocation" c"out of memory";
    3 c"CUDA_ERROR_NOT_INITIALIZED" c"cudaErrorInitializationError" c"initialization error";
    4 c"CUDA_ERROR_DEINITIALIZED" c"cudaErrorCudartUnloading" c"driver shutting down";
    13 c"" c"cudaErrorInvalidSymbol" c"invalid device symbol";
    35 c"" c"cudaErrorInsufficientDriver" c"CUDA driver version is insufficient for CUDA runtime version";
    100 c"CUDA_ERROR_NO_DEVICE" c"cudaErrorNoDevice" c"no CUDA-capable device is detected";
    101 c"CUDA_ERROR_INVALID_DEVICE" c"cudaErrorInvalidDevice" c"invalid device ordinal";
    201 c"CUDA_ERROR_INVALID_CONTEXT" c"cudaErrorDeviceUninitialized" c"invalid device context";
    400 c"CUDA_ERROR_INVALID_HANDLE" c"cudaErrorInvalidResourceHandle" c"invalid resource handle";
    401 c"CUDA_ERROR_ILLEGAL_STATE" c"cudaErrorIllegalState" c"the operation cannot be performed in the present state";
    500 c"CUDA_ERROR_NOT_FOUND" c"cudaErrorSymbolNotFound" c"named symbol not found";
    600 c"CUDA_ERROR_NOT_READY" c"cudaErrorNotReady" c"device not ready";
    700 c"CUDA_ERROR_ILLEGAL_ADDRESS" c"cudaErrorIllegalAddress" c"an illegal memory access was encountered";
    704 c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED" c"cudaErrorPeerAccessAlreadyEnabled" c"peer access is already enabled";
    710 c"CUDA_ERROR_ASSERT" c"cudaErrorAssert" c"device-side assert triggered";
    719 c"CUDA_ERROR_LAUNCH_FAILED" c"cudaErrorLaunchFailure" c"unspecified launch failure";
    801 c"CUDA_ERROR_NOT_SUPPORTED" c"cudaErrorNotSupported" c"operation not supported";
    999 c"CUDA_ERROR_UNKNOWN" c"cudaErrorUnknown" c"unknown error";
}
