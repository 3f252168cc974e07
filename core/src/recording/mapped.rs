//! Where in its segments an allocator's memory lay.

use super::{DeviceIdx, RunIdx};
use crate::segments::Segments;

/// The segments of a device when a run had ended, or at the moment when memory ran out in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSnapshot {
    /// Of which run.
    pub run: RunIdx,
    /// On which device.
    pub device: DeviceIdx,
    /// What was found, or in words why nobody looked.
    pub found: Result<Segments, String>,
}
