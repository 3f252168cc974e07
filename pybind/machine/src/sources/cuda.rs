//! The CUDA driver, once other code in this process uses it.
//!
//! Nothing here loads the driver, initialises it or creates a context: `cuInit`
//! poisons a later fork, and a context costs hundreds of MiB that no call gives
//! back. The library is taken only where it is loaded, so that a process that
//! does not use CUDA is not touched, and it is the very one that the framework
//! uses, not a stub that comes first on a search path.
//!
//! cudarc gives the types. Its functions panic where a symbol is missing, and its
//! `CUresult` may only hold the codes that it lists: the symbols are looked up
//! here, and their result is a number.

#![expect(unsafe_code, reason = "a C interface")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUgraphMem_attribute, CUmemPool_attribute,
    CUmemoryPool, CUresult, CUuuid,
};
use gpumem_model::recording::{DeviceKey, DeviceKind, DriverLevels, Level, Source, Unknown};
use gpumem_model::units::Bytes;
use libloading::Library;

use super::unified::INTEGRATED;
use super::visible::Visibility;
use super::{Answer, DriverSource, SourceDevice, Unused};

#[cfg(target_os = "linux")]
#[path = "cuda/loaded.rs"]
mod loaded;

const NO_CONTEXT: &str = "this process has no context on it yet";

/// Devices of the CUDA driver, once a framework has started it.
#[derive(Default)]
pub(super) struct CudaSource {
    /// Found once: the driver's list stands as long as the process.
    devices: Vec<(SourceDevice, Handle)>,
}

#[derive(Debug, Clone, Copy)]
struct Handle {
    device: CUdevice,
    /// Its memory is the host's.
    is_integrated: bool,
}

impl DriverSource for CudaSource {
    fn source(&self) -> Source {
        Source::Cuda
    }

    fn absence(&self) -> fn() -> Option<Unused> {
        || Driver::loaded().is_none().then(not_loaded)
    }

    /// The driver obeys the environment by itself.
    fn devices(&mut self, _visibility: &Visibility) -> Answer {
        let Some(driver) = Driver::loaded() else {
            return Err(not_loaded());
        };
        if self.devices.is_empty() {
            self.devices = driver
                .devices()
                .map_err(|failure| Unused(failure.why_no_devices().into()))?;
        }
        Ok(self
            .devices
            .iter()
            .map(|(found, _)| found.clone())
            .collect())
    }

    fn read(&mut self, key: &DeviceKey) -> DriverLevels {
        let handle = self.handle(key);
        let levels = handle.map(|(driver, handle)| driver.levels(handle));
        levels.map_or_else(DriverLevels::default, |it| {
            it.unwrap_or_else(CudaFailure::levels)
        })
    }

    fn sample(&mut self, key: &DeviceKey) -> DriverLevels {
        let handle = self.handle(key);
        let levels = handle.map(|(driver, handle)| driver.memory(handle));
        levels.map_or_else(DriverLevels::default, |it| {
            it.unwrap_or_else(CudaFailure::levels)
        })
    }
}

impl CudaSource {
    fn handle(&self, key: &DeviceKey) -> Option<(&'static Driver, Handle)> {
        let (_, handle) = self.devices.iter().find(|(found, _)| found.key == *key)?;
        Some((Driver::loaded()?, *handle))
    }
}

fn not_loaded() -> Unused {
    Unused("nothing in this process has loaded the CUDA driver yet".into())
}

/// What this process can have on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Footing {
    /// CUDA has not been initialised: nothing.
    Outside,
    /// CUDA runs, without a primary context.
    Initialised,
    /// It has a context.
    Inside,
}

pub(super) fn footing() -> Footing {
    match numbers_with_context() {
        None => Footing::Outside,
        Some(numbers) if numbers.is_empty() => Footing::Initialised,
        Some(_) => Footing::Inside,
    }
}

/// The numbers of the devices on which this process has a context; `None` where CUDA does not run.
pub(super) fn numbers_with_context() -> Option<Vec<usize>> {
    let driver = Driver::loaded()?;
    let n_devices = driver.n_devices().ok()?;
    let is_active = |ordinal: &c_int| {
        let device = driver.device(*ordinal);
        device.and_then(|device| driver.is_context_active(device)) == Ok(true)
    };
    let numbers = (0..n_devices).filter(is_active);
    Some(numbers.filter_map(|it| it.try_into().ok()).collect())
}

/// Why a call gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CudaFailure {
    code: Option<c_int>,
    words: String,
}

