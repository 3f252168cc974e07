//! `cudaPointerAttributes`.

use std::ffi::{c_int, c_long, c_uint, c_void};

use played_machine::put;

use super::current::started;
use crate::calls::Answer;
use crate::driver::cuPointerGetAttribute;
use crate::version;

/// The structure of CUDA 12.
#[repr(C)]
struct Attributes {
    kind: c_int,
    device: c_int,
    on_device: usize,
    on_host: usize,
}

/// The structure of CUDA 13.
#[repr(C)]
struct Attributes13 {
    attributes: Attributes,
    reserved: [c_long; 8],
}

/// `cudaMemoryType`.
const UNREGISTERED: c_int = 0;
const HOST: c_int = 1;
const DEVICE: c_int = 2;
const MANAGED: c_int = 3;

/// `CUpointer_attribute`.
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const ORDINAL: c_int = 9;

calls! {
    cudaPointerGetAttributes(place: *mut c_void, address: usize) {
        started()?;
        let attributes = attributes(address);
        if version::is_13() {
            put(place.cast(), Attributes13 { attributes, reserved: [0; 8] })?;
        } else {
            put(place.cast(), attributes)?;
        }
        Ok(())
    }
}

/// Memory that the driver does not know is the caller's own.
fn attributes(address: usize) -> Attributes {
    let figure = |which: c_int| -> Result<c_uint, _> {
        let mut figure: c_uint = 0;
        let place = (&raw mut figure).cast();
        let answer: Answer = cuPointerGetAttribute(place, which, address);
        answer.map(|()| figure)
    };
    let known = [MEMORY_TYPE, IS_MANAGED, ORDINAL].map(figure);
    let [Ok(kind), Ok(is_managed), Ok(device)] = known else {
        return Attributes {
            kind: UNREGISTERED,
            device: -2,
            on_device: 0,
            on_host: address,
        };
    };
    let kind = match (is_managed, kind as c_int) {
        (1.., _) => MANAGED,
        (0, HOST) => HOST,
        (0, _) => DEVICE,
    };
    Attributes {
        kind,
        device: device as c_int,
        on_device: address,
        on_host: if kind == DEVICE { 0 } else { address },
    }
}
