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

/// Exports functions: `symbol(call, arguments) { answer }`.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $symbol:ident($call:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $symbol($($argument: $type),*) -> c_int {
            call(stringify!($symbol), |$call| $body)
        }
    )*};
}

/// The same of functions whose first argument is a device: `symbol(call, device, arguments) { answer }`.
macro_rules! calls_on {
    ($(
        $(#[$doc:meta])*
        $symbol:ident($call:ident, $device:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $symbol(handle: usize, $($argument: $type),*) -> c_int {
            $crate::call_on(stringify!($symbol), handle, |$call, $device| $body)
        }
    )*};
}

calls! {
    nvmlInit_v2(_call) {
        Ok(())
    }

    nvmlInit(_call) {
        Ok(())
    }

    nvmlInitWithFlags(_call, _flags: c_uint) {
        Ok(())
    }

    nvmlShutdown(_call) {
        Ok(())
    }

    nvmlSystemGetDriverVersion(_call, version: *mut c_char, length: c_uint) {
        Ok(put_text(version, length as usize, "570.00")?)
    }

    nvmlSystemGetCudaDriverVersion(_call, version: *mut c_int) {
        Ok(put(version, 13020)?)
    }

    nvmlSystemGetCudaDriverVersion_v2(_call, version: *mut c_int) {
        Ok(put(version, 13020)?)
    }

    nvmlDeviceGetCount_v2(call, count: *mut c_uint) {
        Ok(put(count, gpus(&call.state).count() as c_uint)?)
    }

    nvmlDeviceGetHandleByIndex_v2(call, idx: c_uint, handle: *mut usize) {
        let device = gpus(&call.state).nth(idx as usize);
        Ok(put(handle, device.ok_or(Code::INVALID)?.gpu + 1)?)
    }

    /// Cards are on buses from 0x10 on, as the played driver says too.
    nvmlDeviceGetHandleByPciBusId_v2(call, id: *const c_char, handle: *mut usize) {
        let id = read_text(id)?;
        let bus = id.split(':').nth(1);
        let bus = bus.and_then(|it| usize::from_str_radix(it, 16).ok());
        let mut on_bus = gpus(&call.state).filter(|it| Some(it.bus()) == bus);
        Ok(put(handle, on_bus.next().ok_or(Code::NOT_FOUND)?.gpu + 1)?)
    }

    // No links between cards, and no fabric.
    nvmlDeviceGetGpuFabricInfoV(_call, _device: usize, _info: usize) {
        Err(Code::NOT_SUPPORTED)
    }

    nvmlDeviceGetNvLinkRemoteDeviceType(_call, _device: usize, _link: c_uint, _type: usize) {
        Err(Code::NOT_SUPPORTED)
    }

    nvmlDeviceGetNvLinkRemotePciInfo_v2(_call, _device: usize, _link: c_uint, _info: usize) {
        Err(Code::NOT_SUPPORTED)
    }
}

calls_on! {
    nvmlDeviceGetIndex(_call, device, idx: *mut c_uint) {
        Ok(put(idx, device.gpu as c_uint)?)
    }

    nvmlDeviceGetName(call, device, name: *mut c_char, length: c_uint) {
        Ok(put_text(name, length as usize, &device.name(&call.state))?)
    }

    nvmlDeviceGetUUID(call, device, uuid: *mut c_char, length: c_uint) {
        Ok(put_text(uuid, length as usize, &device.uuid(&call.state))?)
    }

    /// Whether a GPU is divided, now and after the next start.
    nvmlDeviceGetMigMode(call, device, current: *mut c_uint, pending: *mut c_uint) {
        device.text(&call.state, "mig_places").ok_or(Code::NOT_SUPPORTED)?;
        put(current, 1)?;
        Ok(put(pending, 1)?)
    }

    /// How many parts a GPU has room for.
    nvmlDeviceGetMaxMigDeviceCount(call, device, count: *mut c_uint) {
        let key = format!("{}.mig_places", device.key());
        let n_places = call.state.number(&key).unwrap_or(0);
        Ok(put(count, n_places as c_uint)?)
    }

    /// The part in one of those places.
    nvmlDeviceGetMigDeviceHandleByIndex(call, device, idx: c_uint, part: *mut usize) {
        let mut parts = device.parts(&call.state).into_iter();
        let is_there = parts.any(|it| it.part == Some(idx as usize));
        let found = is_there.then_some(device.gpu + 1 + PART * (idx as usize + 1));
        Ok(put(part, found.ok_or(Code::NOT_FOUND)?)?)
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: c_int) -> *const c_char {
    Code(code).message().as_ptr()
}
