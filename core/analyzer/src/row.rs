//! One row per (run, device): the levels of a device around a run.

use gpumem_model::named;
use gpumem_model::recording::{Column, DeviceIdx, Points, RunIdx, Sample};
use gpumem_model::units::{ByteDelta, Bytes};

named! {
    /// The level of a device that growth is judged on: the first one known.
    /// `wording::metric` has its words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Metric {
        /// Bytes in blocks held by tensors, summed over the allocators.
        Allocated = "allocated",
        /// The driver's figure for this process.
        ProcessUsed = "process_used",
        /// The driver's figure for all processes.
        DeviceUsed = "device_used",
    }
}

/// The highest level of a metric in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peak {
    /// The allocator's peak counter rose in the run, above the peak before it; or the bounds meet.
    Exact(Bytes),
    /// Between the highest level seen and what the allocator's counters allow.
    Between {
        /// Highest level seen.
        low: Bytes,
        /// The old peak, or less if the run allocated less than would reach it.
        high: Bytes,
    },
    /// The highest level seen; nothing bounds it from above.
    AtLeast(Bytes),
}

impl Peak {
    /// The highest level that is certain.
    pub const fn low(self) -> Bytes {
        match self {
            Self::Exact(bytes) | Self::AtLeast(bytes) => bytes,
            Self::Between { low, .. } => low,
        }
    }

    /// What it is at most, if anything bounds it.
    pub const fn high(self) -> Option<Bytes> {
        match self {
            Self::Exact(high) | Self::Between { high, .. } => Some(high),
            Self::AtLeast(_) => None,
        }
    }

    /// Whether it is known exactly.
    pub const fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

/// Other runs were under way in a part of a run's time: [`RunRow::overlap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// What the metric moved by in that time, by whichever run; `None` if a level at its ends is not known.
    pub moved: Option<ByteDelta>,
}

/// The levels of one device around one run, summed over its allocators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Which run.
    pub run: RunIdx,
    /// Which device.
    pub device: DeviceIdx,
    /// The metric that growth is judged on.
    pub metric: Metric,
    /// That metric when the run began.
    pub before: Option<Bytes>,
    /// That metric when it ended.
    pub after: Option<Bytes>,
    /// The latest reading of that metric in an ongoing run; else its start, and what the driver's figure
    /// has risen by since.
    pub so_far: Option<Bytes>,
    /// What the run kept: after − before.
    pub kept: Option<ByteDelta>,
    /// Other runs had a part in that, if some were under way.
    pub overlap: Option<Overlap>,
    /// Its highest level inside the run.
    pub peak: Option<Peak>,
    /// Allocated, before and after.
    pub allocated: (Option<Bytes>, Option<Bytes>),
    /// Reserved, before and after.
    pub reserved: (Option<Bytes>, Option<Bytes>),
    /// This process's use, before and after.
    pub process_used: (Option<Bytes>, Option<Bytes>),
    /// All processes' use, before and after.
    pub device_used: (Option<Bytes>, Option<Bytes>),
    /// The smallest limit that applies.
    pub capacity: Option<Bytes>,
    /// Allocations in the run that succeeded only after the cache was flushed.
    pub n_retries: Option<u64>,
    /// Live allocations, before and after.
    pub n_blocks: (Option<u64>, Option<u64>),
}

impl RunRow {
    /// What the run kept for certain: without what the level moved by while other runs were under way.
    pub fn kept_alone(&self) -> Option<ByteDelta> {
        match self.overlap {
            Some(overlap) => Some(self.kept? + -overlap.moved?),
            None => self.kept,
        }
    }
}

/// The metric that is known of all points.
pub(super) fn metric_of(points: &[Sample]) -> Option<Metric> {
    let is_known = |metric: &Metric| {
        let mut points = points.iter();
        points.all(|point| of_sample(point, *metric).is_some())
    };
    Metric::ALL.into_iter().find(is_known)
}

/// A reading waits for no other, so a few of many may not know a level that all others know.
const NEARLY_ALL: f64 = 0.8;

/// The metric that is known of nearly all points, and those of which it is.
pub(super) fn known_points(mut points: Vec<Sample>) -> Option<(Metric, Vec<Sample>)> {
    let is_known = |point: &Sample, metric: Metric| of_sample(point, metric).is_some();
    let is_mostly_known = |metric: &Metric| {
        let n_known = points.iter().filter(|it| is_known(it, *metric)).count();
        n_known as f64 >= NEARLY_ALL * points.len() as f64
    };
    let metric = Metric::ALL.into_iter().find(is_mostly_known)?;
    points.retain(|it| is_known(it, metric));
    Some((metric, points))
}

/// A point of the metric that growth is judged on.
pub(super) fn of_sample(sample: &Sample, metric: Metric) -> Option<Bytes> {
    match metric {
        Metric::Allocated => sample.allocated,
        Metric::ProcessUsed => sample.process_used,
        Metric::DeviceUsed => sample.device_used,
    }
}

/// The metric that growth is judged on, of each point.
pub fn of_points(points: &Points, metric: Metric) -> &Column {
    match metric {
        Metric::Allocated => points.allocated(),
        Metric::ProcessUsed => points.process_used(),
        Metric::DeviceUsed => points.device_used(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_lack_the_level_of_all_others_are_left_out() {
        let point = |level: Option<u64>| Sample {
            process_used: level.map(Bytes::mib),
            ..Sample::default()
        };
        let check = |levels: &[Option<u64>], expected: Option<usize>| {
            let known = known_points(levels.iter().copied().map(point).collect());
            assert_eq!(
                known.map(|(_, points)| points.len()),
                expected,
                "{levels:?}"
            );
        };
        check(&[Some(1), None, Some(3), Some(4), Some(5)], Some(4));
        check(&[Some(1), None, Some(3), None, Some(5)], None);
        check(&[None, None], None);
    }
}
