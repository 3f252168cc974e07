//! `libnvidia-ml.so.1` as far as gpumem and torch call it: the cards of the state file
//! in the order of the bus, and the parts that they are divided into.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "the library's interface is C")]

mod code;
mod memory;
mod processes;

use std::ffi::{c_char, c_int, c_uint};

use code::Code;
use played_machine::{Call, Device, gpus, put, put_text, read_text};

type Answer = Result<(), Code>;

/// A handle is the number of a GPU, and one; of a part, this times the part's place besides.
const PART: usize = 1000;

fn device_of(handle: usize) -> Result<Device, Code> {
    let gpu = (handle % PART).checked_sub(1).ok_or(Code::INVALID)?;
    let part = (handle / PART).checked_sub(1);
    Ok(Device { gpu, part })
}

fn call(name: &str, answer: impl FnOnce(&Call) -> Answer) -> c_int {
    let answer = match Call::begin(name) {
        Err(failure) => Err(Code::named(&failure)),
        Ok(call) => answer(&call),
    };
    answer.map_or_else(|code| code.0, |()| 0)
}

/// Runs a call on a device, which may fail on that one alone: `gpu1.NAME = lost`.
fn call_on(name: &str, handle: usize, answer: impl FnOnce(&Call, Device) -> Answer) -> c_int {
    call(name, |call| {
        let device = device_of(handle)?;
        match call.state.text(&format!("gpu{}.{name}", device.gpu)) {
            Some(failure) => Err(Code::named(failure)),
            None => answer(call, device),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> c_int {
    call("nvmlInit_v2", |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit() -> c_int {
    call("nvmlInit", |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> c_int {
    call("nvmlInitWithFlags", |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> c_int {
    call("nvmlShutdown", |_| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: c_int) -> *const c_char {
    Code(code).words().as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> c_int {
    call("nvmlSystemGetDriverVersion", |_| {
        Ok(put_text(version, length as usize, "570.00")?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) -> c_int {
    call("nvmlSystemGetCudaDriverVersion", |_| {
        Ok(put(version, 13020)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> c_int {
    call("nvmlSystemGetCudaDriverVersion_v2", |_| {
        Ok(put(version, 13020)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    call("nvmlDeviceGetCount_v2", |call| {
        Ok(put(count, gpus(&call.state).count() as c_uint)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(idx: c_uint, handle: *mut usize) -> c_int {
    call("nvmlDeviceGetHandleByIndex_v2", |call| {
        let device = gpus(&call.state).nth(idx as usize);
        Ok(put(handle, device.ok_or(Code::INVALID)?.gpu + 1)?)
    })
}

/// Cards are on buses from 0x10 on, as the played driver says too.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, handle: *mut usize) -> c_int {
    call("nvmlDeviceGetHandleByPciBusId_v2", |call| {
        let id = read_text(id)?;
        let bus = id.split(':').nth(1);
        let bus = bus.and_then(|it| usize::from_str_radix(it, 16).ok());
        let mut on_bus = gpus(&call.state).filter(|it| Some(it.bus()) == bus);
        Ok(put(handle, on_bus.next().ok_or(Code::NOT_FOUND)?.gpu + 1)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetIndex(handle: usize, idx: *mut c_uint) -> c_int {
    call_on("nvmlDeviceGetIndex", handle, |_, device| {
        Ok(put(idx, device.gpu as c_uint)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(handle: usize, name: *mut c_char, length: c_uint) -> c_int {
    call_on("nvmlDeviceGetName", handle, |call, device| {
        Ok(put_text(name, length as usize, &device.name(&call.state))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(handle: usize, uuid: *mut c_char, length: c_uint) -> c_int {
    call_on("nvmlDeviceGetUUID", handle, |call, device| {
        Ok(put_text(uuid, length as usize, &device.uuid(&call.state))?)
    })
}

/// Whether a GPU is divided, now and after the next start.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigMode(
    handle: usize,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> c_int {
    call_on("nvmlDeviceGetMigMode", handle, |call, device| {
        let places = device.text(&call.state, "mig_places");
        places.ok_or(Code::NOT_SUPPORTED)?;
        put(current, 1)?;
        Ok(put(pending, 1)?)
    })
}

/// How many parts a GPU has room for.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxMigDeviceCount(handle: usize, count: *mut c_uint) -> c_int {
    call_on("nvmlDeviceGetMaxMigDeviceCount", handle, |call, device| {
        let key = format!("{}.mig_places", device.key());
        let n_places = call.state.number(&key).unwrap_or(0);
        Ok(put(count, n_places as c_uint)?)
    })
}

/// The part in one of those places.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    handle: usize,
    idx: c_uint,
    part: *mut usize,
) -> c_int {
    let name = "nvmlDeviceGetMigDeviceHandleByIndex";
    call_on(name, handle, |call, device| {
        let mut parts = device.parts(&call.state).into_iter();
        let is_there = parts.any(|it| it.part == Some(idx as usize));
        let found = is_there.then_some(handle + PART * (idx as usize + 1));
        Ok(put(part, found.ok_or(Code::NOT_FOUND)?)?)
    })
}

/// No links between cards, and no fabric.
macro_rules! not_supported {
    ($($name:ident($($argument:ty),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($(_: $argument),*) -> c_int {
                call(stringify!($name), |_| Err(Code::NOT_SUPPORTED))
            }
        )*
    };
}

not_supported! {
    nvmlDeviceGetGpuFabricInfoV(usize, usize);
    nvmlDeviceGetNvLinkRemoteDeviceType(usize, c_uint, usize);
    nvmlDeviceGetNvLinkRemotePciInfo_v2(usize, c_uint, usize);
}
