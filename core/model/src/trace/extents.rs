//! Where free memory lies while a history is replayed, and how much of it each block took.

use std::collections::{BTreeMap, HashMap};

use super::history::AllocatorLayout;
use crate::units::Bytes;

/// The free pieces of every segment.
#[derive(Debug)]
pub(super) struct Extents {
    /// Size by address.
    segments: BTreeMap<u64, u64>,
    /// Size by address.
    free: BTreeMap<u64, u64>,
    /// Size by address of what is not free.
    held: HashMap<u64, u64>,
}

impl Extents {
    pub(super) fn new(layout: &AllocatorLayout) -> Self {
        let sizes = |pieces: &[(u64, Bytes)]| -> Vec<(u64, u64)> {
            let pieces = pieces.iter();
            pieces
                .map(|(address, size)| (*address, size.get()))
                .collect()
        };
        Self {
            segments: sizes(&layout.segments).into_iter().collect(),
            free: sizes(&layout.free).into_iter().collect(),
            held: sizes(&layout.held).into_iter().collect(),
        }
    }

    pub(super) fn add_segment(&mut self, address: u64, size: u64) {
        self.segments.insert(address, size);
        self.free.insert(address, size);
    }

    pub(super) fn remove_segment(&mut self, address: u64) {
        self.segments.remove(&address);
        self.free.remove(&address);
    }

    /// The size of a new block: `wanted`, or all of the free piece if its rest `stays` with it.
    /// `None` if no free piece is known there.
    pub(super) fn take(
        &mut self,
        address: u64,
        wanted: u64,
        stays: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let piece = self.free.remove(&address)?;
        let rest = piece.checked_sub(wanted)?;
        let size = if rest == 0 || stays(rest) {
            piece
        } else {
            self.free.insert(address.checked_add(wanted)?, rest);
            wanted
        };
        self.held.insert(address, size);
        Some(size)
    }

    /// A block is free: it joins what is free beside it in its segment.
    pub(super) fn give_back(&mut self, address: u64) {
        let Some(mut size) = self.held.remove(&address) else {
            return;
        };
        let mut start = address;
        let segment = self.segments.range(..=address).next_back();
        let (first, end) = segment.map_or((address, address), |(first, size)| {
            (*first, first.saturating_add(*size))
        });
        let next = address.saturating_add(size);
        if next < end
            && let Some(after) = self.free.remove(&next)
        {
            size = size.saturating_add(after);
        }
        let before = self.free.range(first..address).next_back();
        if let Some((before, of_before)) = before.map(|(at, size)| (*at, *size))
            && before.saturating_add(of_before) == address
        {
            self.free.remove(&before);
            start = before;
            size = size.saturating_add(of_before);
        }
        self.free.insert(start, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A segment of 20 MiB at 0, and one of 2 MiB right after it.
    fn extents() -> Extents {
        let mut extents = Extents::new(&AllocatorLayout::default());
        extents.add_segment(0, 20 * MIB);
        extents.add_segment(20 * MIB, 2 * MIB);
        extents
    }

    #[test]
    fn a_small_rest_stays_with_its_block() {
        let mut extents = extents();
        let stays = |rest| rest <= MIB;
        assert_eq!(extents.take(0, 10 * MIB, stays), Some(10 * MIB));
        assert_eq!(
            extents.take(10 * MIB, 10 * MIB - 512, stays),
            Some(10 * MIB)
        );
        assert_eq!(extents.take(5 * MIB, 512, stays), None);
    }

    #[test]
    fn what_is_free_joins_inside_its_segment() {
        let mut extents = extents();
        let never = |_| false;
        for (address, size) in [(0, 8), (8, 4), (12, 8), (20, 2)] {
            extents.take(address * MIB, size * MIB, never);
        }
        for address in [0, 12, 20, 8] {
            extents.give_back(address * MIB);
        }
        assert_eq!(
            extents.free,
            BTreeMap::from([(0, 20 * MIB), (20 * MIB, 2 * MIB)])
        );
    }
}
