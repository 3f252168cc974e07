//! Who held what at the end of a run.

use super::{DeviceIdx, RunIdx};
use crate::holders::DeviceHolders;

/// A look at the names that held memory of a device when a run had ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderSnapshot {
    /// After which run.
    pub run: RunIdx,
    /// On which device.
    pub device: DeviceIdx,
    /// What was found.
    pub holders: DeviceHolders,
}
