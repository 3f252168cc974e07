//! Allocating, copying, filling.

use std::ffi::c_int;

use played_machine::put;

use super::current::ready;
use crate::driver::{
    cuMemAlloc_v2, cuMemHostAlloc, cuMemcpy, cuMemcpyAsync, cuMemsetD8_v2, cuMemsetD8Async,
};

calls! {
    /// Of nothing the address is null.
    cudaMalloc(pointer: *mut usize, n_bytes: usize) {
        ready()?;
        match n_bytes {
            0 => Ok(put(pointer, 0)?),
            n_bytes => cuMemAlloc_v2(pointer, n_bytes),
        }
    }

    cudaMallocHost(pointer: *mut usize, n_bytes: usize) {
        ready()?;
        cuMemHostAlloc(pointer, n_bytes, 0)
    }

    cudaMemcpy(to: usize, from: usize, n_bytes: usize, _direction: c_int) {
        ready()?;
        cuMemcpy(to, from, n_bytes)
    }

    cudaMemcpyAsync(to: usize, from: usize, n_bytes: usize, _direction: c_int, stream: usize) {
        ready()?;
        cuMemcpyAsync(to, from, n_bytes, stream)
    }

    cudaMemcpyPeerAsync(to: usize, _of: c_int, from: usize, _by: c_int, n_bytes: usize, stream: usize) {
        ready()?;
        cuMemcpyAsync(to, from, n_bytes, stream)
    }

    /// Row by row.
    cudaMemcpy2DAsync(
        to: usize, to_pitch: usize, from: usize, from_pitch: usize, n_bytes: usize, n_rows: usize,
        _direction: c_int, stream: usize,
    ) {
        ready()?;
        (0..n_rows).try_for_each(|row| {
            cuMemcpyAsync(to + row * to_pitch, from + row * from_pitch, n_bytes, stream)
        })
    }

    cudaMemset(start: usize, value: c_int, n_bytes: usize) {
        ready()?;
        cuMemsetD8_v2(start, value as u8, n_bytes)
    }

    cudaMemsetAsync(start: usize, value: c_int, n_bytes: usize, stream: usize) {
        ready()?;
        cuMemsetD8Async(start, value as u8, n_bytes, stream)
    }
}
