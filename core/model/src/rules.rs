//! The thresholds that a user can change.
//!
//! They are stored in the recording's header, so that a shared recording is judged as its author judged
//! it until a reader changes one. [`Threshold`] names each of them in files, Python and the page.
//!
//! ```
//! use gpumem_model::rules::{Rules, Threshold};
//!
//! let mut rules = Rules::default();
//! let threshold = Threshold::from_name("min_runs").expect("a threshold");
//! rules.set(threshold, 20.0)?;
//! assert_eq!(rules.min_runs, 20);
//! assert!(rules.moved().eq([Threshold::MinRuns]));
//! # Ok::<(), gpumem_model::rules::BadThreshold>(())
//! ```

use thiserror::Error;

use crate::named;
use crate::units::Bytes;

/// Thresholds of the evidence rule, which decides whether a series of levels grows.
///
/// A leak must pass two floors (`block_t`, `last_quarter_share`) and then either the trend test or the
/// second-half test; `classify_growth` applies them. The defaults
/// were measured on labelled series (`tests/leaks.rs`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Fewest runs (or steps) on which growth may be called a leak.
    pub min_runs: usize,
    /// Floor: the t-statistic of the block minima's increments must exceed this.
    pub block_t: f64,
    /// Floor: the last quarter must carry more than this share of what is never given back.
    pub last_quarter_share: f64,
    /// Trend: the Mann-Kendall z, corrected for autocorrelation, must exceed this.
    pub trend_z: f64,
    /// Trend by itself: each later quarter must carry more than this share of the growth.
    pub quarter_share: f64,
    /// Trend by itself: the rise over the series must exceed this many standard deviations.
    pub relative_rise: f64,
    /// Second half: the t-statistic of its block minima's increments must exceed this.
    pub tail_block_t: f64,
    /// Second half: its rise must exceed this many standard deviations. A straight line has √12.
    pub tail_rise: f64,
    /// Bytes: smaller growth over the whole series gets no card, on a device.
    pub min_growth: Bytes,
    /// The same for host memory, where the interpreter itself grows.
    pub min_host_growth: Bytes,
    /// Cache ratio, (reserved − allocated) / reserved, above which a device is checked for fragmentation.
    pub fragmentation_ratio: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            min_runs: 9,
            block_t: 1.7,
            last_quarter_share: 0.03,
            trend_z: 1.645,
            quarter_share: 0.03,
            relative_rise: 1.6,
            tail_block_t: 3.0,
            tail_rise: 3.1,
            min_growth: Bytes::mib(1),
            min_host_growth: Bytes::mib(64),
            fragmentation_ratio: 0.3,
        }
    }
}

/// `set` refuses what is not a number.
impl Eq for Rules {}

impl Rules {
    /// The value of a threshold, in its unit: bytes, runs, a share or a statistic.
    pub fn get(&self, threshold: Threshold) -> f64 {
        match threshold {
            Threshold::MinRuns => self.min_runs as f64,
            Threshold::BlockT => self.block_t,
            Threshold::LastQuarterShare => self.last_quarter_share,
            Threshold::TrendZ => self.trend_z,
            Threshold::QuarterShare => self.quarter_share,
            Threshold::RelativeRise => self.relative_rise,
            Threshold::TailBlockT => self.tail_block_t,
            Threshold::TailRise => self.tail_rise,
            Threshold::MinGrowth => self.min_growth.as_f64(),
            Threshold::MinHostGrowth => self.min_host_growth.as_f64(),
            Threshold::FragmentationRatio => self.fragmentation_ratio,
        }
    }

    /// Sets a threshold.
    ///
    /// # Errors
    ///
    /// [`BadThreshold`] if the value is out of range; the rules are then unchanged.
    pub fn set(&mut self, threshold: Threshold, value: f64) -> Result<(), BadThreshold> {
        threshold.check(value)?;
        match threshold {
            Threshold::MinRuns => self.min_runs = value as usize,
            Threshold::BlockT => self.block_t = value,
            Threshold::LastQuarterShare => self.last_quarter_share = value,
            Threshold::TrendZ => self.trend_z = value,
            Threshold::QuarterShare => self.quarter_share = value,
            Threshold::RelativeRise => self.relative_rise = value,
            Threshold::TailBlockT => self.tail_block_t = value,
            Threshold::TailRise => self.tail_rise = value,
            Threshold::MinGrowth => self.min_growth = Bytes::new(value as u64),
            Threshold::MinHostGrowth => self.min_host_growth = Bytes::new(value as u64),
            Threshold::FragmentationRatio => self.fragmentation_ratio = value,
        }
        Ok(())
    }

