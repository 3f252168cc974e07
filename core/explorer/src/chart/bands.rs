//! What the allocated bytes of a trace are made of: a band for each large block, and one for each line's small ones.

use std::collections::BTreeMap;

use gpumem_model::units::Bytes;
use gpumem_readers::torch_snapshot::Allocation;
use gpumem_scene::Rect;

/// What a band shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BandOf {
    /// A block, by its position among all.
    Block(usize),
    /// The blocks of a line together that are too small for a band each, by their
    /// [`owner`](Allocation::owner).
    Line(usize),
}

/// A part of a band that is at one height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceBand {
    /// Where.
    pub rect: Rect,
    /// What it is.
    pub of: BandOf,
    /// What it has there.
    pub bytes: Bytes,
}

/// What lives after an event of a trace. Events are gone through in their order.
pub(super) struct Living<'a> {
    allocations: &'a [Allocation],
    /// Blocks that have not come yet.
    coming: std::iter::Peekable<std::iter::Enumerate<std::slice::Iter<'a, Allocation>>>,
    /// Positions of those with a band each.
    blocks: Vec<usize>,
    /// When small ones are gone: the event, the line, and what it had.
    going: BTreeMap<(usize, usize), Bytes>,
    of_lines: BTreeMap<usize, Bytes>,
    is_large: Box<dyn Fn(Bytes) -> bool + 'a>,
}

impl<'a> Living<'a> {
    /// Nothing yet, of blocks in the order in which they come; large ones have a band each.
    pub(super) fn new(
        allocations: &'a [Allocation],
        is_large: impl Fn(Bytes) -> bool + 'a,
    ) -> Self {
        Self {
            allocations,
            coming: allocations.iter().enumerate().peekable(),
            blocks: Vec::new(),
            going: BTreeMap::new(),
            of_lines: BTreeMap::new(),
            is_large: Box::new(is_large),
        }
    }

    /// Advances to the state after `event` events.
    pub(super) fn go_to(&mut self, event: usize) {
        while let Some((idx, block)) = self.coming.next_if(|(_, block)| block.from <= event) {
            if (self.is_large)(block.bytes) {
                self.blocks.push(idx);
            } else {
                *self.of_lines.entry(block.owner).or_default() += block.bytes;
                if let Some(until) = block.until {
                    *self.going.entry((until, block.owner)).or_default() += block.bytes;
                }
            }
        }
        let all = self.allocations;
        self.blocks
            .retain(|block| all[*block].until.is_none_or(|until| event < until));
        while let Some(first) = self.going.first_entry()
            && first.key().0 <= event
        {
            let ((_, owner), bytes) = first.remove_entry();
            let has = self.of_lines.entry(owner).or_default();
            *has = has.saturating_sub(bytes);
        }
    }

    /// What there is now, from the bottom to the top: the oldest first.
    pub(super) fn now(
        &self,
        is_high: impl Fn(Bytes) -> bool,
    ) -> impl Iterator<Item = (BandOf, Bytes)> {
        let blocks = self.blocks.iter();
        let blocks = blocks.map(|idx| (BandOf::Block(*idx), self.allocations[*idx].bytes));
        let lines = self.of_lines.iter();
        let lines = lines.map(|(owner, bytes)| (BandOf::Line(*owner), *bytes));
        blocks.chain(lines.filter(move |(_, bytes)| is_high(*bytes)))
    }
}

/// The next column is at the same height.
pub(super) fn goes_on(rect: Rect, next: Rect) -> bool {
    let same = |it: f64, other: f64| (it - other).abs() < 1e-9;
    same(rect.y, next.y) && same(rect.height, next.height)
}

/// From where one begins to where the next one ends.
pub(super) fn to_the_end_of(rect: Rect, next: Rect) -> Rect {
    Rect {
        width: next.x + next.width - rect.x,
        ..rect
    }
}
