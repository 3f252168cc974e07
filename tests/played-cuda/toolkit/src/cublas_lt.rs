//! `libcublasLt.so`: there are descriptors, and one algorithm for every product.

use std::ffi::c_int;

use played_machine::put;

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 7;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Default)]
struct HeuristicResult {
    algorithm: [u64; 8],
    n_workspace_bytes: usize,
    state: c_int,
    n_waves: f32,
    reserved: [c_int; 4],
}

macro_rules! creates {
    ($($name:ident($($type:ty),*);)*) => {
        $(
            /// A handle is never null, and nothing is behind it.
            #[unsafe(no_mangle)]
            extern "C" fn $name(handle: *mut usize $(, _: $type)*) -> c_int {
                put(handle, 1).map_or(INVALID_VALUE, |()| SUCCESS)
            }
        )*
    };
}

creates! {
    cublasLtCreate();
    cublasLtMatmulDescCreate(c_int, c_int);
    cublasLtMatrixLayoutCreate(c_int, u64, u64, i64);
    cublasLtMatmulPreferenceCreate();
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    crate::version::cuda() as usize * 10
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _handle: usize,
    _operation: usize,
    _a: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _preference: usize,
    _n_wanted: c_int,
    results: *mut HeuristicResult,
    n_results: *mut c_int,
) -> c_int {
    let result = HeuristicResult {
        n_waves: 1.0,
        ..HeuristicResult::default()
    };
    let answer = put(results, result).and_then(|()| put(n_results, 1));
    answer.map_or(INVALID_VALUE, |()| SUCCESS)
}
