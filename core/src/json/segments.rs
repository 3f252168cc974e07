//! Where the memory of a device lay.

use serde::Serialize;

use crate::recording::{Recording, SegmentSnapshot};
use crate::segments::{Block, BlockState, Pool, Segment, Segments};

/// The latest look at a device.
#[derive(Serialize)]
pub(super) struct JsonMapped<'a> {
    device: &'a str,
    run: u32,
    /// Why the segments were not read.
    reason: Option<&'a str>,
    found: Option<JsonFound>,
}

#[derive(Serialize)]
struct JsonFound {
    reserved_bytes: u64,
    in_use_bytes: u64,
    split_bytes: u64,
    unused_bytes: u64,
    largest_free_bytes: u64,
    n_segments: u64,
    n_blocks: u64,
    segments: Vec<JsonSegment>,
}

#[derive(Serialize)]
struct JsonSegment {
    pool: &'static str,
    stream: u32,
    blocks: Vec<JsonBlock>,
}

#[derive(Serialize)]
struct JsonBlock {
    state: &'static str,
    n_bytes: u64,
    n_blocks: u64,
    holes_bytes: u64,
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
            run: mapped.run.0,
            reason: mapped.found.as_ref().err().map(String::as_str),
            found: mapped.found.as_ref().ok().map(JsonFound::from),
        }
    }
}

impl From<&Segments> for JsonFound {
    fn from(found: &Segments) -> Self {
        Self {
            reserved_bytes: found.reserved().get(),
            in_use_bytes: found.in_use().get(),
            split_bytes: found.split().get(),
            unused_bytes: found.unused().get(),
            largest_free_bytes: found.largest_free.get(),
            n_segments: found.n_segments(),
            n_blocks: found.n_blocks,
            segments: found.segments.iter().map(JsonSegment::from).collect(),
        }
    }
}

impl From<&Segment> for JsonSegment {
    fn from(segment: &Segment) -> Self {
        Self {
            pool: match segment.pool {
                Pool::Large => "large",
                Pool::Small => "small",
                Pool::Private => "private",
            },
            stream: segment.stream,
            blocks: segment.blocks.iter().map(JsonBlock::from).collect(),
        }
    }
}

impl From<&Block> for JsonBlock {
    fn from(block: &Block) -> Self {
        Self {
            state: match block.state {
                BlockState::Held => "held",
                BlockState::Awaiting => "awaiting",
                BlockState::Free => "free",
            },
            n_bytes: block.size.get(),
            n_blocks: block.n_blocks,
            holes_bytes: block.holes.get(),
        }
    }
}
