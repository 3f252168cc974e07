//! Where levels come from. A source gives its devices and a reading of each; it
//! knows nothing of cells.
//!
//! **Driver** sources are read by the sampler's thread without the GIL.
//! **Framework** sources are read under the GIL, and only where the framework is
//! imported and initialised already: reading must not wake one up.

use gpumem_core::recording::{AllocatorLevels, DeviceKind, DriverLevels, Source};
use pyo3::Python;

/// A device as a source finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// A key that outlives the session, the same from every source: `GPU-<uuid>`, `sim:0`, `host`.
    pub(crate) key: String,
    /// As people write it: `cuda:0`, `sim:0`, `host`.
    pub(crate) label: String,
    /// The maker's name.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: DeviceKind,
}

/// Why a source is not read: one sentence for `%gpumem status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unused(pub(crate) String);

/// A source that needs no GIL.
pub(crate) trait DriverSource: Send {
    /// Its name.
    fn source(&self) -> Source;
    /// Its devices, in its own order; or why it has none.
    fn devices(&mut self) -> Result<Vec<Found>, Unused>;
    /// The levels of one of them. A failure is an unknown level with its reason.
    fn read(&mut self, key: &str) -> DriverLevels;
}

/// A source that is read under the GIL.
pub(crate) trait FrameworkSource: Send + Sync {
    /// Its name.
    fn source(&self) -> Source;
    /// Its devices, where it already runs; or why it is not read.
    fn devices(&self, py: Python<'_>) -> Result<Vec<Found>, Unused>;
    /// The levels of one of them. A failure is an unknown level with its reason.
    fn read(&self, py: Python<'_>, key: &str) -> AllocatorLevels;
}
