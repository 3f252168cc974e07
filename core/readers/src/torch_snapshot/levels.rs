//! The levels after each event of a trace.

use gpumem_model::segments::BlockState;
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::model::{DeviceSnapshot, Event};

/// Allocated and reserved bytes before the first event of a trace and after each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// As requested, without the allocator's rounding.
    pub allocated: Vec<Bytes>,
    /// Taken from the driver.
    pub reserved: Vec<Bytes>,
}

impl Levels {
    pub(super) fn of(device: &DeviceSnapshot) -> Self {
        let reserved = device.segments.iter().map(|segment| segment.size).sum();
        Self {
            allocated: course_of_allocated(device).0,
            reserved: course(&device.events, reserved, change_of_reserved).0,
        }
    }
}

/// Allocated bytes before the first event of a trace and after each, and whether they are lower bounds.
pub(super) fn course_of_allocated(device: &DeviceSnapshot) -> (Vec<Bytes>, bool) {
    let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
    let live = blocks.filter(|block| block.state == BlockState::Held);
    let end = live.map(|block| block.requested).sum();
    course(&device.events, end, change)
}

/// Counts back from the end, whose level is known. Where that leads below nothing, something was freed that
/// the segments do not account for: then all levels are lower bounds.
fn course(events: &[Event], end: Bytes, change: fn(&Event) -> i128) -> (Vec<Bytes>, bool) {
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

/// What an event does to the allocated bytes.
pub(super) fn change(event: &Event) -> i128 {
    match event.action {
        Some(Action::Alloc) => event.size.get().into(),
        Some(Action::FreeRequested) => -i128::from(event.size.get()),
        _ => 0,
    }
}

/// What an event does to the reserved bytes.
fn change_of_reserved(event: &Event) -> i128 {
    match event.action {
        Some(Action::SegmentAlloc) => event.size.get().into(),
        Some(Action::SegmentFree) => -i128::from(event.size.get()),
        _ => 0,
    }
}
