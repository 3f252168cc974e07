//! Allocating and releasing.

use std::ffi::{c_int, c_uint};

use played_machine::{Call, put};

use super::areas::{Area, Kind, Wanted};
use crate::calls::Answer;
use crate::process::process;

calls! {
    /// Free and total bytes of the current context's device.
    cuMemGetInfo_v2(call, free: *mut usize, total: *mut usize) {
        let device = process()?.current_device()?;
        let usable = device.usable(&call.state);
        let n_free = usable.saturating_sub(device.used(&call.state));
        put(free, call.size(n_free) as usize)?;
        Ok(put(total, call.size(usable) as usize)?)
    }

    cuMemAlloc_v2(call, pointer: *mut usize, n_bytes: usize) {
        allocate(call, pointer, n_bytes, Kind::Device)
    }

    cuMemAllocManaged(call, pointer: *mut usize, n_bytes: usize, _flags: c_uint) {
        allocate(call, pointer, n_bytes, Kind::Managed)
    }

    cuMemAllocHost_v2(call, pointer: *mut usize, n_bytes: usize) {
        allocate(call, pointer, n_bytes, Kind::Host)
    }

    cuMemHostAlloc(call, pointer: *mut usize, n_bytes: usize, _flags: c_uint) {
        allocate(call, pointer, n_bytes, Kind::Host)
    }

    cuMemFree_v2(_call, pointer: usize) {
        process()?.release(pointer)
    }

    cuMemFreeHost(_call, pointer: usize) {
        process()?.release(pointer)
    }

    cuMemHostRegister_v2(_call, pointer: usize, n_bytes: usize, _flags: c_uint) {
        let mut process = process()?;
        let ordinal: c_int = process.context(0)?.ordinal;
        process.areas.add(Area {
            start: pointer,
            n_bytes,
            n_counted: 0,
            kind: Kind::Registered,
            ordinal,
            pool: None,
            id: 0,
        });
        Ok(())
    }

    cuMemHostUnregister(_call, pointer: usize) {
        process()?.release(pointer)
    }

    cuMemPrefetchAsync(_call, _pointer: usize, _n_bytes: usize, _device: c_int, _stream: usize) {
        Ok(())
    }

    cuMemAdvise(_call, _pointer: usize, _n_bytes: usize, _advice: c_int, _device: c_int) {
        Ok(())
    }
}

fn allocate(call: &Call, pointer: *mut usize, n_bytes: usize, kind: Kind) -> Answer {
    let mut process = process()?;
    let ordinal = process.context(0)?.ordinal;
    let wanted = Wanted {
        n_bytes,
        kind,
        ordinal,
        pool: None,
    };
    let address = process.allocate(&call.state, &wanted)?;
    Ok(put(pointer, address)?)
}
