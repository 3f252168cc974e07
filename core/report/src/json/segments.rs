//! Where the memory of a device lay.

use serde::Serialize;

use gpumem_model::object;
use gpumem_model::recording::{Recording, RunIdx, SegmentSnapshot};
use gpumem_model::segments::Segments;

/// The latest look at a device.
#[derive(Serialize)]
pub(super) struct JsonMapped<'a> {
    device: &'a str,
    run: RunIdx,
    /// Why the segments were not read.
    reason: Option<&'a str>,
    found: Option<JsonFound<'a>>,
}

struct JsonFound<'a>(&'a Segments);

object! { JsonFound<'_>, it => {
    reserved_bytes: it.0.reserved(),
    in_use_bytes: it.0.in_use(),
    split_bytes: it.0.split(),
    unused_bytes: it.0.unused(),
    largest_free_bytes: it.0.largest_free,
    n_segments: it.0.n_segments(),
    n_blocks: it.0.n_blocks,
    segments: it.0.segments,
}}

impl<'a> JsonMapped<'a> {
    /// Of every device that was looked at, in their order.
    pub(super) fn all(recording: &'a Recording) -> Vec<Self> {
        let devices = recording.devices().iter();
        let looks = devices.filter_map(|device| recording.latest_mapped(device.idx));
        let of_look = |mapped: &'a SegmentSnapshot| Self {
            device: &recording.device(mapped.device).label,
            run: mapped.run,
            reason: mapped.found.as_ref().err().map(String::as_str),
            found: mapped.found.as_ref().ok().map(JsonFound),
        };
        looks.map(of_look).collect()
    }
}
