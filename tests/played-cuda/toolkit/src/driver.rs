//! The driver under the runtime: opened by the first call, as the real runtime does, so
//! that a process that never uses CUDA does not have it. Most functions of the runtime only forward to it.

#![expect(clippy::too_many_arguments, reason = "the driver's interface")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::calls::Answer;
use crate::error::Error;
use crate::runtime::{ready, started};

/// Memory of no type that matters here.
type Opaque = *mut c_void;
/// `void (*)(void *)`.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

/// A function of the driver.
macro_rules! imported {
    ($name:ident($($argument:ident: $type:ty),*)) => {
        #[expect(non_snake_case, reason = "the driver's name")]
        pub(crate) fn $name($($argument: $type),*) -> Answer {
            let symbol = symbol(concat!(stringify!($name), "\0"))?;
            // SAFETY: the driver's interface gives the function this type.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, Option<extern "C" fn($($type),*) -> c_int>>(symbol)
            };
            checked(function.ok_or(Error::SYMBOL_NOT_FOUND)?($($argument),*))
        }
    };
}

/// A function of the runtime that does what the driver's does, after a start.
macro_rules! exported {
    ($runtime:ident($($argument:ident: $type:ty),*) $name:ident $start:ident) => {
        calls! {
            $runtime($($argument: $type),*) {
                $start()?;
                $name($($argument),*)
            }
        }
    };
}

/// Functions of the driver: `name(arguments) => start: functions of the runtime that do the same`.
macro_rules! driver {
    ($($name:ident $arguments:tt $(=> $start:ident: $($runtime:ident),+)?;)*) => {$(
        imported! { $name $arguments }
        $($(exported! { $runtime $arguments $name $start })+)?
    )*};
}

