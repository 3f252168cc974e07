//! Versions and devices.

use std::ffi::{c_char, c_int, c_uint, c_void};

use played_machine::put;

use super::current::{bind, checked, device, ready, started};
use crate::driver::{cuCtxGetDevice, cuDriverGetVersion, cuGetProcAddress_v2};
use crate::error::Error;
use crate::version;

calls! {
    /// 0 if there is no driver.
    cudaDriverGetVersion(version: *mut c_int) {
        match cuDriverGetVersion(version) {
            Err(Error::INSUFFICIENT_DRIVER) => Ok(put(version, 0)?),
            answer => answer,
        }
    }

    cudaRuntimeGetVersion(version: *mut c_int) {
        Ok(put(version, version::cuda())?)
    }

    /// A name that the driver does not have is no error: the status says it.
    cudaGetDriverEntryPointByVersion(
        name: *const c_char, address: *mut *const c_void, version: c_uint, flags: u64, status: *mut c_int,
    ) {
        started()?;
        match cuGetProcAddress_v2(name, address, version as c_int, flags, status) {
            Err(Error::SYMBOL_NOT_FOUND) => Ok(()),
            answer => answer,
        }
    }

    cudaGetDriverEntryPoint(
        name: *const c_char, address: *mut *const c_void, flags: u64, status: *mut c_int,
    ) {
        let version = version::cuda() as c_uint;
        match cudaGetDriverEntryPointByVersion(name, address, version, flags, status) {
            0 => Ok(()),
            code => Err(Error(code)),
        }
    }

    cudaProfilerStart() {
        Ok(())
    }

    cudaProfilerStop() {
        Ok(())
    }

    cudaGetDeviceCount(count: *mut c_int) {
        put(count, 0)?;
        match started()? {
            0 => Err(Error::NO_DEVICE),
            n_devices => Ok(put(count, n_devices)?),
        }
    }

    cudaGetDevice(place: *mut c_int) {
        match device()? {
            (device, true) => Ok(put(place, device)?),
            (_, false) => cuCtxGetDevice(place),
        }
    }

    cudaSetDevice(device: c_int) {
        bind(device)
    }

    cudaDeviceEnablePeerAccess(peer: c_int, _flags: c_uint) {
        ready()?;
        checked(peer)
    }

    cudaDeviceSetGraphMemAttribute(device: c_int, _which: c_int, _figure: *mut c_void) {
        checked(device)
    }
}
