//! Launching kernels, and querying them.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use played_machine::{put, read};

use super::current::{device, ready};
use crate::calls::Answer;
use crate::driver::{cuDeviceGetAttribute, cuLaunchKernel};
use crate::error::Error;

/// `dim3`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Dimensions {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// What stands in `<<<…>>>`.
#[derive(Debug, Clone, Copy)]
struct Configuration {
    grid: Dimensions,
    block: Dimensions,
    n_shared_bytes: usize,
    stream: usize,
}

thread_local! {
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dimensions,
    block: Dimensions,
    n_shared_bytes: usize,
    stream: usize,
) -> c_uint {
    let configuration = Configuration {
        grid,
        block,
        n_shared_bytes,
        stream,
    };
    PUSHED.with_borrow_mut(|pushed| pushed.push(configuration));
    0
}

/// `cudaLaunchConfig_t`, as far as its stream.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfig {
    grid: Dimensions,
    block: Dimensions,
    n_shared_bytes: usize,
    stream: usize,
}

/// `cudaFuncAttributes`.
#[repr(C)]
#[derive(Default)]
struct FunctionAttributes {
    n_shared_bytes: usize,
    n_constant_bytes: usize,
    n_local_bytes: usize,
    max_threads_per_block: c_int,
    n_registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    max_dynamic_shared_bytes: c_int,
    preferred_carveout: c_int,
    cluster: [c_int; 6],
    reserved: [c_int; 16],
}

calls! {
    __cudaPopCallConfiguration(
        grid: *mut Dimensions, block: *mut Dimensions, n_shared_bytes: *mut usize, stream: *mut usize,
    ) {
        let popped = PUSHED.with_borrow_mut(Vec::pop).ok_or(Error::INVALID_VALUE)?;
        put(grid, popped.grid)?;
        put(block, popped.block)?;
        put(n_shared_bytes, popped.n_shared_bytes)?;
        Ok(put(stream, popped.stream)?)
    }

    /// The kernel's handle is the address of its host function.
    __cudaGetKernel(kernel: *mut usize, host: usize) {
        Ok(put(kernel, host)?)
    }

    __cudaLaunchKernel(
        _kernel: usize, _grid: Dimensions, _block: Dimensions, _arguments: *mut c_void,
        _n_shared_bytes: usize, stream: usize,
    ) {
        launch(stream)
    }

    cudaLaunchKernel(
        _host: usize, _grid: Dimensions, _block: Dimensions, _arguments: *mut c_void,
        _n_shared_bytes: usize, stream: usize,
    ) {
        launch(stream)
    }

    cudaLaunchCooperativeKernel(
        _host: usize, _grid: Dimensions, _block: Dimensions, _arguments: *mut c_void,
        _n_shared_bytes: usize, stream: usize,
    ) {
        launch(stream)
    }

    cudaLaunchKernelExC(config: *const LaunchConfig, _host: usize, _arguments: *mut c_void) {
        launch(read(config)?.stream)
    }

    cudaFuncGetAttributes(place: *mut FunctionAttributes, _host: usize) {
        ready()?;
        let mut capability = 0;
        cuDeviceGetAttribute(&raw mut capability, 75, device()?.0)?;
        let attributes = FunctionAttributes {
            max_threads_per_block: 1024,
            n_registers: 32,
            ptx_version: 10 * capability,
            binary_version: 10 * capability,
            max_dynamic_shared_bytes: 49152,
            ..FunctionAttributes::default()
        };
        Ok(put(place, attributes)?)
    }

    cudaFuncSetAttribute(_host: usize, _which: c_int, _figure: c_int) {
        ready()
    }

    cudaKernelSetAttributeForDevice(_kernel: usize, _which: c_int, _figure: c_int, _device: c_int) {
        ready()
    }

    cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        n_blocks: *mut c_int, _host: usize, n_threads: c_int, _n_shared_bytes: usize,
    ) {
        Ok(put(n_blocks, n_active_blocks(n_threads))?)
    }

    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        n_blocks: *mut c_int, _host: usize, n_threads: c_int, _n_shared_bytes: usize, _flags: c_uint,
    ) {
        Ok(put(n_blocks, n_active_blocks(n_threads))?)
    }
}

fn launch(stream: usize) -> Answer {
    ready()?;
    let nothing = ptr::null_mut();
    cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, stream, nothing, nothing)
}

/// As many as 2048 threads make, at least 1 and at most 32.
fn n_active_blocks(n_threads: c_int) -> c_int {
    (2048 / n_threads.max(1)).clamp(1, 32)
}
