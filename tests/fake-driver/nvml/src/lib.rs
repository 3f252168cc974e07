//! `libnvidia-ml.so.1` as far as gpumem calls it: `gpu0`, `gpu1`, … of the state
//! file are the machine's GPUs in the order of the bus, `gpu0.mig0`, … the parts
//! that one is divided into.

#![expect(unsafe_code, reason = "the library's interface is C")]

#[path = "../../state.rs"]
mod state;

use std::ffi::{c_char, c_int, c_uint};

use state::{State, size};

const SUCCESS: c_int = 0;
const INSUFFICIENT_SIZE: c_int = 7;
/// A handle is the number of a GPU, and one; of a part, this times the part's place besides.
const PART: usize = 1000;

fn code(failure: &str) -> c_int {
    match failure {
        "uninitialised" => 1,
        "invalid" => 2,
        "not_supported" => 3,
        "no_permission" => 4,
        "not_found" => 6,
        "driver_not_loaded" => 9,
        "timeout" => 10,
        "lost" => 15,
        "reset_required" => 16,
        "mismatch" => 18,
        "unlisted" => 424_242,
        _ => 999,
    }
}

fn call(name: &str, answer: impl FnOnce(&State) -> c_int) -> c_int {
    match State::at(name) {
        Err(failure) => code(&failure),
        Ok(state) => answer(&state),
    }
}

/// Runs a call on a device, which may fail on that one alone: `gpu1.lost`.
fn call_on(name: &str, device: usize, answer: impl FnOnce(&State, &str) -> c_int) -> c_int {
    call(name, |state| {
        let gpu = format!("gpu{}", device % PART - 1);
        if let Some(failure) = state.text(&format!("{gpu}.{name}")) {
            return code(failure);
        }
        match device / PART {
            0 => answer(state, &gpu),
            place => answer(state, &format!("{gpu}.mig{}", place - 1)),
        }
    })
}

fn put<T>(place: *mut T, figure: T) -> c_int {
    // SAFETY: the caller gives a place of that type, as the library's interface asks.
    unsafe { place.write(figure) };
    SUCCESS
}

fn put_text(place: *mut c_char, length: c_uint, text: &str) -> c_int {
    for (idx, byte) in text.bytes().chain([0]).take(length as usize).enumerate() {
        // SAFETY: the caller gives so many places.
        unsafe { place.add(idx).write(c_char::from_ne_bytes([byte])) };
    }
    SUCCESS
}

/// Starts the library.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    call("nvmlInit_v2", |_| SUCCESS)
}

/// Ends it.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    call("nvmlShutdown", |_| SUCCESS)
}

/// The driver's version.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> c_int {
    call("nvmlSystemGetDriverVersion", |_| {
        put_text(version, length, "570.00")
    })
}

/// How many GPUs the machine has.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    call("nvmlDeviceGetCount_v2", |state| {
        let known = (0..).take_while(|idx| state.text(&format!("gpu{idx}.uuid")).is_some());
        put(count, known.count() as c_uint)
    })
}

/// A handle.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(idx: c_uint, device: *mut usize) -> c_int {
    call("nvmlDeviceGetHandleByIndex_v2", |_| {
        put(device, idx as usize + 1)
    })
}

/// The maker's name.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetName(device: usize, name: *mut c_char, length: c_uint) -> c_int {
    call_on("nvmlDeviceGetName", device, |state, gpu| {
        let known = state.text(&format!("{gpu}.name"));
        put_text(name, length, known.unwrap_or("Fake GPU"))
    })
}

/// The UUID.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUUID(device: usize, uuid: *mut c_char, length: c_uint) -> c_int {
    call_on("nvmlDeviceGetUUID", device, |state, gpu| {
        put_text(
            uuid,
            length,
            state.text(&format!("{gpu}.uuid")).unwrap_or(""),
        )
    })
}

