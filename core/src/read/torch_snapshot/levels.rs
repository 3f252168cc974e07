//! The levels after each event of a trace.

use crate::units::Bytes;

use super::model::{Action, DeviceSnapshot, Event};
use super::timeline::{Course, change};

/// Allocated and reserved bytes before the first event of a trace and after each. Example:
/// [`Explorer`](super::Explorer).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// As requested, without the allocator's rounding.
    pub allocated: Vec<Bytes>,
    /// Taken from the driver.
    pub reserved: Vec<Bytes>,
}

impl Levels {
    /// Counts back from the end, whose levels are known.
    pub(super) fn of(device: &DeviceSnapshot) -> Self {
        let reserved: Bytes = device.segments.iter().map(|segment| segment.size).sum();
        let net: i128 = device.events.iter().map(change_of_reserved).sum();
        Self {
            allocated: course(device, Course::of(device).start.get().into(), change),
            reserved: course(device, i128::from(reserved.get()) - net, change_of_reserved),
        }
    }
}

fn course(device: &DeviceSnapshot, start: i128, change: fn(&Event) -> i128) -> Vec<Bytes> {
    let mut level = start;
    let mut levels = Vec::with_capacity(device.events.len() + 1);
    let bytes = |level: i128| Bytes::new(u64::try_from(level).unwrap_or_default());
    levels.push(bytes(level));
    for event in &device.events {
        level += change(event);
        levels.push(bytes(level));
    }
    levels
}

/// What an event does to the reserved bytes.
fn change_of_reserved(event: &Event) -> i128 {
    match event.action {
        Action::SegmentAlloc => event.size.get().into(),
        Action::SegmentFree => -i128::from(event.size.get()),
        _ => 0,
    }
}
