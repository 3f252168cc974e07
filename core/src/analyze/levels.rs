//! One row per (run, device), derived from the raw readings.

use crate::recording::{DeviceIdx, Recording, RunIdx};
use crate::units::{ByteDelta, Bytes};

/// Which of a device's levels growth is judged on: the first one known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Bytes in blocks held by tensors, summed over the allocators.
    Allocated,
    /// The driver's figure for this process.
    ProcessUsed,
    /// The driver's figure for every process.
    DeviceUsed,
}

impl Lane {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "allocated",
            Self::ProcessUsed => "process_used",
            Self::DeviceUsed => "device_used",
        }
    }
}

/// The highest level of a lane in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peak {
    /// The allocator's own peak rose in the run, above the one before it.
    Exact(Bytes),
    /// It lies between the highest level seen and the allocator's old peak.
    Between {
        /// Highest level seen.
        low: Bytes,
        /// The old peak, where the allocator has one.
        high: Bytes,
    },
    /// The highest level seen; nothing bounds it from above.
    AtLeast(Bytes),
}

impl Peak {
    /// The highest level that is certain.
    pub const fn low(self) -> Bytes {
        match self {
            Self::Exact(bytes) | Self::AtLeast(bytes) => bytes,
            Self::Between { low, .. } => low,
        }
    }

    /// It is known to the byte.
    pub const fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

/// The levels of one device around one run, totals over its allocators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Which run.
    pub run: RunIdx,
    /// Which device.
    pub device: DeviceIdx,
    /// The lane that growth is judged on.
    pub lane: Lane,
    /// That lane when the run began.
    pub before: Option<Bytes>,
    /// That lane when it ended.
    pub after: Option<Bytes>,
    /// What the run kept of it: after − before.
    pub kept: Option<ByteDelta>,
    /// Its highest level inside the run.
    pub peak: Option<Peak>,
    /// Allocated, before and after.
    pub allocated: (Option<Bytes>, Option<Bytes>),
    /// Reserved, before and after.
    pub reserved: (Option<Bytes>, Option<Bytes>),
    /// This process's use, before and after.
    pub process_used: (Option<Bytes>, Option<Bytes>),
    /// Every process's use, before and after.
    pub device_used: (Option<Bytes>, Option<Bytes>),
    /// The smallest limit that applies.
    pub capacity: Option<Bytes>,
    /// Allocations in the run that succeeded only after the cache was flushed.
    pub n_retries: Option<u64>,
}

/// The latest levels of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSummary {
    /// Which device.
    pub device: DeviceIdx,
    /// The lane that growth is judged on.
    pub lane: Lane,
    /// Latest allocated.
    pub allocated: Option<Bytes>,
    /// Latest reserved.
    pub reserved: Option<Bytes>,
    /// Latest inactive split.
    pub inactive_split: Option<Bytes>,
    /// Latest largest free block.
    pub largest_free: Option<Bytes>,
    /// Latest use of this process.
    pub process_used: Option<Bytes>,
    /// Latest use of every process.
    pub device_used: Option<Bytes>,
    /// The smallest limit that applies.
    pub capacity: Option<Bytes>,
    /// The highest level of the lane in any run.
    pub peak: Option<Bytes>,
}

impl DeviceSummary {
    /// What the device has left: capacity minus the widest use that is known.
    pub fn free(&self) -> Option<Bytes> {
        let used = self.device_used.or(self.process_used).or(self.reserved)?;
        Some(self.capacity?.saturating_sub(used))
    }

    /// (reserved − allocated) / reserved: free in the allocator, not in the driver.
    pub fn cache_ratio(&self) -> Option<f64> {
        let (allocated, reserved) = (self.allocated?, self.reserved?);
        (reserved > Bytes::ZERO)
            .then(|| reserved.saturating_sub(allocated).as_f64() / reserved.as_f64())
    }
}

pub(super) fn rows(_recording: &Recording) -> Vec<RunRow> {
    Vec::new()
}

pub(super) fn summaries(_recording: &Recording, _rows: &[RunRow]) -> Vec<DeviceSummary> {
    Vec::new()
}

pub(super) fn warnings(_recording: &Recording) -> Vec<String> {
    Vec::new()
}