/// Whether a GPU is divided, now and after the next start.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigMode(
    device: usize,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> c_int {
    call_on("nvmlDeviceGetMigMode", device, |state, gpu| {
        if state.text(&format!("{gpu}.mig_places")).is_none() {
            return code("not_supported");
        }
        put(current, 1);
        put(pending, 1)
    })
}

/// How many parts a GPU has room for.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: usize, count: *mut c_uint) -> c_int {
    call_on("nvmlDeviceGetMaxMigDeviceCount", device, |state, gpu| {
        let n_places = state.number(&format!("{gpu}.mig_places")).unwrap_or(0);
        put(count, n_places as c_uint)
    })
}

/// The part in one of those places.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: usize,
    idx: c_uint,
    part: *mut usize,
) -> c_int {
    call_on(
        "nvmlDeviceGetMigDeviceHandleByIndex",
        device,
        |state, gpu| {
            if state.text(&format!("{gpu}.mig{idx}.uuid")).is_none() {
                return code("not_found");
            }
            put(part, device + PART * (idx as usize + 1))
        },
    )
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[expect(missing_debug_implementations, reason = "C reads it")]
pub struct Memory {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// The memory of a GPU, or of a part.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: usize, memory: *mut Memory) -> c_int {
    call_on("nvmlDeviceGetMemoryInfo_v2", device, |state, gpu| {
        let n_bytes = |key: &str| state.n_bytes(&format!("{gpu}.{key}"));
        let (total, reserved) = (n_bytes("total_mib"), n_bytes("reserved_mib"));
        let used = n_bytes("used_mib");
        put(
            memory,
            Memory {
                version: 0,
                total,
                reserved,
                free: total - reserved - used,
                used,
            },
        )
    })
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
#[expect(missing_debug_implementations, reason = "C reads it")]
pub struct Process {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// The processes that compute: `gpu0.computing = self:512 4711:all`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: usize,
    count: *mut c_uint,
    places: *mut Process,
) -> c_int {
    let name = "nvmlDeviceGetComputeRunningProcesses_v3";
    call_on(name, device, |state, gpu| {
        put_processes(state.text(&format!("{gpu}.computing")), count, places)
    })
}

/// The processes that draw.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: usize,
    count: *mut c_uint,
    places: *mut Process,
) -> c_int {
    let name = "nvmlDeviceGetGraphicsRunningProcesses_v3";
    call_on(name, device, |state, gpu| {
        put_processes(state.text(&format!("{gpu}.drawing")), count, places)
    })
}

/// The processes that compute through CUDA MPS.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    device: usize,
    count: *mut c_uint,
    places: *mut Process,
) -> c_int {
    let name = "nvmlDeviceGetMPSComputeRunningProcesses_v3";
    call_on(name, device, |state, gpu| {
        put_processes(state.text(&format!("{gpu}.served")), count, places)
    })
}

fn put_processes(listed: Option<&str>, count: *mut c_uint, places: *mut Process) -> c_int {
    let process = |entry: &str| {
        let (pid, n_mib) = entry.split_once(':')?;
        let pid = if pid == "self" {
            std::process::id()
        } else {
            pid.parse().ok()?
        };
        Some(Process {
            pid,
            used: size(n_mib),
            gpu_instance: c_uint::MAX,
            compute_instance: c_uint::MAX,
        })
    };
    let entries = listed.unwrap_or("").split_ascii_whitespace();
    let processes: Vec<Process> = entries.filter_map(process).collect();
    // SAFETY: the caller gives the number of places, to be overwritten by that of the processes.
    let n_places = unsafe { count.read() } as usize;
    put(count, processes.len() as c_uint);
    if n_places < processes.len() {
        return INSUFFICIENT_SIZE;
    }
    for (idx, process) in processes.into_iter().enumerate() {
        // SAFETY: the caller gave that many places.
        unsafe { places.add(idx).write(process) };
    }
    SUCCESS
}
