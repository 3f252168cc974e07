//! The levels after each event of a trace.

use gpumem_model::segments::BlockState;
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::model::{DeviceSnapshot, SnapshotEvent};

/// Allocated and reserved bytes before the first event of a trace and after each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotLevels {
    /// As requested, without the allocator's rounding.
    pub allocated: Vec<Bytes>,
    /// Taken from the driver.
    pub reserved: Vec<Bytes>,
}

impl SnapshotLevels {
    pub(super) fn new(device: &DeviceSnapshot) -> Self {
        let reserved = device.segments.iter().map(|segment| segment.size).sum();
        Self {
            allocated: allocated_levels(device).0,
            reserved: levels_after(&device.events, reserved, reserved_change).0,
        }
    }
}

/// Allocated bytes before the first event of a trace and after each, and whether they are lower bounds.
pub(super) fn allocated_levels(device: &DeviceSnapshot) -> (Vec<Bytes>, bool) {
    let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
    let live = blocks.filter(|block| block.state == BlockState::Held);
    let end = live.map(|block| block.requested).sum();
    levels_after(&device.events, end, change)
}

/// Counts back from the end, whose level is known. If that gives a negative level, something was freed that the
/// segments do not account for: then all levels are lower bounds.
fn levels_after(
    events: &[SnapshotEvent],
    end: Bytes,
    change: fn(&SnapshotEvent) -> i128,
) -> (Vec<Bytes>, bool) {
    let mut level: i128 = 0;
    let lowest = events.iter().map(|event| {
        level += change(event);
        level
    });
    let lowest = lowest.min().unwrap_or_default().min(0);
    let counted = i128::from(end.get()) - level;
    let start = counted.max(-lowest);
    let bytes = |level: i128| Bytes::new(u64::try_from(level).unwrap_or(u64::MAX));
    let mut level = start;
    let after = events.iter().map(|event| {
        level += change(event);
        bytes(level)
    });
    let levels = std::iter::once(bytes(start)).chain(after).collect();
    (levels, start != counted)
}

/// An event's change of the allocated bytes.
pub(super) fn change(event: &SnapshotEvent) -> i128 {
    match event.action {
        Some(Action::Alloc) => event.size.get().into(),
        Some(Action::FreeRequested) => -i128::from(event.size.get()),
        _ => 0,
    }
}

/// An event's change of the reserved bytes.
fn reserved_change(event: &SnapshotEvent) -> i128 {
    match event.action {
        Some(Action::SegmentAlloc) => event.size.get().into(),
        Some(Action::SegmentFree) => -i128::from(event.size.get()),
        _ => 0,
    }
}
