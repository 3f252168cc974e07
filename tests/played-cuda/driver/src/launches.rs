//! Kernels are launched and do nothing; functions of the host are called.

use std::ffi::{c_int, c_uint, c_void};

use played_machine::{put, read};

use crate::graphs::NodeKind;
use crate::handles::Handle;
use crate::streams::enqueue;

/// `CUlaunchConfig`, as far as its stream.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    n_shared_bytes: c_uint,
    stream: Handle,
}

calls! {
    cuLaunchKernel(
        _call, _function: Handle, _grid_x: c_uint, _grid_y: c_uint, _grid_z: c_uint, _block_x: c_uint,
        _block_y: c_uint, _block_z: c_uint, _n_shared_bytes: c_uint, stream: Handle,
        _arguments: usize, _extra: usize,
    ) {
        enqueue(stream, NodeKind::KERNEL, || Ok(()))
    }

    cuLaunchCooperativeKernel(
        _call, _function: Handle, _grid_x: c_uint, _grid_y: c_uint, _grid_z: c_uint, _block_x: c_uint,
        _block_y: c_uint, _block_z: c_uint, _n_shared_bytes: c_uint, stream: Handle, _arguments: usize,
    ) {
        enqueue(stream, NodeKind::KERNEL, || Ok(()))
    }

    cuLaunchKernelEx(
        _call, config: *const LaunchConfig, _function: Handle, _arguments: usize, _extra: usize,
    ) {
        enqueue(read(config)?.stream, NodeKind::KERNEL, || Ok(()))
    }

    cuLaunchHostFunc(
        _call, stream: Handle, function: extern "C" fn(*mut c_void), argument: *mut c_void,
    ) {
        enqueue(stream, NodeKind::HOST, || {
            function(argument);
            Ok(())
        })
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        _call, n_blocks: *mut c_int, _function: Handle, n_threads: c_int, _n_shared_bytes: usize,
    ) {
        Ok(put(n_blocks, n_active_blocks(n_threads))?)
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        _call, n_blocks: *mut c_int, _function: Handle, n_threads: c_int, _n_shared_bytes: usize,
        _flags: c_uint,
    ) {
        Ok(put(n_blocks, n_active_blocks(n_threads))?)
    }
}

/// As many as 2048 threads make, at least 1 and at most 32.
fn n_active_blocks(n_threads: c_int) -> c_int {
    (2048 / n_threads.max(1)).clamp(1, 32)
}
