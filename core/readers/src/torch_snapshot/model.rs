//! A snapshot as it is in the file.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use gpumem_model::segments::BlockState;
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

/// A snapshot's devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TorchSnapshot<'t> {
    /// Devices with segments or events, in order; the host last.
    pub devices: Vec<DeviceSnapshot>,
    /// Each frame once.
    pub frames: Vec<SnapshotFrame<'t>>,
    /// Stacks as indices of `frames`, innermost first.
    pub stacks: Vec<Vec<u32>>,
    /// Holders of blocks as paths, if gpumem wrote the file.
    pub holders: Vec<&'t str>,
    /// Names and values of the allocator's settings.
    pub settings: BTreeMap<String, String>,
    /// Number of annotations, such as the steps of an optimizer.
    pub n_annotations: usize,
}

/// A device by its number, or the host's pinned memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnapshotDevice {
    /// `cuda:0`.
    Cuda(u64),
    /// Pinned memory.
    Host,
}

impl Serialize for SnapshotDevice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for SnapshotDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Host => f.write_str("host (pinned memory)"),
        }
    }
}

/// One device's segments at the end, and its allocator's latest events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// The device.
    pub device: SnapshotDevice,
    /// In the file's order.
    pub segments: Vec<SnapshotSegment>,
    /// Oldest first.
    pub events: Vec<SnapshotEvent>,
    /// For each out-of-memory event in order: the stream that requested memory, if recorded.
    pub failed_streams: Vec<Option<u64>>,
}

/// Memory that the allocator holds from the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSegment {
    /// Its size.
    pub size: Bytes,
    /// Bytes of allocated blocks, as the file states.
    pub stated_allocated: Option<Bytes>,
    /// Bytes of active blocks, as the file states.
    pub stated_active: Option<Bytes>,
    /// Whether it is a mapped part of an expandable segment.
    pub is_expandable: bool,
    /// Its first byte, if recorded.
    pub address: Option<u64>,
    /// Whether it holds small blocks.
    pub is_small: bool,
    /// Whether it belongs to a private pool, such as a CUDA graph's.
    pub is_private: bool,
    /// The stream that uses it, if recorded.
    pub stream: Option<u64>,
    /// In the order of their addresses.
    pub blocks: Vec<SnapshotBlock>,
}

/// A part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotBlock {
    /// Its first byte; counted if an old file does not have it.
    pub address: Option<u64>,
    /// Its size.
    pub size: Bytes,
    /// Requested bytes; the size if the file does not have them.
    pub requested: Bytes,
    /// Its state.
    pub state: BlockState,
    /// The stack that allocated it, if recorded.
    pub stack: Option<SnapshotStackIdx>,
    /// Its holder, if gpumem wrote the file: a position in [`TorchSnapshot::holders`].
    pub holder: Option<u32>,
}

/// A position in [`TorchSnapshot::stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotStackIdx(pub u32);

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotFrame<'t> {
    /// The function.
    pub name: &'t str,
    /// The file.
    pub file: &'t str,
    /// The line, if known.
    pub line: Option<u32>,
}

/// One action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotEvent {
    /// The action; `None` for a snapshot, an annotation or an unknown one.
    pub action: Option<Action>,
    /// The first byte of the block or segment; for an out-of-memory event, the driver's free bytes.
    pub address: Option<u64>,
    /// As requested.
    pub size: Bytes,
    /// Microseconds since 1970.
    pub at_micros: Option<u64>,
    /// The stack that requested it, if recorded.
    pub stack: Option<SnapshotStackIdx>,
}