impl CudaFailure {
    fn missing(symbol: &str) -> Self {
        Self {
            code: None,
            words: format!("this driver has no {symbol}"),
        }
    }

    fn is(&self, result: CUresult) -> bool {
        self.code == Some(result as c_int)
    }

    fn levels(self) -> DriverLevels {
        let level = self.level();
        DriverLevels {
            device_used: level.clone(),
            capacity: level,
            ..DriverLevels::default()
        }
    }

    fn level(self) -> Level {
        Level::Unknown(match self.code {
            Some(_) => Unknown::Failed(self.words.into()),
            None => Unknown::Withheld(self.words.into()),
        })
    }

    fn why_no_devices(&self) -> String {
        if self.is(CUresult::CUDA_ERROR_NOT_INITIALIZED) {
            "loaded, but no framework has initialised CUDA yet".to_owned()
        } else if self.is(CUresult::CUDA_ERROR_DEINITIALIZED) {
            "the CUDA driver is shutting down".to_owned()
        } else {
            self.words.clone()
        }
    }
}

/// The driver's functions, each where this driver has it. A call is unsafe as C is: pointers must
/// be to live places of their type, devices and contexts must be the driver's own.
macro_rules! functions {
    ($($(#[$attribute:meta])* $method:ident = $symbol:literal ($($argument:ident: $of:ty),*);)*) => {
        // SAFETY: what a call asks for is said above; each is made below, with its reason.
        struct Driver { $($method: Option<unsafe extern "C" fn($($of),*) -> c_int>,)* }

        impl Driver {
            fn resolve(library: &Library) -> Self {
                // SAFETY: the types are those of NVIDIA's header, and the library stays loaded.
                Self { $($method: unsafe { library.get($symbol) }.ok().map(|it| *it),)* }
            }

            // SAFETY: the caller's pointers, devices and contexts are what is said above the macro.
            $($(#[$attribute])* unsafe fn $method(&self, $($argument: $of),*) -> Result<(), CudaFailure> {
                let Some(function) = self.$method else {
                    return Err(CudaFailure::missing($symbol));
                };
                // SAFETY: the driver's function of this signature; the caller vouches for the arguments.
                self.check(unsafe { function($($argument),*) })
            })*
        }
    };
}

functions! {
    #[expect(dead_code, reason = "its own failure has no name: `check` calls the function")]
    get_error_name = "cuGetErrorName" (code: c_int, name: *mut *const c_char);
    get_count = "cuDeviceGetCount" (count: *mut c_int);
    get_device = "cuDeviceGet" (device: *mut CUdevice, ordinal: c_int);
    get_name = "cuDeviceGetName" (name: *mut c_char, length: c_int, device: CUdevice);
    get_uuid = "cuDeviceGetUuid" (uuid: *mut CUuuid, device: CUdevice);
    get_uuid_of_part = "cuDeviceGetUuid_v2" (uuid: *mut CUuuid, device: CUdevice);
    get_attribute = "cuDeviceGetAttribute"
        (figure: *mut c_int, which: CUdevice_attribute, device: CUdevice);
    get_context_state = "cuDevicePrimaryCtxGetState"
        (device: CUdevice, flags: *mut c_uint, is_active: *mut c_int);
    retain_context = "cuDevicePrimaryCtxRetain" (context: *mut CUcontext, device: CUdevice);
    release_context = "cuDevicePrimaryCtxRelease_v2" (device: CUdevice);
    push_context = "cuCtxPushCurrent_v2" (context: CUcontext);
    pop_context = "cuCtxPopCurrent_v2" (context: *mut CUcontext);
    get_memory = "cuMemGetInfo_v2" (free: *mut usize, total: *mut usize);
    get_pool = "cuDeviceGetMemPool" (pool: *mut CUmemoryPool, device: CUdevice);
    get_pool_attribute = "cuMemPoolGetAttribute"
        (pool: CUmemoryPool, which: CUmemPool_attribute, figure: *mut c_void);
    get_graph_attribute = "cuDeviceGetGraphMemAttribute"
        (device: CUdevice, which: CUgraphMem_attribute, figure: *mut c_void);
}

impl Driver {
    /// The driver that this process has loaded; `None` while it has none.
    fn loaded() -> Option<&'static Self> {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        if let Some(driver) = DRIVER.get() {
            return Some(driver);
        }
        // Kept: its functions are used as long as this process lives.
        let library = Box::leak(Box::new(already_loaded()?));
        Some(DRIVER.get_or_init(|| Self::resolve(library)))
    }

    /// A code's name as the driver gives it. A newer driver has codes that no header here knows.
    fn check(&self, code: c_int) -> Result<(), CudaFailure> {
        if code == CUresult::CUDA_SUCCESS as c_int {
            return Ok(());
        }
        let mut name = std::ptr::null();
        let named = self.get_error_name.filter(|get_name| {
            // SAFETY: the pointer is to a live pointer.
            let answer = unsafe { get_name(code, &raw mut name) };
            answer == CUresult::CUDA_SUCCESS as c_int && !name.is_null()
        });
        let words = match named {
            // SAFETY: the driver's names are constant C strings.
            Some(_) => unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned(),
            None => format!("CUDA error {code}"),
        };
        Err(CudaFailure {
            code: Some(code),
            words,
        })
    }

    fn n_devices(&self) -> Result<c_int, CudaFailure> {
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { self.get_count(&raw mut count) }?;
        Ok(count)
    }

    fn device(&self, ordinal: c_int) -> Result<CUdevice, CudaFailure> {
        let mut device = 0;
        // SAFETY: the pointer is to a live device.
        unsafe { self.get_device(&raw mut device, ordinal) }?;
        Ok(device)
    }

    /// The devices, if other code has initialised CUDA: gpumem never does.
    fn devices(&self) -> Result<Vec<(SourceDevice, Handle)>, CudaFailure> {
        (0..self.n_devices()?)
            .map(|ordinal| {
                let device = self.device(ordinal)?;
                let found = SourceDevice {
                    key: self.key(device)?.into(),
                    label: format!("cuda:{ordinal}"),
                    name: self.name(device)?,
                    kind: DeviceKind::Gpu,
                };
                let is_integrated = self.is_integrated(device);
                Ok((
                    found,
                    Handle {
                        device,
                        is_integrated,
                    },
                ))
            })
            .collect()
    }

    fn name(&self, device: CUdevice) -> Result<String, CudaFailure> {
        const LENGTH: c_int = 256;
        let mut name = [0; LENGTH as usize];
        // SAFETY: the array has that length; the device is the driver's own.
        unsafe { self.get_name(name.as_mut_ptr(), LENGTH, device) }?;
        let bytes = name
            .iter()
            .map(|letter| letter.to_ne_bytes()[0])
            .take_while(|byte| *byte != 0);
        let bytes: Vec<u8> = bytes.collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `GPU-<uuid>` as `nvidia-smi -L` writes it; of a part of a GPU, whose own UUID only the newer
    /// function gives, `MIG-<uuid>`.
    fn key(&self, device: CUdevice) -> Result<String, CudaFailure> {
        let mut whole = CUuuid { bytes: [0; 16] };
        // SAFETY: the pointer is to a live UUID; the device is the driver's own.
        unsafe { self.get_uuid(&raw mut whole, device) }?;
        let mut part = CUuuid { bytes: [0; 16] };
        // SAFETY: the pointer is to the part's own live UUID; the device is the driver's own.
        match unsafe { self.get_uuid_of_part(&raw mut part, device) } {
            Ok(()) if part.bytes != whole.bytes => Ok(written("MIG", part)),
            _ => Ok(written("GPU", whole)),
        }
    }

    /// Memory of the device and of the driver's pools.
    fn levels(&self, handle: Handle) -> Result<DriverLevels, CudaFailure> {
        let levels = self.memory(handle)?;
        let device = handle.device;
        if levels.device_used.known().is_none() {
            return Ok(levels);
        }
        let (pool_used, pool_reserved) = self.pool(device);
        let graph = |which| level(self.graph_figure(device, which));
        Ok(DriverLevels {
            pool_used,
            pool_reserved,
            graph_used: graph(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT),
            graph_reserved: graph(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT),
            ..levels
        })
    }

    /// Used and total bytes, where this process has a context and the memory is the GPU's own.
    fn memory(&self, handle: Handle) -> Result<DriverLevels, CudaFailure> {
        let Handle {
            device,
            is_integrated,
        } = handle;
        let withheld = |why: &str| {
            let level = Level::Unknown(Unknown::Withheld(why.into()));
            DriverLevels {
                device_used: level.clone(),
                capacity: level,
                ..DriverLevels::default()
            }
        };
        if is_integrated {
            return Ok(withheld(INTEGRATED));
        }
        if !self.is_context_active(device)? {
            return Ok(withheld(NO_CONTEXT));
        }
        let _context = Pushed::new(self, device)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are to live integers, and a context is current.
        unsafe { self.get_memory(&raw mut free, &raw mut total) }?;
        let (free, total) = (Bytes::new(free as u64), Bytes::new(total as u64));
        Ok(DriverLevels {
            device_used: total.saturating_sub(free).into(),
            capacity: total.into(),
            ..DriverLevels::default()
        })
    }

    fn is_integrated(&self, device: CUdevice) -> bool {
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED;
        let mut figure = 0;
        // SAFETY: the pointer is to a live integer; the device is the driver's own.
        let status = unsafe { self.get_attribute(&raw mut figure, which, device) };
        status.is_ok() && figure != 0
    }

    fn is_context_active(&self, device: CUdevice) -> Result<bool, CudaFailure> {
        let (mut flags, mut is_active) = (0, 0);
        // SAFETY: both pointers are to live integers; the device is the driver's own.
        unsafe { self.get_context_state(device, &raw mut flags, &raw mut is_active) }?;
        Ok(is_active != 0)
    }

    /// Used and reserved bytes of the pool that stream-ordered allocations come from.
    fn pool(&self, device: CUdevice) -> (Level, Level) {
        let mut pool = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle; the device is the driver's own.
        if let Err(failure) = unsafe { self.get_pool(&raw mut pool, device) } {
            return (level(Err(failure.clone())), level(Err(failure)));
        }
        let figure = |which| {
            let mut n_bytes = 0_u64;
            // SAFETY: the attribute is 64 bits wide, and the pool is the driver's own.
            let status = unsafe { self.get_pool_attribute(pool, which, (&raw mut n_bytes).cast()) };
            level(status.map(|()| n_bytes))
        };
        (
            figure(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
            figure(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        )
    }

    fn graph_figure(
        &self,
        device: CUdevice,
        which: CUgraphMem_attribute,
    ) -> Result<u64, CudaFailure> {
        let mut n_bytes = 0_u64;
        // SAFETY: the attribute is 64 bits wide; the device is the driver's own.
        unsafe { self.get_graph_attribute(device, which, (&raw mut n_bytes).cast()) }?;
        Ok(n_bytes)
    }
}

fn level(figure: Result<u64, CudaFailure>) -> Level {
    figure.map_or_else(CudaFailure::level, |n_bytes| {
        Level::Known(Bytes::new(n_bytes))
    })
}

/// The primary context of a device, current on this thread as long as this lives. It must be
/// active already: then retaining it creates none.
struct Pushed<'a> {
    driver: &'a Driver,
    device: CUdevice,
}

impl<'a> Pushed<'a> {
    fn new(driver: &'a Driver, device: CUdevice) -> Result<Self, CudaFailure> {
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle; released below or in `drop`.
        unsafe { driver.retain_context(&raw mut context, device) }?;
        // SAFETY: the context was retained just now.
        let pushed = unsafe { driver.push_context(context) };
        if pushed.is_err() {
            driver.release(device);
        }
        pushed.map(|()| Self { driver, device })
    }
}

impl Drop for Pushed<'_> {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: pops what `new` pushed on this thread, which this never leaves. A driver that
        // refuses is shutting down, and the thread has no other use for the context.
        let _ = unsafe { self.driver.pop_context(&raw mut popped) };
        self.driver.release(self.device);
    }
}

