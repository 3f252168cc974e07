//! The levels over the events of a trace, and who owned the peak.

use crate::units::Bytes;

use super::code_line::line_of;
use super::live::each_live;
use super::model::{Action, BlockState, DeviceSnapshot, Event, Frame};
use super::summary::{Owner, Tallies};

/// What a device's trace tells of its level. Sizes are as requested, without the allocator's rounding.
/// Example: [`summary`](super::summary()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Number of events.
    pub n_events: usize,
    /// Microseconds from the first event to the last, if they have times.
    pub duration_micros: Option<u64>,
    /// Allocated before the first event.
    pub at_start: Bytes,
    /// Allocated after the last event: the snapshot's live blocks.
    pub at_end: Bytes,
    /// The highest level.
    pub peak: Bytes,
    /// The event after which the level was highest; `None` if it never rose above the start.
    pub peak_event: Option<usize>,
    /// Microseconds from the first event to the peak.
    pub peak_after_micros: Option<u64>,
    /// Who owned the peak, largest first.
    pub owners: Vec<Owner>,
    /// Bytes at the peak that were allocated before the trace began and freed later: owner unknown.
    pub n_bytes_from_before: Bytes,
    /// Whether trace and segments disagree: all levels are at least this much.
    pub is_lower_bound: bool,
}

impl Timeline {
    /// `None` without events that change the level.
    pub(super) fn of(device: &DeviceSnapshot, lines: &[Option<Frame<'_>>]) -> Option<Self> {
        let events = &device.events;
        if !events.iter().any(|event| change(event) != 0) {
            return None;
        }
        let course = Course::of(device);
        let first = events.iter().find_map(|event| event.at_micros);
        let last = events.iter().rev().find_map(|event| event.at_micros);
        let since_first = |at: Option<u64>| at?.checked_sub(first?);
        let peak_event = course.peak_event;
        let (owners, known) = owners(device, lines, peak_event);
        Some(Self {
            n_events: events.len(),
            duration_micros: since_first(last),
            at_start: course.start,
            at_end: course.end,
            peak: course.peak,
            peak_event,
            peak_after_micros: since_first(
                peak_event.and_then(|at| events.get(at).and_then(|event| event.at_micros)),
            ),
            owners,
            n_bytes_from_before: course.peak.saturating_sub(known),
            is_lower_bound: course.is_lower_bound,
        })
    }
}

pub(super) struct Course {
    pub(super) start: Bytes,
    end: Bytes,
    peak: Bytes,
    peak_event: Option<usize>,
    is_lower_bound: bool,
}

impl Course {
    /// Counts back from the end, whose level is known.
    pub(super) fn of(device: &DeviceSnapshot) -> Self {
        let live = device.segments.iter().flat_map(|segment| &segment.blocks);
        let live = live.filter(|block| block.state == BlockState::Allocated);
        let end: i128 = live.map(|block| i128::from(block.requested.get())).sum();
        let net: i128 = device.events.iter().map(change).sum();
        let (mut level, mut highest, mut lowest, mut peak_event) = (0, 0, 0, None);
        for (at, event) in device.events.iter().enumerate() {
            level += change(event);
            lowest = lowest.min(level);
            if level > highest {
                (highest, peak_event) = (level, Some(at));
            }
        }
        let start = end - net;
        // Something was freed that the segments do not account for.
        let least = start.max(-lowest);
        let bytes = |level: i128| Bytes::new(u64::try_from(level).unwrap_or_default());
        Self {
            start: bytes(least),
            end: bytes(least + net),
            peak: bytes(least + highest),
            peak_event,
            is_lower_bound: least != start,
        }
    }
}

/// What an event does to the allocated bytes.
pub(super) fn change(event: &Event) -> i128 {
    match event.action {
        Action::Alloc => event.size.get().into(),
        Action::FreeRequested => -i128::from(event.size.get()),
        _ => 0,
    }
}

/// Who owned the peak, and how many bytes they had together.
fn owners(
    device: &DeviceSnapshot,
    lines: &[Option<Frame<'_>>],
    peak_event: Option<usize>,
) -> (Vec<Owner>, Bytes) {
    let mut tallies = Tallies::default();
    let at_peak = peak_event.map_or(0, |at| at + 1);
    each_live(device, at_peak, |stack, size| {
        tallies.add(line_of(lines, stack), size);
    });
    tallies.largest_first()
}
