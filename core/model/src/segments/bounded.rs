//! No more segments and blocks than a picture can show.

use std::cmp::Reverse;

use super::{Block, BlockState, Pool, Segment, Segments, SmallSegments};
use crate::units::Bytes;

/// At most this many segments are kept one by one.
pub const MAX_SEGMENTS: usize = 128;
/// At most this many blocks of them; more than twice as many as segments.
pub const MAX_BLOCKS: usize = 768;

impl Segments {
    /// Keeps a bounded picture: the smallest segments are summed up, and if there are too many blocks, those
    /// between the largest holes become one.
    pub fn new(mut segments: Vec<Segment>) -> Self {
        segments.retain(|segment| !segment.blocks.is_empty());
        let n_blocks: usize = segments.iter().map(|segment| segment.blocks.len()).sum();
        let shared = segments
            .iter()
            .filter(|segment| segment.pool != Pool::Private);
        let free = shared
            .flat_map(|segment| &segment.blocks)
            .filter(|it| it.is_free());
        let largest_free = free.map(|block| block.size).max().unwrap_or_default();
        let rest = sum_up_smallest(&mut segments);
        let n_left: usize = segments.iter().map(|segment| segment.blocks.len()).sum();
        if n_left > MAX_BLOCKS {
            join_between_holes(&mut segments);
        }
        Self {
            segments,
            rest,
            n_blocks: n_blocks as u64,
            largest_free,
        }
    }
}

/// The larger comes first, of equals the earlier.
type SizeRank = (Reverse<Bytes>, usize);

/// Removes the smallest segments if there are too many.
fn sum_up_smallest(segments: &mut Vec<Segment>) -> SmallSegments {
    let mut rest = SmallSegments::default();
    if segments.len() <= MAX_SEGMENTS {
        return rest;
    }
    let places: Vec<SizeRank> = segments
        .iter()
        .enumerate()
        .map(|(idx, segment)| (Reverse(segment.size()), idx))
        .collect();
    let last = *places.clone().select_nth_unstable(MAX_SEGMENTS - 1).1;
    let mut places = places.into_iter();
    segments.retain(|segment| {
        let place = places.next().expect("one for each");
        if place <= last {
            return true;
        }
        let free = if segment.is_free() {
            &mut rest.unused
        } else {
            &mut rest.split
        };
        *free += segment.free();
        rest.n_segments += 1;
        rest.size += place.0.0;
        false
    });
    rest
}

/// Keeps the largest holes; what lies between two of them becomes one block.
fn join_between_holes(segments: &mut [Segment]) {
    let n_kept = (MAX_BLOCKS - segments.len()) / 2;
    let used = segments.iter().filter(|segment| !segment.is_free());
    let holes = used
        .flat_map(|segment| &segment.blocks)
        .filter(|it| it.is_free());
    let mut places: Vec<SizeRank> = holes
        .enumerate()
        .map(|(idx, hole)| (Reverse(hole.size), idx))
        .collect();
    let last = if places.len() > n_kept {
        *places.select_nth_unstable(n_kept - 1).1
    } else {
        (Reverse(Bytes::ZERO), usize::MAX)
    };
    let mut idx = 0;
    for segment in segments {
        let is_unused = segment.is_free();
        let mut joined: Vec<Block> = Vec::new();
        for block in &segment.blocks {
            let is_hole = block.is_free() && !is_unused;
            let is_kept = is_hole && (Reverse(block.size), idx) <= last;
            idx += usize::from(is_hole);
            match joined.last_mut() {
                _ if is_kept => joined.push(*block),
                Some(before) if before.is_free() == is_unused => before.join(block),
                _ if is_unused => joined.push(*block),
                _ => joined.push(block.in_use()),
            }
        }
        segment.blocks = joined;
    }
}

impl Block {
    /// The same block in a form that can be joined with a neighbour in use.
    fn in_use(&self) -> Self {
        Self {
            state: match self.state {
                BlockState::Free => BlockState::Held,
                state => state,
            },
            holes: self.free(),
            ..*self
        }
    }

    fn join(&mut self, next: &Self) {
        if next.state == BlockState::Held {
            self.state = BlockState::Held;
        }
        self.size += next.size;
        self.n_blocks += next.n_blocks;
        if !self.is_free() {
            self.holes += next.free();
        }
    }
}