    /// The thresholds that differ from the defaults.
    pub fn moved(&self) -> impl Iterator<Item = Threshold> {
        let usual = Self::default();
        let is_moved = move |it: &Threshold| self.get(*it).total_cmp(&usual.get(*it)).is_ne();
        Threshold::ALL.into_iter().filter(is_moved)
    }
}

/// The smallest value of [`Rules::min_runs`]: two runs show no trend.
pub const FEWEST_RUNS: u32 = 3;

named! {
    /// Names one of the [`Rules`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Threshold {
        /// [`Rules::min_runs`].
        MinRuns = "min_runs",
        /// [`Rules::min_growth`].
        MinGrowth = "min_growth",
        /// [`Rules::min_host_growth`].
        MinHostGrowth = "min_host_growth",
        /// [`Rules::fragmentation_ratio`].
        FragmentationRatio = "fragmentation_ratio",
        /// [`Rules::block_t`].
        BlockT = "block_t",
        /// [`Rules::last_quarter_share`].
        LastQuarterShare = "last_quarter_share",
        /// [`Rules::trend_z`].
        TrendZ = "trend_z",
        /// [`Rules::quarter_share`].
        QuarterShare = "quarter_share",
        /// [`Rules::relative_rise`].
        RelativeRise = "relative_rise",
        /// [`Rules::tail_block_t`].
        TailBlockT = "tail_block_t",
        /// [`Rules::tail_rise`].
        TailRise = "tail_rise",
    }
}

/// The error of [`Rules::set`]: a value out of the threshold's range.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{} is {value}: it must be {expected}", .threshold.name())]
pub struct BadThreshold {
    /// Which threshold.
    pub threshold: Threshold,
    /// The value that was refused.
    pub value: f64,
    /// The range, in words.
    pub expected: &'static str,
}

impl Threshold {
    /// Its values are whole numbers, because it counts bytes or runs.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::MinRuns | Self::MinGrowth | Self::MinHostGrowth)
    }

    fn check(self, value: f64) -> Result<(), BadThreshold> {
        let whole = |least: f64| value >= least && value.fract() == 0.0 && value <= MOST;
        let (is_right, expected) = match self {
            Self::MinRuns => (
                whole(f64::from(FEWEST_RUNS)),
                "a whole number of at least 3",
            ),
            Self::MinGrowth | Self::MinHostGrowth => (whole(0.0), "a number of bytes, at least 0"),
            Self::LastQuarterShare | Self::QuarterShare | Self::FragmentationRatio => {
                ((0.0..=1.0).contains(&value), "a share from 0 to 1")
            }
            _ => (
                value.is_finite() && value >= 0.0,
                "a finite number of at least 0",
            ),
        };
        if is_right {
            return Ok(());
        }
        Err(BadThreshold {
            threshold: self,
            value,
            expected,
        })
    }
}

/// Up to here every whole number is exact as a float.
const MOST: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_is_moved_by_its_name_and_read_again() {
        for threshold in Threshold::ALL {
            let mut rules = Rules::default();
            assert_eq!(rules.moved().count(), 0);
            let value = if threshold.is_whole() { 77.0 } else { 0.875 };
            rules.set(threshold, value).expect("a value that it may be");
            assert!(rules.get(threshold).total_cmp(&value).is_eq());
            assert_eq!(rules.moved().collect::<Vec<_>>(), [threshold]);
            assert_eq!(Threshold::from_name(threshold.name()), Some(threshold));
        }
    }

    #[track_caller]
    fn check(name: &str, value: f64, expected: &str) {
        let threshold = Threshold::from_name(name).expect("a threshold");
        let mut rules = Rules::default();
        let error = rules.set(threshold, value).expect_err("out of its range");
        assert_eq!(error.to_string(), expected);
        assert_eq!(rules, Rules::default());
    }

    #[test]
    fn a_value_that_a_threshold_cannot_be_is_named() {
        check(
            "min_runs",
            2.0,
            "min_runs is 2: it must be a whole number of at least 3",
        );
        check(
            "min_growth",
            -1.0,
            "min_growth is -1: it must be a number of bytes, at least 0",
        );
        check(
            "min_growth",
            0.5,
            "min_growth is 0.5: it must be a number of bytes, at least 0",
        );
        check(
            "fragmentation_ratio",
            1.5,
            "fragmentation_ratio is 1.5: it must be a share from 0 to 1",
        );
        check(
            "trend_z",
            f64::NAN,
            "trend_z is NaN: it must be a finite number of at least 0",
        );
        check(
            "block_t",
            f64::INFINITY,
            "block_t is inf: it must be a finite number of at least 0",
        );
    }
}
