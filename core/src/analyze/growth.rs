//! The evidence rule on one series of levels.

use super::finding::Evidence;
use super::rules::Rules;
use crate::units::{ByteDelta, Bytes};

/// The verdict on a series. The order is that of the cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Both parts of the evidence rule say that it grows, on enough runs.
    Leak,
    /// One part says so: growing, holder unknown.
    Watch,
    /// It does not grow; its shape says what it does.
    None,
    /// Too few runs to tell.
    NotEnoughData,
}

impl State {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Watch => "watch",
            Self::None => "none",
            Self::NotEnoughData => "not_enough_data",
        }
    }
}

/// The course of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// No change worth the name.
    Flat,
    /// Rises in the first runs, then stays.
    WarmUp,
    /// One jump, flat before and after.
    Step,
    /// Rises and falls back to where it was.
    Sawtooth,
    /// Flat but for single high readings.
    Spikes,
    /// Several jumps, flat between them.
    Staircase,
    /// Grows all the way.
    Growth,
    /// Flat first, grows at the end.
    LateGrowth,
}

impl Shape {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::WarmUp => "warm-up",
            Self::Step => "step",
            Self::Sawtooth => "sawtooth",
            Self::Spikes => "spikes",
            Self::Staircase => "staircase",
            Self::Growth => "growth",
            Self::LateGrowth => "late growth",
        }
    }
}

/// The verdict on one series with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// The verdict.
    pub state: State,
    /// The course of the series.
    pub shape: Shape,
    /// What each run keeps: Theil-Sen slope over the suffix that was judged.
    pub bytes_per_run: ByteDelta,
    /// Its confidence interval of 95 %.
    pub interval: (ByteDelta, ByteDelta),
    /// Last level minus first, in bytes.
    pub total: ByteDelta,
    /// The figures.
    pub evidence: Vec<Evidence>,
}

/// Judges a series of levels, one after each run, in the order of the runs.
///
/// Growth of less than `min_growth` over the series is flat.
pub fn classify_growth(levels: &[Bytes], min_growth: Bytes, rules: &Rules) -> Growth {
    let _ = (levels, min_growth, rules);
    unimplemented!("first verdicts")
}
