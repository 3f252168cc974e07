//! A bounded series of points that never loses an extreme.
//!
//! The sampler and the user's marks add points for as long as a run goes on.
//! A full series is downsampled to half its limit: cut into buckets of equal width,
//! it keeps of each bucket, per metric, the lowest and the highest point, and of
//! the whole its first and its last. An extreme of a bucket is kept, so downsampling
//! again loses none either.
//!
//! ```
//! use gpumem_model::recording::Sample;
//! use gpumem_model::downsample::{Downsampler, Spacing};
//! use gpumem_model::units::{Bytes, Nanos};
//!
//! let mut series = Downsampler::new(64, Spacing::Time);
//! for ms in 0..10_000 {
//!     let spike = if ms == 1_234 { Bytes::gib(3) } else { Bytes::ZERO };
//!     series.push(Sample { at: Nanos::millis(ms), device_used: Some(spike), ..Sample::default() });
//! }
//! assert!(series.points().len() <= 64);
//! let highest = series.points().iter().max_by_key(|point| point.device_used).unwrap();
//! assert_eq!((highest.ordinal, highest.device_used), (1_234, Some(Bytes::gib(3))));
//! ```

use serde::{Deserialize, Serialize};

use crate::extremes::Extremes;
use crate::recording::{Sample, Series};
use crate::units::{Bytes, Nanos};

/// The smallest limit: one bucket with two extremes per metric, twice, and both ends.
const SMALLEST_LIMIT: usize = 2 * (2 * Sample::METRICS.len() + 2);

/// A point of a series that can be downsampled.
pub trait SeriesPoint: Sized + 'static {
    /// Of each of these levels, the extremes are kept.
    const METRICS: &[fn(&Self) -> Option<Bytes>];

    /// Where the point is in its series.
    fn position(&self, spacing: Spacing) -> u64;
}

impl SeriesPoint for Sample {
    const METRICS: &[fn(&Self) -> Option<Bytes>] = &[
        |sample| sample.allocated,
        |sample| sample.reserved,
        |sample| sample.device_used,
        |sample| sample.process_used,
    ];

    fn position(&self, spacing: Spacing) -> u64 {
        match spacing {
            Spacing::Time => self.at.get(),
            Spacing::Ordinal => self.ordinal,
        }
    }
}

/// What the buckets of a series are cut by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Equal spans of time: for points that a clock triggered.
    Time,
    /// Equal numbers of points as they came: for the steps of a loop.
    Ordinal,
}

impl Spacing {
    /// What fits a series.
    pub fn for_series(series: &Series) -> Self {
        match series {
            Series::Sampled => Self::Time,
            Series::Marked(_) | Series::Loop(_) => Self::Ordinal,
        }
    }
}

/// Points of one series in time order, at most as many as its limit.
#[derive(Debug, Clone)]
pub struct Downsampler {
    limit: usize,
    spacing: Spacing,
    points: Vec<Sample>,
    n_pushed: u64,
}

impl Downsampler {
    /// An empty series of at most `limit` points (at least 20).
    pub fn new(limit: usize, spacing: Spacing) -> Self {
        Self {
            limit: limit.max(SMALLEST_LIMIT),
            spacing,
            points: Vec::new(),
            n_pushed: 0,
        }
    }

    /// The next point's ordinal is `first`, and not 0.
    #[must_use]
    pub fn counting_from(self, first: u64) -> Self {
        Self {
            n_pushed: first,
            ..self
        }
    }

    /// Adds the next point, which gets its ordinal here. True if the series was downsampled for it:
    /// whoever takes points by a clock may then do so half as often.
    pub fn push(&mut self, point: Sample) -> bool {
        let is_full = self.points.len() == self.limit;
        if is_full {
            downsample(&mut self.points, self.limit / 2, self.spacing);
        }
        self.points.push(Sample {
            ordinal: self.n_pushed,
            ..point
        });
        self.n_pushed += 1;
        is_full
    }

    /// Adds a point with its own ordinal, which is above the last one's: not every step was read.
    pub fn push_at(&mut self, ordinal: u64, point: Sample) -> bool {
        self.n_pushed = self.n_pushed.max(ordinal);
        self.push(point)
    }

    /// The points that are left, in the order in which they came.
    pub fn points(&self) -> &[Sample] {
        &self.points
    }

