//! Contexts: the primary one of each device, others, and each thread's stack of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};

use played_machine::{Device, State, put};

use crate::calls::{Answer, answer};
use crate::code::Code;
use crate::handles::{Handle, Handles};
use crate::process::{Process, initialised, process};

/// A context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// CUDA's number of its device.
    pub(crate) ordinal: c_int,
    id: u64,
}

/// A device's primary context.
#[derive(Debug, Default)]
struct Primary {
    handle: Handle,
    n_retained: usize,
    flags: c_uint,
    n_bytes: u64,
}

/// Every context of the process.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    made: Handles<Context>,
    primary: HashMap<c_int, Primary>,
    n_made: u64,
}

thread_local! {
    static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

impl Contexts {
    fn make(&mut self, ordinal: c_int) -> Handle {
        self.n_made += 1;
        let id = self.n_made;
        self.made.add(Context { ordinal, id })
    }

    fn retain(&mut self, state: &State, device: Device, ordinal: c_int) -> Result<Handle, Code> {
        let is_first = self
            .primary
            .get(&ordinal)
            .is_none_or(|it| it.n_retained == 0);
        if is_first {
            let n_bytes = device.context(state);
            if !device.take(state, n_bytes) {
                return Err(Code::OUT_OF_MEMORY);
            }
            // A context that comes back has the handle that it had.
            let known = self.primary.get(&ordinal).map_or(0, |it| it.handle);
            let handle = if known == 0 {
                self.make(ordinal)
            } else {
                known
            };
            let primary = self.primary.entry(ordinal).or_default();
            (primary.handle, primary.n_bytes) = (handle, n_bytes);
        }
        let primary = self.primary.entry(ordinal).or_default();
        primary.n_retained += 1;
        Ok(primary.handle)
    }

    fn release(&mut self, device: Device, ordinal: c_int, is_reset: bool) -> Answer {
        let primary = self.primary.entry(ordinal).or_default();
        if primary.n_retained == 0 {
            return if is_reset {
                Ok(())
            } else {
                Err(Code::INVALID_CONTEXT)
            };
        }
        primary.n_retained = if is_reset { 0 } else { primary.n_retained - 1 };
        if primary.n_retained == 0 {
            device.give(std::mem::take(&mut primary.n_bytes));
        }
        Ok(())
    }

    /// The primary context's handle, if it is there.
    pub(crate) fn primary(&self, ordinal: c_int) -> Option<Handle> {
        let primary = self.primary.get(&ordinal)?;
        (primary.n_retained > 0).then_some(primary.handle)
    }
}

/// This thread's context.
fn current() -> Option<Handle> {
    STACK.with_borrow(|stack| stack.last().copied())
}

impl Process {
    /// The context that a call names, or this thread's if it names none.
    pub(crate) fn context(&self, named: Handle) -> Result<Context, Code> {
        let handle = match named {
            0 => current().ok_or(Code::INVALID_CONTEXT)?,
            named => named,
        };
        let context = self.contexts.made.get(handle);
        context.copied().map_err(|_| Code::INVALID_CONTEXT)
    }

    /// The device of this thread's context.
    pub(crate) fn current_device(&self) -> Result<Device, Code> {
        self.device(self.context(0)?.ordinal)
    }
}

/// Retains the primary context, and makes it if there is none. The log distinguishes the two.
#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, ordinal: c_int) -> c_int {
    let has_context = process().is_ok_and(|it| it.contexts.primary(ordinal).is_some());
    let name = if has_context {
        "cuDevicePrimaryCtxRetain"
    } else {
        "created a context"
    };
    answer(name, |call| {
        let mut process = process()?;
        let device = process.device(ordinal)?;
        let handle = process.contexts.retain(&call.state, device, ordinal)?;
        Ok(put(context, handle)?)
    })
}

/// As which `cuGetProcAddress` finds it.
pub(crate) const RETAIN: crate::calls::EntryPoint = crate::calls::EntryPoint {
    symbol: "cuDevicePrimaryCtxRetain",
    since: 0,
    address: || cuDevicePrimaryCtxRetain as *const std::ffi::c_void,
};

