//! Devices whose memory is recorded.

use super::{DeviceIdx, DeviceKey, DeviceKind, Reading};
use crate::units::Nanos;

/// A device whose memory is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Its position in the recording.
    pub idx: DeviceIdx,
    /// Names the device in every session.
    pub key: DeviceKey,
    /// The label that people write: `cuda:0`, `sim:0`, `host`.
    pub label: String,
    /// The maker's name: `Tesla T4`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// What was read last outside of every run, where it differs from the run before.
    pub outside: Option<Box<OutsideReading>>,
}

/// The levels of a device outside of every run: what is not recorded may have given memory back, or taken it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutsideReading {
    /// Since the recording's start: when they were read.
    pub at: Nanos,
    /// The levels.
    pub reading: Reading,
}
