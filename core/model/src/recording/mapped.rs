//! The segments of an allocator at the end of a run.

use super::{DeviceIdx, RunIdx};
use crate::segments::Segments;

/// The segments of a device when a run had ended, or when memory ran out in it.
/// [`Recording::mapped`](super::Recording::mapped) looks it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSnapshot {
    /// Of which run.
    pub run: RunIdx,
    /// On which device.
    pub device: DeviceIdx,
    /// The segments, or why they were not read.
    pub found: Result<Segments, String>,
}