calls! {
    cuDevicePrimaryCtxRelease_v2(_call, ordinal: c_int) {
        let mut process = process()?;
        let device = process.device(ordinal)?;
        process.contexts.release(device, ordinal, false)
    }

    cuDevicePrimaryCtxReset_v2(_call, ordinal: c_int) {
        let mut process = process()?;
        let device = process.device(ordinal)?;
        process.contexts.release(device, ordinal, true)
    }

    cuDevicePrimaryCtxSetFlags_v2(_call, ordinal: c_int, flags: c_uint) {
        let mut process = process()?;
        process.device(ordinal)?;
        process.contexts.primary.entry(ordinal).or_default().flags = flags;
        Ok(())
    }

    /// Whether this process has a primary context on a device.
    cuDevicePrimaryCtxGetState(_call, ordinal: c_int, flags: *mut c_uint, is_active: *mut c_int) {
        let process = process()?;
        process.device(ordinal)?;
        put(flags, process.contexts.primary.get(&ordinal).map_or(0, |it| it.flags))?;
        Ok(put(is_active, c_int::from(process.contexts.primary(ordinal).is_some()))?)
    }

    [3020]
    cuCtxCreate_v2(_call, context: *mut Handle, _flags: c_uint, ordinal: c_int) {
        create(context, ordinal)
    }

    [11040]
    cuCtxCreate_v3(_call, context: *mut Handle, _affinity: usize, _n: c_int, _flags: c_uint, ordinal: c_int) {
        create(context, ordinal)
    }

    [12050]
    cuCtxCreate_v4(_call, context: *mut Handle, _settings: usize, _flags: c_uint, ordinal: c_int) {
        create(context, ordinal)
    }

    cuCtxDestroy_v2(_call, context: Handle) {
        process()?.contexts.made.remove(context).map_err(|_| Code::INVALID_CONTEXT)?;
        STACK.with_borrow_mut(|stack| stack.retain(|it| *it != context));
        Ok(())
    }

    cuCtxPushCurrent_v2(_call, context: Handle) {
        process()?.context(context)?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    cuCtxPopCurrent_v2(_call, context: *mut Handle) {
        initialised()?;
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(Code::INVALID_CONTEXT)?;
        if context.is_null() {
            return Ok(());
        }
        Ok(put(context, popped)?)
    }

    cuCtxSetCurrent(_call, context: Handle) {
        let process = process()?;
        if context != 0 {
            process.context(context)?;
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            if context != 0 {
                stack.push(context);
            }
        });
        Ok(())
    }

    cuCtxGetCurrent(_call, context: *mut Handle) {
        initialised()?;
        Ok(put(context, current().unwrap_or(0))?)
    }

    [2000]
    cuCtxGetDevice(_call, device: *mut c_int) {
        Ok(put(device, process()?.context(0)?.ordinal)?)
    }

    [13000]
    cuCtxGetDevice_v2(_call, device: *mut c_int, context: Handle) {
        Ok(put(device, process()?.context(context)?.ordinal)?)
    }

    cuCtxGetId(_call, context: Handle, id: *mut u64) {
        Ok(put(id, process()?.context(context)?.id)?)
    }

    cuCtxGetFlags(_call, flags: *mut c_uint) {
        process()?.context(0)?;
        Ok(put(flags, 0)?)
    }

    cuCtxGetApiVersion(_call, context: Handle, version: *mut c_uint) {
        process()?.context(context)?;
        Ok(put(version, 3020)?)
    }

    cuCtxSynchronize(_call) {
        process()?.context(0).map(|_| ())
    }

    cuCtxSetLimit(_call, _which: c_int, _limit: usize) {
        process()?.context(0).map(|_| ())
    }

    cuCtxGetLimit(_call, limit: *mut usize, _which: c_int) {
        process()?.context(0)?;
        Ok(put(limit, 8 << 20)?)
    }

    cuCtxSetCacheConfig(_call, _preference: c_int) {
        process()?.context(0).map(|_| ())
    }

    /// From the lowest priority to the highest, which has the smaller number.
    cuCtxGetStreamPriorityRange(_call, least: *mut c_int, greatest: *mut c_int) {
        process()?.context(0)?;
        put(least, 0)?;
        Ok(put(greatest, -5)?)
    }

    cuCtxEnablePeerAccess(_call, peer: Handle, _flags: c_uint) {
        process()?.context(peer).map(|_| ())
    }

    cuCtxDisablePeerAccess(_call, peer: Handle) {
        process()?.context(peer).map(|_| ())
    }
}

fn create(context: *mut Handle, ordinal: c_int) -> Answer {
    let mut process = process()?;
    process.device(ordinal)?;
    let handle = process.contexts.make(ordinal);
    put(context, handle)?;
    STACK.with_borrow_mut(|stack| stack.push(handle));
    Ok(())
}
