//! Captures and graphs.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::current::ready;
use crate::driver::cuStreamGetCaptureInfo_v3;

calls! {
    /// CUDA 13's.
    cudaStreamGetCaptureInfo(
        stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, last: *mut c_void,
        edges: *mut c_void, n: *mut usize,
    ) {
        ready()?;
        cuStreamGetCaptureInfo_v3(stream, status, id, graph, last, edges, n)
    }

    /// CUDA 12's.
    cudaStreamGetCaptureInfo_v2(
        stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, last: *mut c_void,
        n: *mut usize,
    ) {
        ready()?;
        cuStreamGetCaptureInfo_v3(stream, status, id, graph, last, ptr::null_mut(), n)
    }

    cudaStreamUpdateCaptureDependencies(_stream: usize) {
        ready()
    }
}
