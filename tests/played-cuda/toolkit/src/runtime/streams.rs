//! Streams and events.

use std::ffi::c_uint;

use super::current::ready;
use crate::driver::{cuEventCreate, cuEventRecord, cuStreamCreateWithPriority};

calls! {
    cudaStreamCreate(stream: *mut usize) {
        ready()?;
        cuStreamCreateWithPriority(stream, 0, 0)
    }

    cudaStreamCreateWithFlags(stream: *mut usize, flags: c_uint) {
        ready()?;
        cuStreamCreateWithPriority(stream, flags, 0)
    }

    cudaEventCreate(event: *mut usize) {
        ready()?;
        cuEventCreate(event, 0)
    }

    cudaEventRecordWithFlags(event: usize, stream: usize, _flags: c_uint) {
        ready()?;
        cuEventRecord(event, stream)
    }
}
