//! The CUDA driver. The only file that names cudarc, which panics where the
//! library or a symbol is missing: the library is probed for here, the rest is
//! caught by `drivers`.
//!
//! Nothing here initialises CUDA or creates a context: `cuInit` poisons a later
//! fork, and a context costs hundreds of MiB that no call gives back.

#![expect(
    unsafe_code,
    reason = "a C interface, most of which cudarc does not wrap"
)]

use std::fmt::Write as _;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUresult, CUuuid};
use gpumem_core::recording::{DeviceKind, DriverLevels, Level, Source, Unknown};
use gpumem_core::units::Bytes;

use super::drivers::failed;
use super::{Answer, DriverSource, Found, Unused};

/// Devices of the CUDA driver, once a framework has started it.
pub(super) struct CudaSource {
    has_library: bool,
    /// Found once: the driver's list stands as long as the process.
    devices: Vec<(Found, CUdevice)>,
}

impl CudaSource {
    /// Looks for the driver's library.
    pub(super) fn new() -> Self {
        Self {
            // SAFETY: opens and closes a library by its well-known name; NVIDIA's runs no code of
            // note when it is loaded.
            has_library: unsafe { sys::is_culib_present() },
            devices: Vec::new(),
        }
    }
}

impl DriverSource for CudaSource {
    fn source(&self) -> Source {
        Source::Cuda
    }

    fn devices(&mut self) -> Answer {
        if !self.has_library {
            let reason = "no NVIDIA driver library on this machine";
            return Err(Unused(reason.to_owned()));
        }
        if self.devices.is_empty() {
            self.devices = list().map_err(|error| Unused(why_no_devices(error)))?;
        }
        Ok(self
            .devices
            .iter()
            .map(|(found, _)| found.clone())
            .collect())
    }

    fn read(&mut self, key: &str) -> DriverLevels {
        let device = self.devices.iter().find(|(found, _)| found.key == key);
        let Some((_, device)) = device else {
            return DriverLevels::default();
        };
        match memory(*device) {
            Ok(Some((free, total))) => DriverLevels {
                device_used: Level::Known(total.saturating_sub(free)),
                process_used: Level::default(),
                capacity: Level::Known(total),
            },
            Ok(None) => DriverLevels {
                device_used: Level::Unknown(Unknown::NotReported),
                process_used: Level::default(),
                capacity: Level::Unknown(Unknown::NotReported),
            },
            Err(error) => failed(&words(error)),
        }
    }
}

/// The devices, if CUDA has been initialised by somebody else: this never does it.
fn list() -> Result<Vec<(Found, CUdevice)>, DriverError> {
    (0..result::device::get_count()?)
        .map(|ordinal| {
            let device = result::device::get(ordinal)?;
            let found = Found {
                key: key(result::device::get_uuid(device)?),
                label: format!("cuda:{ordinal}"),
                name: result::device::get_name(device)?,
                kind: DeviceKind::Gpu,
            };
            Ok((found, device))
        })
        .collect()
}

/// `GPU-<uuid>`, as `nvidia-smi -L` writes it.
fn key(uuid: CUuuid) -> String {
    let mut key = "GPU".to_owned();
    for (idx, byte) in uuid.bytes.iter().enumerate() {
        if matches!(idx, 0 | 4 | 6 | 8 | 10) {
            key.push('-');
        }
        let byte = byte.to_ne_bytes()[0];
        write!(key, "{byte:02x}").expect("writing to a string succeeds");
    }
    key
}

/// Free and total bytes of a device; `None` while nobody has a context on it.
fn memory(device: CUdevice) -> Result<Option<(Bytes, Bytes)>, DriverError> {
    if !is_context_active(device)? {
        return Ok(None);
    }
    let _context = Pushed::new(device)?;
    let (free, total) = result::mem_get_info()?;
    Ok(Some((Bytes::new(free as u64), Bytes::new(total as u64))))
}

fn is_context_active(device: CUdevice) -> Result<bool, DriverError> {
    let (mut flags, mut is_active) = (0, 0);
    // SAFETY: both pointers are to live integers, and the device is from the driver's list.
    unsafe { sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut is_active) }
        .result()?;
    Ok(is_active != 0)
}

/// The primary context of a device, current on this thread as long as this lives. It must be
/// active already: then retaining it creates none.
struct Pushed(CUdevice);

impl Pushed {
    fn new(device: CUdevice) -> Result<Self, DriverError> {
        // SAFETY: the device is from the driver's list; released below or in `drop`.
        let context = unsafe { result::primary_ctx::retain(device) }?;
        // SAFETY: the context was retained just now.
        if let Err(error) = unsafe { sys::cuCtxPushCurrent_v2(context) }.result() {
            release(device);
            return Err(error);
        }
        Ok(Self(device))
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let mut popped: CUcontext = std::ptr::null_mut();
        // SAFETY: pops what `new` pushed on this thread; the type is not `Send`-d away between,
        // as it never leaves `memory`.
        let popped = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
        debug_assert_eq!(popped, CUresult::CUDA_SUCCESS);
        release(self.0);
    }
}

fn release(device: CUdevice) {
    // SAFETY: pairs with the retain in `Pushed::new`. A driver that is shutting down refuses it,
    // and then there is nothing left to release.
    let _ = unsafe { result::primary_ctx::release(device) };
}

fn why_no_devices(error: DriverError) -> String {
    match error.0 {
        CUresult::CUDA_ERROR_NOT_INITIALIZED => {
            "driver found, but no framework has initialised CUDA yet".to_owned()
        }
        CUresult::CUDA_ERROR_DEINITIALIZED => "the CUDA driver is shutting down".to_owned(),
        _ => words(error),
    }
}

/// The driver's own name of an error, without asking a driver that may be failing.
fn words(error: DriverError) -> String {
    format!("{:?}", error.0)
}
