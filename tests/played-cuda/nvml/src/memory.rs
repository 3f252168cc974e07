//! The memory of a GPU, or of a part.

use std::ffi::{c_int, c_uint};

use played_machine::{Call, Device, put};

use crate::call_on;

/// `nvmlMemory_v2_t`.
#[repr(C)]
struct Memory2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_t`.
#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: usize, memory: *mut Memory2) -> c_int {
    call_on("nvmlDeviceGetMemoryInfo_v2", handle, |call, device| {
        Ok(put(memory, levels(call, device))?)
    })
}

/// Here what the driver keeps counts as used.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo(handle: usize, memory: *mut Memory) -> c_int {
    call_on("nvmlDeviceGetMemoryInfo", handle, |call, device| {
        let levels = levels(call, device);
        let memory_of_v1 = Memory {
            total: levels.total,
            free: levels.free,
            used: levels.used.saturating_add(levels.reserved),
        };
        Ok(put(memory, memory_of_v1)?)
    })
}

fn levels(call: &Call, device: Device) -> Memory2 {
    let used = device.used(&call.state);
    Memory2 {
        version: 0,
        total: call.size(device.total(&call.state)),
        reserved: call.size(device.reserved(&call.state)),
        free: call.size(device.usable(&call.state).saturating_sub(used)),
        used: call.size(used),
    }
}
