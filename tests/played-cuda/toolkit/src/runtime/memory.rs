//! Allocating, copying, filling.

use std::ffi::{c_int, c_uint, c_void};

use played_machine::put;

use super::current::{ready, started};
use crate::driver::{
    cuDeviceGetDefaultMemPool, cuMemAlloc_v2, cuMemAllocAsync, cuMemAllocManaged, cuMemFree_v2,
    cuMemFreeAsync, cuMemFreeHost, cuMemGetInfo_v2, cuMemHostAlloc, cuMemHostRegister_v2,
    cuMemHostUnregister, cuMemPoolGetAttribute, cuMemPoolSetAccess, cuMemPoolSetAttribute,
    cuMemPoolTrimTo, cuMemcpy, cuMemcpyAsync, cuMemsetD8_v2, cuMemsetD8Async,
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

    cudaMallocManaged(pointer: *mut usize, n_bytes: usize, flags: c_uint) {
        ready()?;
        cuMemAllocManaged(pointer, n_bytes, flags)
    }

    cudaFree(pointer: usize) {
        ready()?;
        cuMemFree_v2(pointer)
    }

    cudaHostAlloc(pointer: *mut usize, n_bytes: usize, flags: c_uint) {
        ready()?;
        cuMemHostAlloc(pointer, n_bytes, flags)
    }

    cudaMallocHost(pointer: *mut usize, n_bytes: usize) {
        ready()?;
        cuMemHostAlloc(pointer, n_bytes, 0)
    }

    cudaFreeHost(pointer: usize) {
        ready()?;
        cuMemFreeHost(pointer)
    }

    cudaHostRegister(pointer: usize, n_bytes: usize, flags: c_uint) {
        ready()?;
        cuMemHostRegister_v2(pointer, n_bytes, flags)
    }

    cudaHostUnregister(pointer: usize) {
        ready()?;
        cuMemHostUnregister(pointer)
    }

    cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        ready()?;
        cuMemGetInfo_v2(free, total)
    }

    cudaMallocAsync(pointer: *mut usize, n_bytes: usize, stream: usize) {
        ready()?;
        cuMemAllocAsync(pointer, n_bytes, stream)
    }

    cudaFreeAsync(pointer: usize, stream: usize) {
        ready()?;
        cuMemFreeAsync(pointer, stream)
    }

    cudaDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) {
        started()?;
        cuDeviceGetDefaultMemPool(pool, device)
    }

    cudaMemPoolSetAttribute(pool: usize, which: c_int, figure: *mut c_void) {
        cuMemPoolSetAttribute(pool, which, figure)
    }

    cudaMemPoolGetAttribute(pool: usize, which: c_int, figure: *mut c_void) {
        cuMemPoolGetAttribute(pool, which, figure)
    }

    cudaMemPoolTrimTo(pool: usize, n_kept: usize) {
        cuMemPoolTrimTo(pool, n_kept)
    }

    cudaMemPoolSetAccess(pool: usize, access: *mut c_void, n: usize) {
        cuMemPoolSetAccess(pool, access, n)
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
