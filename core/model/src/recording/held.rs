//! The holders of memory after a run, and while it goes on.

use super::{DeviceIdx, RunIdx};
use crate::holders::DeviceHolders;
use crate::units::Nanos;

/// The names that held memory of a device when a run had ended, or while it went on.
/// [`Recording::holders`](super::Recording::holders) and
/// [`Recording::holders_inside`](super::Recording::holders_inside) look it up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderSnapshot {
    /// After which run, or in which.
    pub run: RunIdx,
    /// On which device.
    pub device: DeviceIdx,
    /// Since the recording's start: when, if the run went on.
    pub inside_at: Option<Nanos>,
    /// What was found. What names have more is counted from the look before the run on.
    pub holders: DeviceHolders,
}