    /// The points that are left, in the order in which they came.
    pub fn into_points(mut self) -> Vec<Sample> {
        self.points.shrink_to_fit();
        self.points
    }
}

/// At most `limit` (at least 10) of these points, with their ends and every metric's extremes.
pub fn downsampled<P: SeriesPoint>(mut points: Vec<P>, limit: usize, spacing: Spacing) -> Vec<P> {
    let limit = limit.max(2 * P::METRICS.len() + 2);
    if points.len() > limit {
        downsample(&mut points, limit, spacing);
        points.shrink_to_fit();
    }
    points
}

/// A level at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, Bytes)", into = "(Nanos, Bytes)")]
pub struct LevelPoint {
    /// When.
    pub at: Nanos,
    /// How much.
    pub level: Bytes,
}

impl SeriesPoint for LevelPoint {
    const METRICS: &[fn(&Self) -> Option<Bytes>] = &[|point| Some(point.level)];

    /// They have no ordinals.
    fn position(&self, _: Spacing) -> u64 {
        self.at.get()
    }
}

impl From<(Nanos, Bytes)> for LevelPoint {
    fn from((at, level): (Nanos, Bytes)) -> Self {
        Self { at, level }
    }
}

impl From<LevelPoint> for (Nanos, Bytes) {
    fn from(point: LevelPoint) -> Self {
        (point.at, point.level)
    }
}

/// More points than these a small chart does not show.
pub const MAX_LEVELS: usize = 128;

/// At most [`MAX_LEVELS`] of these points, in time order, with their ends and extremes.
pub fn few_levels(mut points: Vec<LevelPoint>) -> Vec<LevelPoint> {
    points.sort_by_key(|point| point.at);
    downsampled(points, MAX_LEVELS, Spacing::Time)
}

/// Keeps at most `target` points, with as many buckets as that allows.
fn downsample<P: SeriesPoint>(points: &mut Vec<P>, target: usize, spacing: Spacing) {
    let mut n_buckets = target;
    let mut is_kept = kept(points, n_buckets, spacing);
    while n_buckets > 1 && is_kept.iter().filter(|is_kept| **is_kept).count() > target {
        n_buckets /= 2;
        is_kept = kept(points, n_buckets, spacing);
    }
    let mut is_kept = is_kept.into_iter();
    points.retain(|_| is_kept.next().unwrap_or(true));
}

