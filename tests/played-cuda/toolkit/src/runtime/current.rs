//! The runtime's start, and the device of each thread.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::calls::Answer;
use crate::driver::{
    cuCtxGetCurrent, cuCtxSetCurrent, cuDeviceGetCount, cuDevicePrimaryCtxRetain, cuInit,
};
use crate::error::Error;

thread_local! {
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The context that the runtime made this thread's own.
    static BOUND: Cell<usize> = const { Cell::new(0) };
}

/// Starts the driver, once; the number of devices.
pub(crate) fn started() -> Result<c_int, Error> {
    static N_DEVICES: OnceLock<Result<c_int, Error>> = OnceLock::new();
    *N_DEVICES.get_or_init(|| {
        let mut n_devices = 0;
        cuInit(0)?;
        cuDeviceGetCount(&raw mut n_devices)?;
        Ok(n_devices)
    })
}

/// An error unless there is such a device.
pub(super) fn checked(device: c_int) -> Answer {
    let is_there = (0..started()?).contains(&device);
    is_there.then_some(()).ok_or(Error::INVALID_DEVICE)
}

/// Makes a device's primary context this thread's own, and retains it the first time.
pub(super) fn bind(device: c_int) -> Answer {
    static CONTEXTS: Mutex<Option<HashMap<c_int, usize>>> = Mutex::new(None);
    checked(device)?;
    let context = {
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let contexts = contexts.get_or_insert_default();
        if let Some(known) = contexts.get(&device) {
            *known
        } else {
            let mut context = 0;
            cuDevicePrimaryCtxRetain(&raw mut context, device)?;
            contexts.insert(device, context);
            context
        }
    };
    if context_now()? != context {
        cuCtxSetCurrent(context)?;
    }
    DEVICE.set(device);
    BOUND.set(context);
    Ok(())
}

/// Gives this thread a context unless it has one.
pub(crate) fn ready() -> Answer {
    started()?;
    match context_now()? {
        0 => bind(DEVICE.get()),
        _ => Ok(()),
    }
}

/// This thread's device, and whether the runtime itself made its context current.
pub(super) fn device() -> Result<(c_int, bool), Error> {
    started()?;
    let context = context_now()?;
    let is_own = context == 0 || context == BOUND.get();
    Ok((DEVICE.get(), is_own))
}

fn context_now() -> Result<usize, Error> {
    let mut context = 0;
    cuCtxGetCurrent(&raw mut context)?;
    Ok(context)
}
