//! The driver under the runtime: opened by the first call, as the real runtime does, so
//! that a process that never uses CUDA does not have it.

#![expect(clippy::too_many_arguments, reason = "the driver's interface")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::calls::Answer;
use crate::error::Error;

/// Memory of no type that matters here.
type Opaque = *mut c_void;
/// `void (*)(void *)`.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

macro_rules! driver {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        #[expect(non_snake_case, reason = "the driver's names")]
        struct Driver {
            $($name: Option<extern "C" fn($($type),*) -> c_int>,)*
        }

        impl Driver {
            fn of(library: *mut c_void) -> Self {
                Self {
                    // SAFETY: the driver's interface gives these functions these types.
                    $($name: unsafe { std::mem::transmute::<*mut c_void, Option<extern "C" fn($($type),*) -> c_int>>(
                        symbol(library, concat!(stringify!($name), "\0")),
                    ) },)*
                }
            }
        }

        $(
            #[expect(non_snake_case, reason = "the driver's name")]
            pub(crate) fn $name($($argument: $type),*) -> Answer {
                let function = opened()?.$name.ok_or(Error::SYMBOL_NOT_FOUND)?;
                checked(function($($argument),*))
            }
        )*
    };
}

driver! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetProcAddress_v2(name: *const c_char, address: *mut *const c_void, version: c_int, flags: u64, status: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    cuDeviceTotalMem_v2(n_bytes: *mut usize, device: c_int);
    cuDeviceGetAttribute(figure: *mut c_int, which: c_int, device: c_int);
    cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int);
    cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    cuDeviceGetDefaultMemPool(pool: *mut usize, device: c_int);
    cuDeviceGetGraphMemAttribute(device: c_int, which: c_int, figure: Opaque);
    cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int);
    cuCtxGetCurrent(context: *mut usize);
    cuCtxSetCurrent(context: usize);
    cuCtxGetDevice(device: *mut c_int);
    cuCtxSynchronize();
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: usize);
    cuStreamQuery(stream: usize);
    cuStreamSynchronize(stream: usize);
    cuStreamGetPriority(stream: usize, priority: *mut c_int);
    cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint);
    cuStreamAddCallback(stream: usize, callback: extern "C" fn(usize, c_int, *mut c_void), argument: Opaque, flags: c_uint);
    cuLaunchHostFunc(stream: usize, function: HostFunction, argument: Opaque);
    cuEventCreate(event: *mut usize, flags: c_uint);
    cuEventDestroy_v2(event: usize);
    cuEventRecord(event: usize, stream: usize);
    cuEventQuery(event: usize);
    cuEventSynchronize(event: usize);
    cuEventElapsedTime(millis: *mut f32, start: usize, end: usize);
    cuStreamBeginCapture_v2(stream: usize, mode: c_int);
    cuStreamBeginCaptureToGraph(stream: usize, graph: usize, dependencies: Opaque, edges: Opaque, n: usize, mode: c_int);
    cuStreamEndCapture(stream: usize, graph: *mut usize);
    cuStreamIsCapturing(stream: usize, status: *mut c_int);
    cuStreamGetCaptureInfo_v3(stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, last: Opaque, edges: Opaque, n: *mut usize);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    cuGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize);
    cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64);
    cuGraphLaunch(exec: usize, stream: usize);
    cuGraphDestroy(graph: usize);
    cuGraphExecDestroy(exec: usize);
    cuGraphDebugDotPrint(graph: usize, path: *const c_char, flags: c_uint);
    cuUserObjectCreate(object: *mut usize, pointer: Opaque, destroy: HostFunction, n: c_uint, flags: c_uint);
    cuUserObjectRelease(object: usize, n: c_uint);
    cuGraphRetainUserObject(graph: usize, object: usize, n: c_uint, flags: c_uint);
    cuLaunchKernel(function: usize, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, n_shared_bytes: c_uint, stream: usize, arguments: Opaque, extra: Opaque);
    cuMemAlloc_v2(pointer: *mut usize, n_bytes: usize);
    cuMemAllocManaged(pointer: *mut usize, n_bytes: usize, flags: c_uint);
    cuMemFree_v2(pointer: usize);
    cuMemHostAlloc(pointer: *mut usize, n_bytes: usize, flags: c_uint);
    cuMemFreeHost(pointer: usize);
    cuMemHostRegister_v2(pointer: usize, n_bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: usize);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAllocAsync(pointer: *mut usize, n_bytes: usize, stream: usize);
    cuMemFreeAsync(pointer: usize, stream: usize);
    cuMemPoolSetAttribute(pool: usize, which: c_int, figure: Opaque);
    cuMemPoolGetAttribute(pool: usize, which: c_int, figure: Opaque);
    cuMemPoolTrimTo(pool: usize, n_kept: usize);
    cuMemPoolSetAccess(pool: usize, access: Opaque, n: usize);
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

fn opened() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    let open = || {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: a library with no code that runs when it is loaded.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), flags) };
        (!library.is_null()).then(|| Driver::of(library))
    };
    let driver = DRIVER.get_or_init(open).as_ref();
    driver.ok_or(Error::INSUFFICIENT_DRIVER)
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    // SAFETY: the library is open, and the name ends with 0.
    unsafe { libc::dlsym(library, name.as_ptr().cast()) }
}