/// Which points are kept: the ends, and each bucket's extremes per metric.
fn kept<P: SeriesPoint>(points: &[P], n_buckets: usize, spacing: Spacing) -> Vec<bool> {
    let mut is_kept = vec![false; points.len()];
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return is_kept;
    };
    let start = first.position(spacing);
    let span = u128::from(last.position(spacing).saturating_sub(start)) + 1;
    let bucket = |point: &P| {
        let way = u128::from(point.position(spacing).saturating_sub(start));
        way * n_buckets as u128 / span
    };
    let mut from_idx = 0;
    for points in points.chunk_by(|a, b| bucket(a) == bucket(b)) {
        for metric in P::METRICS {
            let known = points.iter().zip(from_idx..);
            let known = known.filter_map(|(point, idx)| Some((metric(point)?, idx)));
            for idx in Extremes::from_points(known)
                .iter()
                .flat_map(Extremes::places)
            {
                is_kept[idx] = true;
            }
        }
        from_idx += points.len();
    }
    is_kept[0] = true;
    is_kept[points.len() - 1] = true;
    is_kept
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn point(at: u64, levels: [Option<u64>; 4]) -> Sample {
        let [allocated, reserved, device_used, process_used] = levels.map(|n| n.map(Bytes::new));
        Sample {
            at: Nanos::new(at),
            ordinal: 0,
            allocated,
            reserved,
            device_used,
            process_used,
        }
    }

    fn pushed(limit: usize, spacing: Spacing, points: &[Sample]) -> (Downsampler, Vec<Sample>) {
        let mut series = Downsampler::new(limit, spacing);
        for point in points {
            series.push(*point);
        }
        let all = (0..)
            .zip(points)
            .map(|(ordinal, p)| Sample { ordinal, ..*p });
        (series, all.collect())
    }

    /// A series in time order, whose metrics are known here and there.
    fn series() -> impl Strategy<Value = Vec<Sample>> {
        let levels = [
            option::of(0..9_u64),
            option::of(0..1_u64 << 40),
            option::of(0..2_u64),
            option::of(0..u64::MAX),
        ];
        vec((0..1_000_000_u64, levels), 1..250).prop_map(|steps| {
            let mut at = 0;
            let timed = steps.into_iter().map(|(step, levels)| {
                at += step;
                point(at, levels)
            });
            timed.collect()
        })
    }

    #[test]
    fn a_finished_series_is_downsampled_to_its_ends_and_extremes() {
        let levels = [3, 4, 9, 4, 5, 0, 5, 6, 5, 5, 5, 5];
        let points: Vec<Sample> = (0..)
            .zip(levels)
            .map(|(at, level)| point(at, [Some(level), None, None, None]))
            .collect();
        let check = |limit: usize, expected: &[u64]| {
            let left = downsampled(points.clone(), limit, Spacing::Time);
            let left: Vec<u64> = left.iter().map(|point| point.at.get()).collect();
            assert_eq!(left, expected);
        };
        check(12, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        check(1, &[0, 2, 3, 4, 5, 7, 8, 9, 10, 11]);
    }

    #[track_caller]
    fn check(n_pushed: u64, limit: usize, n_left: usize) {
        let points: Vec<_> = (0..n_pushed)
            .map(|n| point(n, [Some(n), None, None, None]))
            .collect();
        let (series, _) = pushed(limit, Spacing::Time, &points);
        assert_eq!(series.points().len(), n_left);
    }

    #[test]
    fn a_series_is_whole_up_to_its_limit_and_halved_beyond() {
        check(0, 64, 0);
        check(64, 64, 64);
        check(65, 64, 33);
        check(96, 64, 64);
        check(21, 1, 11);
    }

    #[test]
    fn a_push_says_if_the_series_was_downsampled_for_it() {
        let mut series = Downsampler::new(20, Spacing::Ordinal);
        let downsampled: Vec<bool> = (0..21)
            .map(|n| series.push(point(n, [Some(n), None, None, None])))
            .collect();
        assert_eq!(downsampled.iter().position(|it| *it), Some(20));
    }

    #[test]
    fn steps_are_kept_evenly_however_long_they_took() {
        let points: Vec<_> = (0..4_096_u64)
            .map(|n| point(n * n * n, [Some(n), None, None, None]))
            .collect();
        let (series, _) = pushed(64, Spacing::Ordinal, &points);
        let early = |point: &&Sample| point.ordinal < 2_048;
        let n_early = series.points().iter().filter(early).count();
        assert!((12..=52).contains(&n_early), "{n_early} of the first half");
    }

    #[test]
    fn few_levels_keep_their_extremes() {
        let point = |n| LevelPoint {
            at: Nanos::millis(n),
            level: Bytes::mib(n % 777),
        };
        let few = few_levels((0..10_000).map(point).collect());
        assert!(few.len() <= MAX_LEVELS, "{} points", few.len());
        let highest = few.iter().map(|point| point.level).max();
        assert_eq!(highest, Some(Bytes::mib(776)));
    }

    proptest! {
        #[test]
        fn extremes_and_ends_survive_and_the_limit_holds(
            points in series(),
            limit in 0..80_usize,
            by_time in any::<bool>(),
        ) {
            let spacing = if by_time { Spacing::Time } else { Spacing::Ordinal };
            let (series, all) = pushed(limit, spacing, &points);
            let left = series.points();
            prop_assert!(left.len() <= limit.max(SMALLEST_LIMIT));
            prop_assert_eq!(left.first(), all.first());
            prop_assert_eq!(left.last(), all.last());
            for metric in Sample::METRICS {
                prop_assert_eq!(
                    left.iter().filter_map(metric).min(),
                    all.iter().filter_map(metric).min()
                );
                prop_assert_eq!(
                    left.iter().filter_map(metric).max(),
                    all.iter().filter_map(metric).max()
                );
            }
        }

        #[test]
        fn what_is_left_is_in_order_and_was_there(points in series(), limit in 0..80_usize) {
            let (series, all) = pushed(limit, Spacing::Time, &points);
            let left = series.points();
            prop_assert!(left.windows(2).all(|pair| pair[0].ordinal < pair[1].ordinal));
            prop_assert!(left.iter().all(|point| all.contains(point)));
        }
    }
}
