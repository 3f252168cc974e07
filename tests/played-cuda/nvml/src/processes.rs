//! Who uses a GPU, in the form of each version of the library.

use std::ffi::{c_int, c_uint};

use played_machine::{Process, processes, put, read};

use crate::code::Code;
use crate::{Answer, call_on};

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
struct Process1 {
    pid: c_uint,
    used: u64,
}

/// `nvmlProcessInfo_t`, of the versions 2 and 3.
#[repr(C)]
struct Process3 {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

impl From<Process> for Process1 {
    fn from(process: Process) -> Self {
        let Process { pid, used } = process;
        Self { pid, used }
    }
}

impl From<Process> for Process3 {
    fn from(process: Process) -> Self {
        let Process { pid, used } = process;
        Self {
            pid,
            used,
            gpu_instance: c_uint::MAX,
            compute_instance: c_uint::MAX,
        }
    }
}

macro_rules! lists {
    ($($name:ident($kind:literal, $row:ty);)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name(handle: usize, count: *mut c_uint, places: *mut $row) -> c_int {
                call_on(stringify!($name), handle, |call, device| {
                    let mut listed = processes(&call.state, device, $kind);
                    for process in listed.iter_mut().filter(|it| it.used != u64::MAX) {
                        process.used = call.size(process.used);
                    }
                    put_all(listed, count, places)
                })
            }
        )*
    };
}

lists! {
    nvmlDeviceGetComputeRunningProcesses("computing", Process1);
    nvmlDeviceGetComputeRunningProcesses_v2("computing", Process3);
    nvmlDeviceGetComputeRunningProcesses_v3("computing", Process3);
    nvmlDeviceGetGraphicsRunningProcesses("drawing", Process1);
    nvmlDeviceGetGraphicsRunningProcesses_v3("drawing", Process3);
    nvmlDeviceGetMPSComputeRunningProcesses_v3("served", Process3);
}

/// Gives the number of processes, and the processes if the caller has places for all.
fn put_all<T: From<Process>>(
    processes: Vec<Process>,
    count: *mut c_uint,
    places: *mut T,
) -> Answer {
    let n_places = read(count)? as usize;
    put(count, processes.len() as c_uint)?;
    if n_places < processes.len() {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    for (idx, process) in processes.into_iter().enumerate() {
        put(places.wrapping_add(idx), process.into())?;
    }
    Ok(())
}
