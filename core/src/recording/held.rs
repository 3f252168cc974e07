//! The holders of memory at the end of a run.

use super::{DeviceIdx, RunIdx};
use crate::holders::DeviceHolders;

/// The names that held memory of a device when a run had ended.
/// [`Recording::holders`](super::Recording::holders) looks it up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderSnapshot {
    /// After which run.
    pub run: RunIdx,
    /// On which device.
    pub device: DeviceIdx,
    /// What was found.
    pub holders: DeviceHolders,
}
