//! A level over time: its ends, its extremes, its shape.

use super::WallTime;
use gpumem_analyzer::{GrowthVerdict, classify_growth};
use gpumem_model::extremes::Extremes;
use gpumem_model::named;
use gpumem_model::rules::Rules;
use gpumem_model::units::{Bytes, Nanos};

/// Readings go into at most this many buckets of equal size; the lowest and the highest of each are kept.
const N_BUCKETS: u64 = 256;

/// Smaller changes do not count: contexts and displays take and return this much.
const SMALL: Bytes = Bytes::mib(16);

/// Fewer readings only rise or fall.
const N_FOR_TREND: usize = 8;

/// A reading that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPoint {
    /// Which reading of its series, counted from 0.
    pub ordinal: u64,
    /// When it was read, if logged: nanoseconds since 1970 by the log's own clock.
    pub at: Option<WallTime>,
    /// The level.
    pub level: Bytes,
}

/// The readings of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSeries {
    /// Number of readings.
    pub n_readings: u64,
    /// The first level.
    pub first: Bytes,
    /// The last level.
    pub last: Bytes,
    /// The lowest level.
    pub lowest: Bytes,
    /// The highest level.
    pub peak: Bytes,
    /// The first reading with the highest level, counted from 0.
    pub peak_ordinal: u64,
    /// When it was read, if logged.
    pub peak_at: Option<WallTime>,
    /// When the first level was read.
    pub first_at: Option<WallTime>,
    /// When the last level was read.
    pub last_at: Option<WallTime>,
    points: Vec<LogPoint>,
    /// Readings in a bucket.
    bucket: u64,
}

named! {
    /// The shape of a level over a log.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LogShape {
        /// One reading, or the same level all the time.
        Flat = "flat",
        /// Each quarter's lowest level is above the previous quarter's.
        RoseThroughout = "rose_throughout",
        /// It rose, and stayed there in the second half.
        RoseAndStayed = "rose_and_stayed",
        /// It ended higher than it began.
        Rose = "rose",
        /// It rose, and ended where it began.
        FellBack = "fell_back",
        /// It ended lower than it began.
        Fell = "fell",
    }
}

impl LogSeries {
    pub(crate) fn new(level: Bytes, at: Option<WallTime>) -> Self {
        let point = LogPoint {
            ordinal: 0,
            at,
            level,
        };
        Self {
            n_readings: 1,
            first: level,
            last: level,
            lowest: level,
            peak: level,
            peak_ordinal: 0,
            peak_at: at,
            first_at: at,
            last_at: at,
            points: vec![point],
            bucket: 1,
        }
    }

    pub(crate) fn push(&mut self, level: Bytes, at: Option<WallTime>) {
        let ordinal = self.n_readings;
        self.n_readings += 1;
        self.last = level;
        self.last_at = at;
        self.lowest = self.lowest.min(level);
        if level > self.peak {
            (self.peak, self.peak_ordinal, self.peak_at) = (level, ordinal, at);
        }
        if ordinal / self.bucket >= N_BUCKETS {
            self.bucket *= 2;
            let points = std::mem::take(&mut self.points);
            let bucket = self.bucket;
            let is_same = |a: &LogPoint, b: &LogPoint| a.ordinal / bucket == b.ordinal / bucket;
            for group in points.chunk_by(is_same) {
                self.points.extend(extremes(group).into_iter().flatten());
            }
        }
        self.points.push(LogPoint { ordinal, at, level });
        let in_bucket = |point: &LogPoint| point.ordinal / self.bucket == ordinal / self.bucket;
        let n_before = self
            .points
            .iter()
            .rev()
            .take_while(|point| in_bucket(point))
            .count();
        let begins = self.points.len() - n_before;
        let extremes = extremes(self.points.get(begins..).unwrap_or_default());
        self.points.truncate(begins);
        self.points.extend(extremes.into_iter().flatten());
    }

    /// Readings in order, at most 512: no extreme is left out.
    pub fn points(&self) -> &[LogPoint] {
        &self.points
    }

    /// From the first reading to the last.
    pub fn duration(&self) -> Option<Nanos> {
        Some(self.last_at?.since(self.first_at?))
    }

    /// Smaller changes do not count: 16 MiB, or 1 % of the capacity (or of the peak, if the capacity is unknown) if
    /// that is more.
    pub fn least_change(&self, capacity: Option<Bytes>) -> Bytes {
        SMALL.max(Bytes::new(capacity.unwrap_or(self.peak).get() / 100))
    }

    /// Its shape. Changes below [`LogSeries::least_change`] do not count, unless they add up to a steady rise that
    /// stands out from the readings' scatter.
    pub fn shape(&self, capacity: Option<Bytes>) -> LogShape {
        let small = self.least_change(capacity);
        let above = |high: Bytes, low: Bytes| high.saturating_sub(low) >= small;
        let lows = self.quarter_lows();
        if !above(self.last, self.first) && self.rises_slowly(&lows) {
            return LogShape::RoseThroughout;
        }
        if !above(self.peak, self.lowest) {
            return LogShape::Flat;
        }
        if above(self.first, self.last) {
            return LogShape::Fell;
        }
        if !above(self.last, self.first) {
            let fell_back = above(self.peak, self.last.max(self.first));
            return if fell_back {
                LogShape::FellBack
            } else {
                LogShape::Fell
            };
        }
        let rises = lows.windows(2).all(|pair| pair[0] < pair[1]);
        if let Some([first, .., last]) = lows.get(..).filter(|_| lows.len() == 4) {
            let a_part = Bytes::new(last.saturating_sub(*first).get() / 10);
            let is_steady = lows
                .windows(2)
                .all(|pair| pair[1].saturating_sub(pair[0]) >= a_part);
            if rises && is_steady && above(*last, *first) {
                return LogShape::RoseThroughout;
            }
            let late = lows[2].min(lows[3]);
            if !above(self.peak, late) {
                return LogShape::RoseAndStayed;
            }
        }
        LogShape::Rose
    }

    /// Whether its floor keeps rising by at least 16 MiB, with the certainty that the rules for runs require.
    fn rises_slowly(&self, lows: &[Bytes]) -> bool {
        let is_rise = lows.len() == 4 && lows.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_rise || self.last.saturating_sub(self.first) < SMALL {
            return false;
        }
        let is_same =
            |a: &LogPoint, b: &LogPoint| a.ordinal / self.bucket == b.ordinal / self.bucket;
        let floors = self.points.chunk_by(is_same);
        let floors = floors.filter_map(|of_bucket| of_bucket.iter().map(|it| it.level).min());
        let levels: Vec<Bytes> = floors.collect();
        classify_growth(&levels, SMALL, &Rules::default()).state == GrowthVerdict::Leak
    }

    /// The lowest level of each quarter of the readings; nothing if there are too few.
    fn quarter_lows(&self) -> Vec<Bytes> {
        if self.n_readings < N_FOR_TREND as u64 {
            return Vec::new();
        }
        let quarter = |point: &LogPoint| point.ordinal.saturating_mul(4) / self.n_readings;
        let of_quarter = |wanted: u64| {
            let points = self.points.iter().filter(move |it| quarter(it) == wanted);
            points.map(|point| point.level).min()
        };
        (0..4).filter_map(of_quarter).collect()
    }
}

/// The lowest and the highest of some points, in their order; one of them if they are the same.
fn extremes(points: &[LogPoint]) -> [Option<LogPoint>; 2] {
    let extremes = Extremes::from_points(points.iter().map(|point| (point.level, *point)));
    extremes.map_or([None, None], |it| it.in_order(|point| point.ordinal))
}
