//! `libcuda.so.1` as far as gpumem and its tests call it.
//!
//! Whether CUDA is initialised, and which contexts there are, is state of the
//! process; all else is in the state file. `cuda.order = 1,0` numbers the file's
//! GPUs as CUDA does.

#![expect(unsafe_code, reason = "the driver's interface is C")]

#[path = "../../state.rs"]
mod state;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use state::State;

const SUCCESS: c_int = 0;
const MAX_DEVICES: usize = 16;

static IS_INITIALISED: AtomicBool = AtomicBool::new(false);
/// How often each device's primary context is retained.
static N_RETAINED: [AtomicI32; MAX_DEVICES] = [const { AtomicI32::new(0) }; MAX_DEVICES];
thread_local! {
    static CURRENT: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The codes that tests name; `unlisted` is one that no header has.
const CODES: [(&str, &std::ffi::CStr, c_int); 7] = [
    ("invalid", c"CUDA_ERROR_INVALID_VALUE", 1),
    ("not_initialised", c"CUDA_ERROR_NOT_INITIALIZED", 3),
    ("deinitialised", c"CUDA_ERROR_DEINITIALIZED", 4),
    ("no_device", c"CUDA_ERROR_NO_DEVICE", 100),
    ("not_supported", c"CUDA_ERROR_NOT_SUPPORTED", 801),
    ("lost", c"CUDA_ERROR_LAUNCH_FAILED", 719),
    ("unlisted", c"", 424_242),
];

fn code(failure: &str) -> c_int {
    let known = CODES.iter().find(|(name, ..)| *name == failure);
    known.map_or(999, |(.., code)| *code)
}

/// Runs a call that needs CUDA to be initialised.
fn call(name: &str, answer: impl FnOnce(&State) -> c_int) -> c_int {
    match State::at(name) {
        Err(failure) => code(&failure),
        Ok(_) if !IS_INITIALISED.load(Ordering::SeqCst) => code("not_initialised"),
        Ok(state) => answer(&state),
    }
}

/// The file's number of a device of CUDA's.
fn gpu(state: &State, device: usize) -> String {
    let order = state.text("cuda.order").unwrap_or("0,1,2,3");
    let idx = order.split(',').nth(device).unwrap_or("0");
    format!("gpu{}", idx.trim())
}

fn put<T>(place: *mut T, figure: T) -> c_int {
    // SAFETY: the caller gives a place of that type, as the driver's interface asks.
    unsafe { place.write(figure) };
    SUCCESS
}

fn put_text(place: *mut c_char, length: c_int, text: &str) -> c_int {
    let n_places = usize::try_from(length).unwrap_or(0);
    for (idx, byte) in text.bytes().chain([0]).take(n_places).enumerate() {
        // SAFETY: the caller gives so many places.
        unsafe { place.add(idx).write(c_char::from_ne_bytes([byte])) };
    }
    SUCCESS
}

/// Starts CUDA in this process.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    if let Err(failure) = State::at("cuInit") {
        return code(&failure);
    }
    IS_INITIALISED.store(true, Ordering::SeqCst);
    SUCCESS
}

/// The name of a code; unknown codes have none.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(asked: c_int, name: *mut *const c_char) -> c_int {
    let known = CODES
        .iter()
        .find(|(_, text, code)| *code == asked && !text.is_empty());
    match known {
        Some((_, text, _)) => put(name, text.as_ptr()),
        None => code("invalid"),
    }
}

/// How many GPUs CUDA shows.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    call("cuDeviceGetCount", |state| {
        let shown = state.text("cuda.order").unwrap_or("0");
        put(
            count,
            c_int::try_from(shown.split(',').count()).unwrap_or(0),
        )
    })
}

/// A handle, which is the number.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    call("cuDeviceGet", |_| put(device, ordinal))
}

/// The maker's name.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> c_int {
    call("cuDeviceGetName", |state| {
        let known = state.text(&format!("{}.name", gpu(state, device as usize)));
        let text = known.unwrap_or("Fake GPU");
        put_text(name, length, text)
    })
}

/// The UUID of the whole GPU.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> c_int {
    call("cuDeviceGetUuid", |state| {
        put(
            uuid,
            bytes(state, &format!("{}.uuid", gpu(state, device as usize))),
        )
    })
}

