//! Device memory profiles: what `jax.profiler.save_device_memory_profile` writes, and other memory profiles
//! in the [pprof format](https://github.com/google/pprof/blob/main/proto/profile.proto).
//!
//! A profile is one instant: buffers and executables that are alive, with the stacks that made them.
//!
//! ```
//! use gpumem_readers::device_profile::read;
//!
//! // One sample type, `space` in `bytes`; one sample without a stack, of 7 bytes.
//! let file = b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x05space\x32\x05bytes\x12\x03\x12\x01\x07";
//! let profile = read(file)?;
//! assert_eq!(profile.bytes.get(), 7);
//! # Ok::<(), gpumem_readers::device_profile::DeviceProfileError>(())
//! ```

mod profile;
mod summary;
mod wire;

use std::borrow::Cow;
use std::io::Read;

use serde::Serialize;

use flate2::read::MultiGzDecoder;
use thiserror::Error;

pub use profile::is_profile;

use super::code_line::CodeLine;
use super::container::is_gzip;
use super::read_error::ReadError;
use gpumem_model::units::Bytes;

/// The name of such a file in a report.
pub const TITLE: &str = "device memory profile";

/// A packed profile may unpack to this many times its size, or to 16 MiB if that is more.
const MAX_RATIO: u64 = 64;
const MIN_UNPACKED: u64 = 16 << 20;

/// A profile summed up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceProfile {
    /// When it was taken, in nanoseconds since 1970, if recorded.
    #[serde(skip)]
    pub taken_nanos: Option<i64>,
    /// Bytes of all samples.
    pub bytes: Bytes,
    /// Number of allocations, if it counts them.
    pub n_allocations: Option<u64>,
    /// Number of allocations whose size JAX did not know: they are not in the bytes.
    pub n_unknown: u64,
    /// By device and kind, most bytes first.
    pub parts: Vec<ProfilePart>,
    /// By the line that allocated, most bytes first.
    pub owners: Vec<ProfileOwner>,
}

/// The bytes of one kind on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfilePart {
    /// As JAX names it: `cuda:0`, `TFRT_CPU_0`; absent for executables.
    pub device: Option<String>,
    /// `buffer`, `executable`.
    pub kind: Option<String>,
    /// Their bytes.
    pub bytes: Bytes,
    /// Number of allocations, if the profile counts them.
    pub n_allocations: Option<u64>,
    /// Number of allocations whose size is unknown.
    pub n_unknown: u64,
}

/// The bytes of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileOwner {
    /// The innermost line of the stack in user code, else the innermost; `None` without a stack.
    pub line: Option<CodeLine>,
    /// Their bytes.
    pub bytes: Bytes,
    /// Number of allocations, if the profile counts them.
    pub n_allocations: Option<u64>,
    /// Number of allocations whose size is unknown.
    pub n_unknown: u64,
}

/// A profile that was not read.
pub type DeviceProfileError = ReadError<DeviceProfileFault>;

/// What is wrong: [`DeviceProfileError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeviceProfileFault {
    /// The gzip stream is damaged.
    #[error("the gzip file is damaged ({0})")]
    Gzip(String),
    /// It unpacks to more than a profile does.
    #[error("the gzip file unpacks to more than {0}: no profile is packed so well")]
    TooLarge(Bytes),
    /// A field that runs over the end of its message, or is no field.
    #[error("not a device memory profile of JAX: {0}")]
    Wire(&'static str),
    /// A profile of something else.
    #[error(
        "a pprof profile of {0}, not of memory\nhint: `jax.profiler.save_device_memory_profile(path)` makes \
         one of memory"
    )]
    NoBytes(String),
}

/// Reads a profile, packed or not.
///
/// # Errors
///
/// [`DeviceProfileError`] with the offset if it is damaged or counts no bytes.
pub fn read(bytes: &[u8]) -> Result<DeviceProfile, DeviceProfileError> {
    let unpacked = unpacked(bytes)?;
    let profile = profile::Profile::decode(&unpacked)?;
    summary::summed_up(&profile)
}

fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, DeviceProfileError> {
    if !is_gzip(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let limit = (bytes.len() as u64 * MAX_RATIO).max(MIN_UNPACKED);
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes)
        .take(limit + 1)
        .read_to_end(&mut unpacked);
    let fault = |what| DeviceProfileError {
        offset: unpacked.len(),
        what,
    };
    match read {
        Err(error) => Err(fault(DeviceProfileFault::Gzip(error.to_string()))),
        Ok(n) if n as u64 > limit => Err(fault(DeviceProfileFault::TooLarge(Bytes::new(limit)))),
        Ok(_) => Ok(Cow::Owned(unpacked)),
    }
}