driver! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetProcAddress_v2(name: *const c_char, address: *mut *const c_void, version: c_int, flags: u64, status: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    cuDeviceTotalMem_v2(n_bytes: *mut usize, device: c_int);
    cuDeviceGetAttribute(figure: *mut c_int, which: c_int, device: c_int) => started: cudaDeviceGetAttribute;
    cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) => started: cudaDeviceGetPCIBusId;
    cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) => started: cudaDeviceCanAccessPeer;
    cuDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) => started: cudaDeviceGetDefaultMemPool;
    cuDeviceGetGraphMemAttribute(device: c_int, which: c_int, figure: Opaque) => started: cudaDeviceGetGraphMemAttribute;
    cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int);
    cuCtxGetCurrent(context: *mut usize);
    cuCtxSetCurrent(context: usize);
    cuCtxGetDevice(device: *mut c_int);
    cuCtxSynchronize() => ready: cudaDeviceSynchronize;
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => ready: cudaDeviceGetStreamPriorityRange;
    cuStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int) => ready: cudaStreamCreateWithPriority;
    cuStreamDestroy_v2(stream: usize) => any: cudaStreamDestroy;
    cuStreamQuery(stream: usize) => ready: cudaStreamQuery;
    cuStreamSynchronize(stream: usize) => ready: cudaStreamSynchronize;
    cuStreamGetPriority(stream: usize, priority: *mut c_int) => ready: cudaStreamGetPriority;
    cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint) => ready: cudaStreamWaitEvent;
    cuStreamAddCallback(stream: usize, callback: extern "C" fn(usize, c_int, *mut c_void), argument: Opaque, flags: c_uint) => ready: cudaStreamAddCallback;
    cuLaunchHostFunc(stream: usize, function: HostFunction, argument: Opaque) => ready: cudaLaunchHostFunc;
    cuEventCreate(event: *mut usize, flags: c_uint) => ready: cudaEventCreateWithFlags;
    cuEventDestroy_v2(event: usize) => any: cudaEventDestroy;
    cuEventRecord(event: usize, stream: usize) => ready: cudaEventRecord;
    cuEventQuery(event: usize) => any: cudaEventQuery;
    cuEventSynchronize(event: usize) => any: cudaEventSynchronize;
    cuEventElapsedTime(millis: *mut f32, start: usize, end: usize) => any: cudaEventElapsedTime;
    cuStreamBeginCapture_v2(stream: usize, mode: c_int) => ready: cudaStreamBeginCapture;
    cuStreamBeginCaptureToGraph(stream: usize, graph: usize, dependencies: Opaque, edges: Opaque, n: usize, mode: c_int) => ready: cudaStreamBeginCaptureToGraph;
    cuStreamEndCapture(stream: usize, graph: *mut usize) => ready: cudaStreamEndCapture;
    cuStreamIsCapturing(stream: usize, status: *mut c_int) => ready: cudaStreamIsCapturing;
    cuStreamGetCaptureInfo_v3(stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, last: Opaque, edges: Opaque, n: *mut usize);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int) => ready: cudaThreadExchangeStreamCaptureMode;
    cuGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize) => any: cudaGraphGetNodes;
    cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64) => any: cudaGraphInstantiate, cudaGraphInstantiateWithFlags;
    cuGraphLaunch(exec: usize, stream: usize) => ready: cudaGraphLaunch;
    cuGraphDestroy(graph: usize) => any: cudaGraphDestroy;
    cuGraphExecDestroy(exec: usize) => any: cudaGraphExecDestroy;
    cuGraphDebugDotPrint(graph: usize, path: *const c_char, flags: c_uint) => any: cudaGraphDebugDotPrint;
    cuUserObjectCreate(object: *mut usize, pointer: Opaque, destroy: HostFunction, n: c_uint, flags: c_uint) => ready: cudaUserObjectCreate;
    cuUserObjectRelease(object: usize, n: c_uint) => any: cudaUserObjectRelease;
    cuGraphRetainUserObject(graph: usize, object: usize, n: c_uint, flags: c_uint) => any: cudaGraphRetainUserObject;
    cuLaunchKernel(function: usize, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, n_shared_bytes: c_uint, stream: usize, arguments: Opaque, extra: Opaque);
    cuMemAlloc_v2(pointer: *mut usize, n_bytes: usize);
    cuMemAllocManaged(pointer: *mut usize, n_bytes: usize, flags: c_uint) => ready: cudaMallocManaged;
    cuMemFree_v2(pointer: usize) => ready: cudaFree;
    cuMemHostAlloc(pointer: *mut usize, n_bytes: usize, flags: c_uint) => ready: cudaHostAlloc;
    cuMemFreeHost(pointer: usize) => ready: cudaFreeHost;
    cuMemHostRegister_v2(pointer: usize, n_bytes: usize, flags: c_uint) => ready: cudaHostRegister;
    cuMemHostUnregister(pointer: usize) => ready: cudaHostUnregister;
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) => ready: cudaMemGetInfo;
    cuMemAllocAsync(pointer: *mut usize, n_bytes: usize, stream: usize) => ready: cudaMallocAsync;
    cuMemFreeAsync(pointer: usize, stream: usize) => ready: cudaFreeAsync;
    cuMemPoolSetAttribute(pool: usize, which: c_int, figure: Opaque) => any: cudaMemPoolSetAttribute;
    cuMemPoolGetAttribute(pool: usize, which: c_int, figure: Opaque) => any: cudaMemPoolGetAttribute;
    cuMemPoolTrimTo(pool: usize, n_kept: usize) => any: cudaMemPoolTrimTo;
    cuMemPoolSetAccess(pool: usize, access: Opaque, n: usize) => any: cudaMemPoolSetAccess;
    cuMemcpy(to: usize, from: usize, n_bytes: usize);
    cuMemcpyAsync(to: usize, from: usize, n_bytes: usize, stream: usize);
    cuMemsetD8_v2(start: usize, value: u8, n_bytes: usize);
    cuMemsetD8Async(start: usize, value: u8, n_bytes: usize, stream: usize);
    cuPointerGetAttribute(place: Opaque, which: c_int, address: usize);
}

/// What a call of the driver's came to: the runtime's codes are the same.
fn checked(code: c_int) -> Answer {
    match code {
        0 => Ok(()),
        code => Err(Error(code)),
    }
}

/// What needs no start: it is about something that the runtime has made.
#[expect(clippy::unnecessary_wraps, reason = "as the other starts")]
fn any() -> Answer {
    Ok(())
}

/// A symbol of the driver, which is opened when the first is wanted; its name ends with 0.
fn symbol(name: &str) -> Result<*mut c_void, Error> {
    static DRIVER: OnceLock<usize> = OnceLock::new();
    let open = || {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: a library with no code that runs when it is loaded.
        unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), flags) }.expose_provenance()
    };
    let driver = *DRIVER.get_or_init(open);
    if driver == 0 {
        return Err(Error::INSUFFICIENT_DRIVER);
    }
    let driver = std::ptr::with_exposed_provenance_mut(driver);
    // SAFETY: the library is open, and the name ends with 0.
    Ok(unsafe { libc::dlsym(driver, name.as_ptr().cast()) })
}
