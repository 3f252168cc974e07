//! Points of a series in memory: one column per figure.
//!
//! A long session is mostly points, and readers want one figure of many points, seldom all figures of
//! one. So each figure has a column, and a figure that is never known has an empty one.

use std::ops::Range;

use super::{MAX_FRAME, Sample};
use crate::units::{Bytes, Nanos};

/// A frame has room for this many points: each of their six figures takes at most nine bytes.
const MAX_POINTS: usize = MAX_FRAME / 64;

/// Points of one series, in time order.
#[derive(Debug, Clone, Default)]
pub struct Points {
    at: Vec<Nanos>,
    ordinals: Ordinals,
    /// Allocated, reserved, device used, process used.
    levels: [Column; 4],
}

impl Points {
    /// No points yet.
    pub const fn new() -> Self {
        Self {
            at: Vec::new(),
            ordinals: Ordinals::new(),
            levels: [const { Column::new() }; 4],
        }
    }

    /// Columns of equal length, or empty where nothing is known: allocated, reserved,
    /// device used, process used.
    pub fn of_columns(at: Vec<Nanos>, ordinals: Vec<u64>, levels: [Column; 4]) -> Self {
        Self {
            at,
            ordinals: Ordinals::from_list(ordinals),
            levels,
        }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The instant of each point, since the recording's start.
    pub fn at(&self) -> &[Nanos] {
        &self.at
    }

    /// Which one of its series each of them is.
    pub fn ordinals(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|idx| self.ordinals.get(idx))
    }

    /// Allocated, summed over the device's allocators.
    pub fn allocated(&self) -> &Column {
        &self.levels[0]
    }

    /// Reserved, summed over the device's allocators.
    pub fn reserved(&self) -> &Column {
        &self.levels[1]
    }

    /// Used by all processes together.
    pub fn device_used(&self) -> &Column {
        &self.levels[2]
    }

    /// Used by this process.
    pub fn process_used(&self) -> &Column {
        &self.levels[3]
    }

    /// All levels: allocated, reserved, device used, process used.
    pub fn levels(&self) -> [&Column; 4] {
        self.levels.each_ref()
    }

    /// The range of points between two instants, both included.
    pub fn between(&self, from: Nanos, to: Nanos) -> Range<usize> {
        // Most series are looked at from end to end.
        let (first, last) = (self.at.first().copied(), self.at.last().copied());
        let start = match first {
            Some(first) if first < from => self.at.partition_point(|at| *at < from),
            _ => 0,
        };
        let end = match last {
            Some(last) if last > to => self.at.partition_point(|at| *at <= to),
            _ => self.len(),
        };
        start..end.max(start)
    }

    /// The point at that position.
    pub fn get(&self, idx: usize) -> Option<Sample> {
        let [allocated, reserved, device_used, process_used] = self.levels().map(|it| it.get(idx));
        Some(Sample {
            at: *self.at.get(idx)?,
            ordinal: self.ordinals.get(idx),
            allocated,
            reserved,
            device_used,
            process_used,
        })
    }

    /// The first point.
    pub fn first(&self) -> Option<Sample> {
        self.get(0)
    }

    /// The last point.
    pub fn last(&self) -> Option<Sample> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The points at these positions.
    pub(super) fn picked(&self, places: &[usize]) -> Self {
        let picked = |column: &Column| match &*column.0 {
            [] => Column::new(),
            levels => Column(places.iter().map(|idx| levels[*idx]).collect()),
        };
        Self {
            at: places.iter().map(|idx| self.at[*idx]).collect(),
            ordinals: Ordinals::from_list(
                places.iter().map(|idx| self.ordinals.get(*idx)).collect(),
            ),
            levels: self.levels().map(picked),
        }
    }

    /// The points in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Sample> {
        (0..self.len()).filter_map(|idx| self.get(idx))
    }

    /// The points in parts that each fit a frame. Each part begins later than the one before it, so
    /// none replaces another.
    pub(super) fn parts(&self) -> impl Iterator<Item = Self> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let mut to = (from + MAX_POINTS).min(self.len());
            while to > from && to < self.len() && self.at[to] == self.at[to - 1] {
                to -= 1;
            }
            if to == from {
                // All are of one instant: then they stay together.
                to = self.len();
            }
            let is_all = (from, to) == (0, self.len());
            let part = (from < to).then(|| {
                if is_all {
                    self.clone()
                } else {
                    self.picked(&(from..to).collect::<Vec<_>>())
                }
            });
            from = to;
            part
        })
    }

    /// Adds a point that is not earlier than the others.
    pub fn push(&mut self, point: Sample) {
        let n_before = self.len();
        self.at.push(point.at);
        self.ordinals.push(n_before, point.ordinal);
        let levels = [
            point.allocated,
            point.reserved,
            point.device_used,
            point.process_used,
        ];
        for (column, level) in self.levels.iter_mut().zip(levels) {
            column.push(n_before, level);
        }
    }

    /// Keeps the first `n` points.
    pub(super) fn truncate(&mut self, n: usize) {
        self.at.truncate(n);
        self.ordinals.listed.truncate(n);
        for column in &mut self.levels {
            column.0.truncate(n);
        }
    }
}

