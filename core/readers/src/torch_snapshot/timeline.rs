//! The levels over the events of a trace, and the owners of the peak.

use serde::Serialize;

use gpumem_model::units::Bytes;

use super::levels::{allocated_levels, change};
use super::lines::line_of;
use super::live::Life;
use super::model::{DeviceSnapshot, SnapshotFrame};
use super::summary::{LineOwner, Tallies, code_line};

/// A device's level over its trace. Sizes are as requested, without the allocator's rounding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotTimeline {
    /// Number of events.
    pub n_events: usize,
    /// Microseconds from the first event to the last, if they have times.
    pub duration_micros: Option<u64>,
    /// Allocated before the first event.
    #[serde(rename = "start_bytes")]
    pub at_start: Bytes,
    /// Allocated after the last event: the snapshot's live blocks.
    #[serde(rename = "end_bytes")]
    pub at_end: Bytes,
    /// The highest level.
    #[serde(rename = "peak_bytes")]
    pub peak: Bytes,
    /// The event after which the level was highest; `None` if it never rose above the start.
    pub peak_event: Option<usize>,
    /// Microseconds from the first event to the peak.
    pub peak_after_micros: Option<u64>,
    /// Owners of the peak, largest first.
    pub owners: Vec<LineOwner>,
    /// Bytes at the peak that were allocated before the trace began and freed later: owner unknown.
    #[serde(rename = "from_before_bytes")]
    pub n_bytes_from_before: Bytes,
    /// Whether trace and segments disagree: all levels are lower bounds.
    pub is_lower_bound: bool,
}

impl SnapshotTimeline {
    /// `None` without events that change the level.
    pub(super) fn new(
        device: &DeviceSnapshot,
        lives: &[Life],
        lines: &[Option<SnapshotFrame<'_>>],
    ) -> Option<Self> {
        let events = &device.events;
        if !events.iter().any(|event| change(event) != 0) {
            return None;
        }
        let (levels, is_lower_bound) = allocated_levels(device);
        let at_start = levels[0];
        let mut peak_event = None;
        let mut peak = at_start;
        for (event, level) in levels[1..].iter().enumerate() {
            if *level > peak {
                (peak, peak_event) = (*level, Some(event));
            }
        }
        let first = events.iter().find_map(|event| event.at_micros);
        let last = events.iter().rev().find_map(|event| event.at_micros);
        let since_first = |at: Option<u64>| at?.checked_sub(first?);
        let (owners, known) = owners(lives, lines, peak_event);
        Some(Self {
            n_events: events.len(),
            duration_micros: since_first(last),
            at_start,
            at_end: levels[levels.len() - 1],
            peak,
            peak_event,
            peak_after_micros: since_first(
                peak_event.and_then(|at| events.get(at).and_then(|event| event.at_micros)),
            ),
            owners,
            n_bytes_from_before: peak.saturating_sub(known),
            is_lower_bound,
        })
    }
}

/// Owners of the peak, and the sum of their bytes.
fn owners(
    lives: &[Life],
    lines: &[Option<SnapshotFrame<'_>>],
    peak_event: Option<usize>,
) -> (Vec<LineOwner>, Bytes) {
    let mut tallies = Tallies::new();
    let at_peak = peak_event.map_or(0, |at| at + 1);
    for life in lives.iter().filter(|life| life.is_at(at_peak)) {
        tallies.add(line_of(lines, life.stack), life.size);
    }
    tallies.largest_first(code_line)
}
