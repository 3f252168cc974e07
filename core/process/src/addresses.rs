//! Sets of addresses.
//!
//! ```
//! use gpumem_process::addresses::AddressRanges;
//!
//! let mut kept: AddressRanges = [0..4096, 8192..12288].into_iter().collect();
//! kept.insert(&(4096..8192));
//! assert_eq!(kept.as_slice(), [0..12288]);
//! ```

use std::ops::Range;

/// Addresses as ranges, in order, of which no two overlap or touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRanges(Vec<Range<usize>>);

impl AddressRanges {
    /// No address.
    pub const EMPTY: Self = Self(Vec::new());

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Range<usize>> {
        self.0.iter()
    }

    /// The ranges, in order.
    pub fn as_slice(&self) -> &[Range<usize>] {
        &self.0
    }

    /// There is no address in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a range.
    pub fn insert(&mut self, range: &Range<usize>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|it| it.end < range.start);
        let after = self.0.partition_point(|it| it.start <= range.end);
        let touching = &self.0[first..after];
        let start = touching.first().map_or(range.start, |it| it.start);
        let end = touching.last().map_or(range.end, |it| it.end);
        let joined = start.min(range.start)..end.max(range.end);
        self.0.splice(first..after, [joined]);
    }

    /// Takes out the range around an address.
    pub fn remove_at(&mut self, address: usize) -> Option<Range<usize>> {
        let position = self.0.iter().position(|it| it.contains(&address))?;
        Some(self.0.remove(position))
    }

    /// Takes out every range that has addresses in common with `range`.
    pub fn remove_overlapping(&mut self, range: &Range<usize>) {
        self.retain(|it| it.end <= range.start || it.start >= range.end);
    }

    /// Takes out the ranges in which this set itself lies, and allocates nothing.
    pub fn remove_itself(&mut self) {
        let own = self.0.as_ptr_range();
        self.remove_overlapping(&(own.start.addr()..own.end.addr()));
    }

    /// Keeps some of the ranges, and allocates nothing.
    pub fn retain(&mut self, is_kept: impl FnMut(&Range<usize>) -> bool) {
        self.0.retain(is_kept);
    }

    /// Takes out `range`, and leaves what lies before and behind it.
    pub fn cut(&mut self, range: &Range<usize>) {
        let parts = self.0.iter().flat_map(|it| {
            let before = it.start..it.end.min(range.start);
            let behind = it.start.max(range.end)..it.end;
            [before, behind]
        });
        self.0 = parts.filter(|part| !part.is_empty()).collect();
    }

    /// The parts of `range` that are in this set.
    pub fn parts_in(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let first = self.0.partition_point(|it| it.end <= range.start);
        let rest = self.0[first..].iter().take_while(|it| it.start < range.end);
        rest.map(|it| it.start.max(range.start)..it.end.min(range.end))
            .collect()
    }

    /// The parts of `range` that are not in this set.
    pub fn gaps_in(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut start = range.start;
        for taken in &self.0 {
            if taken.start >= range.end {
                break;
            }
            if taken.start > start {
                gaps.push(start..taken.start);
            }
            start = start.max(taken.end);
        }
        if start < range.end {
            gaps.push(start..range.end);
        }
        gaps
    }

    /// Keeps the `n` longest ranges.
    pub fn keep_largest(&mut self, n: usize) {
        if self.0.len() > n {
            self.0
                .sort_unstable_by_key(|it| std::cmp::Reverse(it.len()));
            self.0.truncate(n);
            self.0.sort_unstable_by_key(|it| it.start);
        }
    }
}

impl FromIterator<Range<usize>> for AddressRanges {
    fn from_iter<I: IntoIterator<Item = Range<usize>>>(ranges: I) -> Self {
        let mut set = Self::default();
        for range in ranges {
            // Most come in order.
            match set.0.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                Some(last) if last.end > range.start => set.insert(&range),
                _ if range.is_empty() => {}
                _ => set.0.push(range),
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(bounds: &[(usize, usize)]) -> AddressRanges {
        bounds.iter().map(|(start, end)| *start..*end).collect()
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let one = |bounds: &[(usize, usize)]| assert_eq!(set(bounds), set(&[(1, 9)]));
        one(&[(1, 4), (4, 9)]);
        one(&[(4, 9), (1, 4)]);
        one(&[(1, 3), (6, 9), (2, 7)]);
        one(&[(2, 3), (5, 6), (1, 9), (4, 4)]);
    }

    #[test]
    fn what_lies_between() {
        let gaps = |range: Range<usize>| {
            let gaps: AddressRanges = set(&[(2, 4), (6, 8)]).gaps_in(&range).into_iter().collect();
            gaps
        };
        assert_eq!(gaps(0..10), set(&[(0, 2), (4, 6), (8, 10)]));
        assert_eq!(gaps(3..7), set(&[(4, 6)]));
        assert_eq!(gaps(2..4), set(&[]));
        assert_eq!(gaps(9..10), set(&[(9, 10)]));
    }

    #[test]
    fn what_lies_within() {
        let parts = |range: Range<usize>| {
            let parts: AddressRanges = set(&[(2, 4), (6, 8)])
                .parts_in(&range)
                .into_iter()
                .collect();
            parts
        };
        assert_eq!(parts(0..10), set(&[(2, 4), (6, 8)]));
        assert_eq!(parts(3..7), set(&[(3, 4), (6, 7)]));
        assert_eq!(parts(4..6), set(&[]));
    }

    #[test]
    fn ranges_are_removed_whole() {
        let mut ranges = set(&[(2, 4), (6, 8), (9, 12)]);
        assert_eq!(ranges.remove_at(8), None);
        assert_eq!(ranges.remove_at(7), Some(6..8));
        ranges.remove_overlapping(&(3..9));
        assert_eq!(ranges, set(&[(9, 12)]));
    }

    #[test]
    fn what_is_cut_out_leaves_the_rest() {
        let mut ranges = set(&[(2, 4), (6, 12)]);
        ranges.cut(&(3..8));
        assert_eq!(ranges, set(&[(2, 3), (8, 12)]));
        ranges.cut(&(9..10));
        assert_eq!(ranges, set(&[(2, 3), (8, 9), (10, 12)]));
    }

    #[test]
    fn the_largest_stay_in_order() {
        let mut ranges = set(&[(0, 3), (4, 5), (6, 9)]);
        ranges.keep_largest(2);
        assert_eq!(ranges, set(&[(0, 3), (6, 9)]));
    }

    #[test]
    fn a_set_can_be_read_without_the_ranges_in_it() {
        let mut set: AddressRanges = [0..1, 2..3, 4..usize::MAX].into_iter().collect();
        set.remove_itself();
        assert_eq!(set.as_slice(), [0..1, 2..3]);
    }
}