/// A column of unknown levels equals an empty one.
impl PartialEq for Points {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Points {}

impl FromIterator<Sample> for Points {
    fn from_iter<I: IntoIterator<Item = Sample>>(samples: I) -> Self {
        let mut points = Self::new();
        points.extend(samples);
        points
    }
}

impl Extend<Sample> for Points {
    fn extend<I: IntoIterator<Item = Sample>>(&mut self, samples: I) {
        samples.into_iter().for_each(|sample| self.push(sample));
    }
}

impl From<Vec<Sample>> for Points {
    fn from(samples: Vec<Sample>) -> Self {
        samples.into_iter().collect()
    }
}

/// The ordinal of each point. A series that was not downsampled counts up from the first, so only that
/// is kept.
#[derive(Debug, Clone, Default)]
struct Ordinals {
    first: u64,
    /// All ordinals, if they do not count up one by one.
    listed: Vec<u64>,
}

impl Ordinals {
    const fn new() -> Self {
        Self {
            first: 0,
            listed: Vec::new(),
        }
    }

    fn from_list(listed: Vec<u64>) -> Self {
        let first = listed.first().copied().unwrap_or_default();
        let mut each = listed.iter().enumerate();
        if each.all(|(idx, ordinal)| Self::follows(first, idx, *ordinal)) {
            Self {
                first,
                listed: Vec::new(),
            }
        } else {
            Self { first, listed }
        }
    }

    fn follows(first: u64, n_before: usize, ordinal: u64) -> bool {
        first.checked_add(n_before as u64) == Some(ordinal)
    }

    fn get(&self, idx: usize) -> u64 {
        let listed = self.listed.get(idx).copied();
        listed.unwrap_or_else(|| self.first + idx as u64)
    }

    fn push(&mut self, n_before: usize, ordinal: u64) {
        if n_before == 0 {
            *self = Self {
                first: ordinal,
                listed: Vec::new(),
            };
        } else if !self.listed.is_empty() {
            self.listed.push(ordinal);
        } else if !Self::follows(self.first, n_before, ordinal) {
            self.listed = (0..n_before).map(|idx| self.get(idx)).collect();
            self.listed.push(ordinal);
        }
    }
}

/// One level of each point; empty if it is known of none.
#[derive(Debug, Clone, Default)]
pub struct Column(Vec<u64>);

impl Column {
    /// Stands for an unknown level; no device has this many bytes.
    pub const UNKNOWN: u64 = u64::MAX;

    const fn new() -> Self {
        Self(Vec::new())
    }

    /// Levels in bytes, or [`Self::UNKNOWN`].
    pub const fn of_levels(levels: Vec<u64>) -> Self {
        Self(levels)
    }

    /// In bytes, or [`Self::UNKNOWN`].
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The level of the point at that position, if it is known.
    pub fn get(&self, idx: usize) -> Option<Bytes> {
        let level = *self.0.get(idx)?;
        (level != Self::UNKNOWN).then_some(Bytes::new(level))
    }

    /// The highest known level of these points.
    pub fn highest(&self, range: Range<usize>) -> Option<Bytes> {
        let levels = self.0.get(range)?.iter().copied();
        let known = levels.filter(|level| *level != Self::UNKNOWN);
        known.max().map(Bytes::new)
    }

    fn push(&mut self, n_before: usize, level: Option<Bytes>) {
        if let Some(level) = level {
            self.0.resize(n_before, Self::UNKNOWN);
            self.0.push(level.get());
        } else if !self.0.is_empty() {
            self.0.push(Self::UNKNOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, allocated: Option<u64>) -> Sample {
        Sample {
            at: Nanos::new(at),
            allocated: allocated.map(Bytes::new),
            ..Sample::default()
        }
    }

    /// A point a nanosecond: what is put in comes out, and so does the highest of it.
    #[track_caller]
    fn check(levels: &[Option<u64>], highest: Option<u64>) {
        let samples = (0..).zip(levels).map(|(at, level)| sample(at, *level));
        let points: Points = samples.clone().collect();
        assert!(points.iter().eq(samples));
        let found = points.allocated().highest(0..points.len());
        assert_eq!(found, highest.map(Bytes::new));
    }

    /// What is put in comes out, however it is put in.
    #[track_caller]
    fn check_ordinals(ordinals: &[u64]) {
        let samples = ordinals.iter().map(|ordinal| Sample {
            ordinal: *ordinal,
            ..Sample::default()
        });
        let pushed: Points = samples.collect();
        let at = vec![Nanos::ZERO; ordinals.len()];
        let read = Points::of_columns(at, ordinals.to_vec(), Default::default());
        assert!(pushed.ordinals().eq(ordinals.iter().copied()));
        assert!(read.ordinals().eq(ordinals.iter().copied()));
    }

    #[test]
    fn which_ones_of_their_series_points_are_is_kept() {
        check_ordinals(&[]);
        check_ordinals(&[7, 8, 9]);
        check_ordinals(&[0, 1, 3, 4]);
        check_ordinals(&[u64::MAX, u64::MAX]);
    }

    #[test]
    fn a_level_may_be_unknown_anywhere() {
        check(&[], None);
        check(&[None, None], None);
        check(&[None, Some(0), None, Some(7), None], Some(7));
    }

    #[test]
    fn what_is_known_no_more_is_as_if_it_never_was() {
        let mut points: Points = [sample(0, None), sample(1, Some(7))].into_iter().collect();
        points.truncate(1);
        assert_eq!(points, [sample(0, None)].into_iter().collect());
        points.push(sample(1, None));
        assert_eq!(points.last(), Some(sample(1, None)));
    }

    #[test]
    fn both_ends_of_a_time_are_in_it() {
        let points: Points = (0..10).map(|at| sample(10 * at, None)).collect();
        let between = |from, to| points.between(Nanos::new(from), Nanos::new(to));
        assert_eq!(between(0, 1000), 0..10);
        assert_eq!(between(20, 40), 2..5);
        assert_eq!(between(21, 29), 3..3);
        assert_eq!(between(91, 99), 10..10);
    }
}
