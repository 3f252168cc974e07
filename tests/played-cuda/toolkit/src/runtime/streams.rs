//! Streams and events.

use std::ffi::{c_int, c_uint, c_void};

use super::current::ready;
use crate::driver::{
    HostFunction, cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventQuery,
    cuEventRecord, cuEventSynchronize, cuLaunchHostFunc, cuStreamAddCallback,
    cuStreamCreateWithPriority, cuStreamDestroy_v2, cuStreamGetPriority, cuStreamQuery,
    cuStreamSynchronize, cuStreamWaitEvent,
};

calls! {
    cudaStreamCreate(stream: *mut usize) {
        ready()?;
        cuStreamCreateWithPriority(stream, 0, 0)
    }

    cudaStreamCreateWithFlags(stream: *mut usize, flags: c_uint) {
        ready()?;
        cuStreamCreateWithPriority(stream, flags, 0)
    }

    cudaStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int) {
        ready()?;
        cuStreamCreateWithPriority(stream, flags, priority)
    }

    cudaStreamDestroy(stream: usize) {
        cuStreamDestroy_v2(stream)
    }

    cudaStreamQuery(stream: usize) {
        ready()?;
        cuStreamQuery(stream)
    }

    cudaStreamSynchronize(stream: usize) {
        ready()?;
        cuStreamSynchronize(stream)
    }

    cudaStreamGetPriority(stream: usize, priority: *mut c_int) {
        ready()?;
        cuStreamGetPriority(stream, priority)
    }

    cudaStreamWaitEvent(stream: usize, event: usize, flags: c_uint) {
        ready()?;
        cuStreamWaitEvent(stream, event, flags)
    }

    cudaStreamAddCallback(
        stream: usize, callback: extern "C" fn(usize, c_int, *mut c_void), argument: *mut c_void,
        flags: c_uint,
    ) {
        ready()?;
        cuStreamAddCallback(stream, callback, argument, flags)
    }

    cudaLaunchHostFunc(stream: usize, function: HostFunction, argument: *mut c_void) {
        ready()?;
        cuLaunchHostFunc(stream, function, argument)
    }

    cudaEventCreate(event: *mut usize) {
        ready()?;
        cuEventCreate(event, 0)
    }

    cudaEventCreateWithFlags(event: *mut usize, flags: c_uint) {
        ready()?;
        cuEventCreate(event, flags)
    }

    cudaEventDestroy(event: usize) {
        cuEventDestroy_v2(event)
    }

    cudaEventRecord(event: usize, stream: usize) {
        ready()?;
        cuEventRecord(event, stream)
    }

    cudaEventRecordWithFlags(event: usize, stream: usize, _flags: c_uint) {
        ready()?;
        cuEventRecord(event, stream)
    }

    cudaEventQuery(event: usize) {
        cuEventQuery(event)
    }

    cudaEventSynchronize(event: usize) {
        cuEventSynchronize(event)
    }

    cudaEventElapsedTime(millis: *mut f32, start: usize, end: usize) {
        cuEventElapsedTime(millis, start, end)
    }
}
