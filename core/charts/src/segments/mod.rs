//! The map of segments and blocks: shelves of bars on one scale.
//!
//! Sizes here are shares of a shelf, not pixels: the page draws each block as its own element, which
//! follows the page's width and which the keyboard reaches.

mod blocks;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use blocks::{blocks, lump};
use gpumem_model::segments::{Pool, Segment, Segments};
use gpumem_model::units::{ByteDelta, Bytes, Units, count};

/// A map has about this many shelves if its segments fill them, and hardly ever more.
const N_SHELVES: u64 = 12;
/// What takes less of a shelf gets no bar of its own.
const LEAST_BAR: f64 = 1.0 / 64.0;
/// How often a shelf grows by a quarter, until there are few enough.
const N_TRIES: u32 = 24;

/// What a [`DrawnBlock`] of the map is, and how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStyle {
    /// Held by tensors.
    Held,
    /// Freed by the program, but a stream may still use it.
    Awaiting,
    /// Blocks in use, with holes between them that are too small to be seen.
    Mixed,
    /// Free, next to blocks in use.
    Hole,
    /// Free, like all of its segment.
    Unused,
}

/// A part of a [`Bar`]: a block, or neighbours that are too small to be seen one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnBlock {
    /// Of its bar.
    pub share: f64,
    /// What it is.
    pub look: BlockStyle,
    /// Whether it is the largest free block.
    pub is_largest: bool,
    /// What it is, in words.
    pub words: String,
}

/// A segment, or several that are too small to be seen, on a shelf of a [`SegmentMap`].
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Of its shelf.
    pub share: f64,
    /// What it is, in words.
    pub words: String,
    /// What is in it, by address.
    pub blocks: Vec<DrawnBlock>,
}

/// Where reserved memory lies.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentMap {
    /// The bytes that a whole shelf stands for.
    pub scale: Bytes,
    /// From top to bottom, the largest bars first.
    pub shelves: Vec<Vec<Bar>>,
    /// What it shows, for those who do not see it.
    pub words: String,
}

impl SegmentMap {
    /// The map of these segments.
    pub fn new(found: &Segments, units: Units) -> Self {
        let mut segments: Vec<&Segment> = found.segments.iter().collect();
        segments.sort_by_key(|segment| (segment.pool == Pool::Private, Reverse(segment.size())));
        let largest = segments.iter().map(|segment| segment.size()).max();
        let enough = Bytes::new(found.reserved().get() / N_SHELVES);
        let mut scale = largest.unwrap_or_default().max(enough);
        let mut shelves = shelved(bars(found, &segments, scale, units));
        for _ in 0..N_TRIES {
            if shelves.len() as u64 <= N_SHELVES {
                break;
            }
            scale += Bytes::new(scale.get() / 4 + 1);
            shelves = shelved(bars(found, &segments, scale, units));
        }
        let mut map = Self {
            scale,
            shelves,
            words: describe(found, units),
        };
        map.tighten();
        map
    }

    /// Makes a shelf as long as the fullest of them, so that they end at the edge.
    fn tighten(&mut self) {
        let bars = |shelf: &Vec<Bar>| shelf.iter().map(|bar| bar.share).sum::<f64>();
        let fullest = self.shelves.iter().map(bars).fold(0.0, f64::max);
        let taken = ByteDelta::from_f64(self.scale.as_f64() * fullest).magnitude();
        let scale = taken.min(self.scale);
        if scale == Bytes::ZERO {
            return;
        }
        let longer = self.scale.as_f64() / scale.as_f64();
        for bar in self.shelves.iter_mut().flatten() {
            bar.share *= longer;
        }
        self.scale = scale;
    }
}

/// Each segment that can be seen; the others together.
fn bars(found: &Segments, segments: &[&Segment], scale: Bytes, units: Units) -> Vec<Bar> {
    let share = |size: Bytes| size.as_f64() / scale.as_f64().max(1.0);
    let is_seen = |segment: &&&Segment| share(segment.size()) >= LEAST_BAR;
    let mut is_marked = false;
    let mut bars: Vec<Bar> = segments
        .iter()
        .filter(is_seen)
        .map(|segment| Bar {
            share: share(segment.size()),
            words: title(segment, units),
            blocks: blocks(segment, scale, (found.largest_free, &mut is_marked), units),
        })
        .collect();
    let small: Vec<&Segment> = segments.iter().filter(|it| !is_seen(it)).copied().collect();
    bars.extend(lump(&small, &found.rest, scale, units));
    bars
}

/// Each bar on the first shelf that has room for it.
fn shelved(bars: Vec<Bar>) -> Vec<Vec<Bar>> {
    let mut shelves: Vec<(f64, Vec<Bar>)> = Vec::new();
    for bar in bars {
        // Shares of the same whole may miss it by a rounding.
        let has_room = |(taken, _): &&mut (f64, Vec<Bar>)| taken + bar.share <= 1.0 + 1e-9;
        match shelves.iter_mut().find(has_room) {
            Some((taken, shelf)) => {
                *taken += bar.share;
                shelf.push(bar);
            }
            None => shelves.push((bar.share, vec![bar])),
        }
    }
    shelves.into_iter().map(|(_, shelf)| shelf).collect()
}

fn title(segment: &Segment, units: Units) -> String {
    let stream = match segment.stream {
        0 => String::new(),
        stream => format!(", stream {stream}"),
    };
    let pool = segment.pool.label();
    let size = units.size(segment.size());
    format!("segment of {size} for {pool}{stream}")
}

fn describe(found: &Segments, units: Units) -> String {
    let count = |n: u64, what| count(usize::try_from(n).unwrap_or(usize::MAX), what);
    let mut words = format!(
        "{} with {}, {} reserved: {} in use, {} free between blocks in use, {} in segments that are \
         all free",
        count(found.n_segments(), "segment"),
        count(found.n_blocks, "block"),
        units.size(found.reserved()),
        units.size(found.in_use()),
        units.size(found.split()),
        units.size(found.unused()),
    );
    if found.largest_free > Bytes::ZERO {
        words.push_str("; the largest free piece has ");
        words.push_str(&units.size(found.largest_free));
    }
    words
}