impl Driver {
    fn release(&self, device: CUdevice) {
        // SAFETY: pairs with the retain in `Pushed::new`. A driver that is shutting down refuses
        // it, and then there is nothing left to release.
        let _ = unsafe { self.release_context(device) };
    }
}

fn written(kind: &str, uuid: CUuuid) -> String {
    let mut key = kind.to_owned();
    for (idx, byte) in uuid.bytes.iter().enumerate() {
        if matches!(idx, 0 | 4 | 6 | 8 | 10) {
            key.push('-');
        }
        let byte = byte.to_ne_bytes()[0];
        write!(key, "{byte:02x}").expect("writing to a string succeeds");
    }
    key
}

#[cfg(target_os = "linux")]
fn already_loaded() -> Option<Library> {
    use libloading::os::unix;
    if !loaded::may_be_loaded() {
        return None;
    }
    let flags = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
    // SAFETY: loads nothing, so nothing of the library runs.
    let library = unsafe { unix::Library::open(Some("libcuda.so.1"), flags) };
    library.ok().map(Library::from)
}

#[cfg(windows)]
fn already_loaded() -> Option<Library> {
    let library = libloading::os::windows::Library::open_already_loaded("nvcuda.dll").ok()?;
    Some(library.into())
}

#[cfg(not(any(target_os = "linux", windows)))]
fn already_loaded() -> Option<Library> {
    None
}