/// The UUID of the part of it that CUDA shows, where it is divided.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    call("cuDeviceGetUuid_v2", |state| {
        let gpu = gpu(state, device as usize);
        let part = format!("{gpu}.mig0.uuid");
        let is_divided = state.text(&part).is_some();
        let key = if is_divided {
            part
        } else {
            format!("{gpu}.uuid")
        };
        put(uuid, bytes(state, &key))
    })
}

fn bytes(state: &State, key: &str) -> [u8; 16] {
    let text = state.text(key).unwrap_or("");
    let digits: String = text
        .chars()
        .skip(4)
        .filter(char::is_ascii_hexdigit)
        .collect();
    let number = u128::from_str_radix(&digits, 16).unwrap_or(0);
    number.to_be_bytes()
}

/// Of all attributes, whether it shares the host's memory.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(figure: *mut c_int, _which: c_uint, device: c_int) -> c_int {
    call("cuDeviceGetAttribute", |state| {
        let key = format!("{}.integrated", gpu(state, device as usize));
        put(figure, c_int::from(state.text(&key).is_some()))
    })
}

/// Whether this process has a primary context on it.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    is_active: *mut c_int,
) -> c_int {
    call("cuDevicePrimaryCtxGetState", |_| {
        let n_retained = N_RETAINED[device as usize].load(Ordering::SeqCst);
        put(flags, 0);
        put(is_active, c_int::from(n_retained > 0))
    })
}

/// Retains the primary context, and makes it where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> c_int {
    let is_first = N_RETAINED[device as usize].load(Ordering::SeqCst) == 0;
    let name = if is_first {
        "created a context"
    } else {
        "cuDevicePrimaryCtxRetain"
    };
    call(name, |_| {
        N_RETAINED[device as usize].fetch_add(1, Ordering::SeqCst);
        put(context, device as usize + 1)
    })
}

/// Releases it.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    call("cuDevicePrimaryCtxRelease_v2", |_| {
        N_RETAINED[device as usize].fetch_sub(1, Ordering::SeqCst);
        SUCCESS
    })
}

/// Makes a context this thread's own.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: usize) -> c_int {
    call("cuCtxPushCurrent_v2", |_| {
        CURRENT.with_borrow_mut(|current| current.push(context));
        SUCCESS
    })
}

/// Takes it away again.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPopCurrent_v2(context: *mut usize) -> c_int {
    call("cuCtxPopCurrent_v2", |_| {
        match CURRENT.with_borrow_mut(Vec::pop) {
            Some(popped) => put(context, popped),
            None => code("invalid"),
        }
    })
}

/// Free and total bytes of the current context's device.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    call("cuMemGetInfo_v2", |state| {
        let Some(context) = CURRENT.with_borrow(|current| current.last().copied()) else {
            return code("invalid");
        };
        let gpu = gpu(state, context - 1);
        let n_bytes = |key: &str| state.n_bytes(&format!("{gpu}.{key}")) as usize;
        let usable = n_bytes("total_mib") - n_bytes("reserved_mib");
        put(total, usable);
        put(free, usable - n_bytes("used_mib"))
    })
}

/// The pool of stream-ordered allocations: its handle is the device's number, and one.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetMemPool(pool: *mut usize, device: c_int) -> c_int {
    call("cuDeviceGetMemPool", |_| put(pool, device as usize + 1))
}

/// Reserved (5) and used (7) bytes of a pool.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolGetAttribute(pool: usize, which: c_uint, figure: *mut c_void) -> c_int {
    call("cuMemPoolGetAttribute", |state| {
        let name = match which {
            5 => "pool_reserved_mib",
            7 => "pool_used_mib",
            _ => return code("invalid"),
        };
        let key = format!("{}.{name}", gpu(state, pool - 1));
        put(figure.cast(), state.n_bytes(&key))
    })
}

/// Used (0) and reserved (2) bytes of CUDA graphs.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetGraphMemAttribute(
    device: c_int,
    which: c_uint,
    figure: *mut c_void,
) -> c_int {
    call("cuDeviceGetGraphMemAttribute", |state| {
        let name = match which {
            0 => "graph_used_mib",
            2 => "graph_reserved_mib",
            _ => return code("invalid"),
        };
        put(
            figure.cast(),
            state.n_bytes(&format!("{}.{name}", gpu(state, device as usize))),
        )
    })
}
