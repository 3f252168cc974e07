//! What is known of an address.

use std::ffi::{c_int, c_uint, c_void};

use played_machine::{put, read};

use super::areas::{Area, Kind};
use crate::calls::Answer;
use crate::code::Code;
use crate::process::process;

/// `CUpointer_attribute`.
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const DEVICE_POINTER: c_int = 3;
const HOST_POINTER: c_int = 4;
const BUFFER_ID: c_int = 7;
const IS_MANAGED: c_int = 8;
const ORDINAL: c_int = 9;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;
const IS_MAPPED: c_int = 13;
const HANDLE_TYPES: c_int = 14;
const POOL: c_int = 17;

const ON_HOST: c_uint = 1;
const ON_DEVICE: c_uint = 2;

calls! {
    cuPointerGetAttribute(_call, place: *mut c_void, which: c_int, address: usize) {
        put_attribute(place, which, address)
    }

    /// Of memory that is not the driver's everything is 0, and its device is -2.
    cuPointerGetAttributes(
        _call, n: c_uint, which: *const c_int, places: *const *mut c_void, address: usize,
    ) {
        for idx in 0..n as usize {
            let (which, place) = (read(which.wrapping_add(idx))?, read(places.wrapping_add(idx))?);
            if put_attribute(place, which, address).is_err() {
                put_none(place, which)?;
            }
        }
        Ok(())
    }

    cuPointerSetAttribute(_call, _value: usize, _which: c_int, _address: usize) {
        Ok(())
    }

    cuMemGetAddressRange_v2(_call, start: *mut usize, n_bytes: *mut usize, address: usize) {
        let area = process()?.areas.at(address).ok_or(Code::NOT_FOUND)?;
        if !start.is_null() {
            put(start, area.start)?;
        }
        if !n_bytes.is_null() {
            put(n_bytes, area.n_bytes)?;
        }
        Ok(())
    }

    cuMemHostGetDevicePointer_v2(_call, pointer: *mut usize, host: usize, _flags: c_uint) {
        Ok(put(pointer, host)?)
    }

    cuMemHostGetFlags(_call, flags: *mut c_uint, _host: usize) {
        Ok(put(flags, 0)?)
    }
}

fn put_attribute(place: *mut c_void, which: c_int, address: usize) -> Answer {
    let process = process()?;
    let Area {
        start,
        n_bytes,
        kind,
        ordinal,
        pool,
        id,
        ..
    } = process.areas.at(address).ok_or(Code::INVALID_VALUE)?;
    let is_managed = kind == Kind::Managed;
    match which {
        CONTEXT => put(place.cast(), process.contexts.primary(ordinal).unwrap_or(0))?,
        MEMORY_TYPE if kind.is_on_host() => put(place.cast(), ON_HOST)?,
        MEMORY_TYPE => put(place.cast(), ON_DEVICE)?,
        HOST_POINTER if !kind.is_on_host() && !is_managed => return Err(Code::INVALID_VALUE),
        DEVICE_POINTER | HOST_POINTER => put(place.cast(), address)?,
        BUFFER_ID => put(place.cast(), id)?,
        IS_MANAGED => put(place.cast(), c_uint::from(is_managed))?,
        ORDINAL => put(place.cast(), ordinal)?,
        RANGE_START => put(place.cast(), start)?,
        RANGE_SIZE => put(place.cast(), n_bytes)?,
        IS_MAPPED => put(place.cast(), 1_u32)?,
        HANDLE_TYPES => put(place.cast(), 0_u64)?,
        POOL => put(place.cast(), pool.unwrap_or(0))?,
        _ => put(place.cast(), 0_u32)?,
    }
    Ok(())
}

fn put_none(place: *mut c_void, which: c_int) -> Answer {
    match which {
        ORDINAL => put(place.cast(), -2_i32)?,
        MEMORY_TYPE | IS_MANAGED | IS_MAPPED => put(place.cast(), 0_u32)?,
        _ => put(place.cast(), 0_u64)?,
    }
    Ok(())
}
