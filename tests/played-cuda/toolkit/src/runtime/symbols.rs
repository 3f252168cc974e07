//! What the compiler's own code registers when a library is loaded: kernels, and variables
//! of the device, which get host memory when somebody wants their address.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use played_machine::put;

use super::current::ready;
use crate::calls::Answer;
use crate::driver::cuMemcpy;
use crate::error::Error;

/// A variable of the device.
#[derive(Debug, Default)]
struct Variable {
    n_bytes: usize,
    /// Where it lies; 0 as long as nobody wanted to know.
    address: usize,
}

static VARIABLES: Mutex<Option<HashMap<usize, Variable>>> = Mutex::new(None);

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(_image: *mut c_void) -> *mut usize {
    static HANDLE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    HANDLE.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_handle: *mut usize) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(_handle: *mut usize) {}

/// CUDA 12's, which tells that there is nothing to be done later.
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_handle: *mut usize) -> c_char {
    1
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    _handle: *mut usize,
    host: usize,
    _device: usize,
    _name: *const c_char,
    _is_extern: c_int,
    n_bytes: usize,
) {
    let variable = Variable {
        n_bytes,
        address: 0,
    };
    let mut variables = VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
    variables.get_or_insert_default().insert(host, variable);
}

fn address_of(host: usize) -> Result<usize, Error> {
    let mut variables = VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let variable = variables.get_or_insert_default().get_mut(&host);
    let variable = variable.ok_or(Error::INVALID_SYMBOL)?;
    if variable.address == 0 {
        let memory = vec![0_u8; variable.n_bytes.max(1)].leak();
        variable.address = memory.as_ptr() as usize;
    }
    Ok(variable.address)
}

calls! {
    cudaGetSymbolAddress(place: *mut usize, host: usize) {
        ready()?;
        Ok(put(place, address_of(host)?)?)
    }

    cudaMemcpyToSymbol(host: usize, from: usize, n_bytes: usize, offset: usize, _direction: c_int) {
        ready()?;
        let answer: Answer = cuMemcpy(address_of(host)? + offset, from, n_bytes);
        answer
    }
}
