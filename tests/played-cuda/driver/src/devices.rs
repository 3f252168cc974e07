//! Properties of the devices.

use std::ffi::{c_char, c_int, c_uint};

use played_machine::{Device, put, put_text, read_text, uuid_bytes};

use crate::code::Code;
use crate::process::{initialise, process};

/// The CUDA version of the driver if the file names none: `driver_version = 12080`.
const VERSION: u64 = 13020;

calls! {
    cuInit(call, _flags: c_uint) {
        initialise(&call.state)
    }

    cuDriverGetVersion(call, version: *mut c_int) {
        let known = call.state.number("driver_version").unwrap_or(VERSION);
        Ok(put(version, known as c_int)?)
    }

    cuDeviceGetCount(_call, count: *mut c_int) {
        Ok(put(count, process()?.devices.len() as c_int)?)
    }

    /// A handle, which is the number.
    cuDeviceGet(_call, device: *mut c_int, ordinal: c_int) {
        process()?.device(ordinal)?;
        Ok(put(device, ordinal)?)
    }

    cuDeviceGetName(call, name: *mut c_char, length: c_int, ordinal: c_int) {
        let text = process()?.device(ordinal)?.name(&call.state);
        Ok(put_text(name, usize::try_from(length).unwrap_or(0), &text)?)
    }

    /// The UUID of the whole GPU.
    [9020]
    cuDeviceGetUuid(call, uuid: *mut [u8; 16], ordinal: c_int) {
        let device = process()?.device(ordinal)?;
        let text = Device::whole(device.gpu).uuid(&call.state);
        Ok(put(uuid, uuid_bytes(&text))?)
    }

    /// The UUID of the part that CUDA shows of it, if it is divided.
    [11040]
    cuDeviceGetUuid_v2(call, uuid: *mut [u8; 16], ordinal: c_int) {
        let text = process()?.device(ordinal)?.uuid(&call.state);
        Ok(put(uuid, uuid_bytes(&text))?)
    }

    cuDeviceTotalMem_v2(call, n_bytes: *mut usize, ordinal: c_int) {
        let device = process()?.device(ordinal)?;
        Ok(put(n_bytes, call.size(device.usable(&call.state)) as usize)?)
    }

    /// Each card is on a bus of its own, from 0x10 on, as the played NVML says too.
    cuDeviceGetPCIBusId(_call, id: *mut c_char, length: c_int, ordinal: c_int) {
        let bus = process()?.device(ordinal)?.bus();
        let text = format!("0000:{bus:02X}:00.0");
        Ok(put_text(id, usize::try_from(length).unwrap_or(0), &text)?)
    }

    cuDeviceGetByPCIBusId(_call, device: *mut c_int, id: *const c_char) {
        let id = read_text(id)?;
        let bus = id.split(':').nth(1);
        let bus = bus.and_then(|it| usize::from_str_radix(it, 16).ok());
        let process = process()?;
        let ordinal = process.devices.iter().position(|it| Some(it.bus()) == bus);
        Ok(put(device, ordinal.ok_or(Code::INVALID_VALUE)? as c_int)?)
    }

    cuDeviceComputeCapability(call, major: *mut c_int, minor: *mut c_int, ordinal: c_int) {
        let capability = process()?.device(ordinal)?.capability(&call.state);
        put(major, (capability / 10) as c_int)?;
        Ok(put(minor, (capability % 10) as c_int)?)
    }

    cuDeviceCanAccessPeer(_call, can: *mut c_int, ordinal: c_int, peer: c_int) {
        Ok(put(can, c_int::from(ordinal != peer))?)
    }

    cuDeviceGetP2PAttribute(_call, figure: *mut c_int, which: c_int, _ordinal: c_int, _peer: c_int) {
        // Access is supported; nothing of higher order is.
        Ok(put(figure, c_int::from(which == 2))?)
    }
}
