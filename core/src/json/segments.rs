//! Where the memory of a device lay.

use serde::Serialize;

use crate::recording::{Recording, RunIdx, SegmentSnapshot};
use crate::segments::{Segment, Segments};
use crate::units::Bytes;

/// The latest look at a device.
#[derive(Serialize)]
pub(super) struct JsonMapped<'a> {
    device: &'a str,
    run: RunIdx,
    /// Why the segments were not read.
    reason: Option<&'a str>,
    found: Option<JsonFound<'a>>,
}

#[derive(Serialize)]
struct JsonFound<'a> {
    reserved_bytes: Bytes,
    in_use_bytes: Bytes,
    split_bytes: Bytes,
    unused_bytes: Bytes,
    largest_free_bytes: Bytes,
    n_segments: u64,
    n_blocks: u64,
    segments: &'a [Segment],
}

impl<'a> JsonMapped<'a> {
    /// Of every device that was looked at, in their order.
    pub(super) fn all(recording: &'a Recording) -> Vec<Self> {
        let devices = recording.devices().iter();
        let looks = devices.filter_map(|device| recording.latest_mapped(device.idx));
        looks.map(|mapped| Self::of(recording, mapped)).collect()
    }

    fn of(recording: &'a Recording, mapped: &'a SegmentSnapshot) -> Self {
        Self {
            device: &recording.device(mapped.device).label,
            run: mapped.run,
            reason: mapped.found.as_ref().err().map(String::as_str),
            found: mapped.found.as_ref().ok().map(JsonFound::from),
        }
    }
}

impl<'a> From<&'a Segments> for JsonFound<'a> {
    fn from(found: &'a Segments) -> Self {
        Self {
            reserved_bytes: found.reserved(),
            in_use_bytes: found.in_use(),
            split_bytes: found.split(),
            unused_bytes: found.unused(),
            largest_free_bytes: found.largest_free,
            n_segments: found.n_segments(),
            n_blocks: found.n_blocks,
            segments: &found.segments,
        }
    }
}
