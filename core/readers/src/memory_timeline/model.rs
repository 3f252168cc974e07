//! Bytes by category over time, summed up.

use serde::Serialize;

use gpumem_model::units::{ByteDelta, Nanos};

/// `PyTorch`'s categories, by number.
const CATEGORIES: [&str; 8] = [
    "parameters",
    "optimizer state",
    "inputs",
    "temporary",
    "activations",
    "gradients",
    "autograd detail",
    "unknown",
];

/// A timeline of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryTimeline {
    /// Number of rows.
    pub n_rows: usize,
    /// From the first row with a time to the last.
    #[serde(rename = "duration_nanos")]
    pub duration: Nanos,
    /// The level before.
    #[serde(rename = "start_bytes")]
    pub at_start: ByteDelta,
    /// The highest level.
    #[serde(rename = "peak_bytes")]
    pub peak: ByteDelta,
    /// When it was reached, after the timeline's start; `None` if at the start.
    #[serde(rename = "peak_after_nanos")]
    pub peak_after: Option<Nanos>,
    /// The last level.
    #[serde(rename = "end_bytes")]
    pub at_end: ByteDelta,
    /// The levels of each category, in `PyTorch`'s order.
    pub categories: Vec<CategoryLevels>,
}

/// The levels of one category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CategoryLevels {
    /// `activations`.
    pub name: &'static str,
    /// The level before.
    #[serde(rename = "start_bytes")]
    pub at_start: ByteDelta,
    /// Its part of the highest level of all.
    #[serde(rename = "at_peak_bytes")]
    pub at_peak: ByteDelta,
    /// Its own highest level.
    #[serde(rename = "peak_bytes")]
    pub peak: ByteDelta,
    /// The last level.
    #[serde(rename = "end_bytes")]
    pub at_end: ByteDelta,
}

/// The levels of all categories at one instant.
pub(super) type LevelsByCategory = [i64; CATEGORIES.len()];

/// Sums up while rows are read.
#[derive(Debug, Default)]
pub(super) struct TimelineTally {
    n_rows: usize,
    first: Option<i64>,
    last: i64,
    now: LevelsByCategory,
    at_start: LevelsByCategory,
    at_peak: LevelsByCategory,
    peaks: LevelsByCategory,
    peak: i64,
    peak_at: Option<i64>,
}

impl TimelineTally {
    /// A change of one category; without a time it came before the start.
    pub(super) fn change(&mut self, at: Option<i64>, bytes: i64, category: i64) {
        let category = usize::try_from(category).unwrap_or(usize::MAX);
        let category = category.min(CATEGORIES.len() - 1);
        let mut now = self.now;
        if let Some(level) = now.get_mut(category) {
            *level = level.saturating_add(bytes);
        }
        self.levels(at, now);
    }

    /// The levels from this time on.
    pub(super) fn levels(&mut self, at: Option<i64>, now: LevelsByCategory) {
        self.n_rows += 1;
        self.now = now;
        let sum = sum(&now);
        if let Some(at) = at {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = self.last.max(at);
        } else {
            self.at_start = now;
        }
        for (peak, level) in self.peaks.iter_mut().zip(now) {
            *peak = (*peak).max(level);
        }
        if self.n_rows == 1 || sum > self.peak {
            (self.peak, self.peak_at, self.at_peak) = (sum, at, now);
        }
    }

    pub(super) fn finish(self) -> MemoryTimeline {
        let first = self.first.unwrap_or(0);
        let after = |at: i64| Nanos::new(at.saturating_sub(first).max(0).unsigned_abs());
        let delta = |levels: &LevelsByCategory, number: usize| {
            ByteDelta::new(levels.get(number).copied().unwrap_or(0))
        };
        let names = CATEGORIES.into_iter().enumerate();
        MemoryTimeline {
            n_rows: self.n_rows,
            duration: after(self.last),
            at_start: ByteDelta::new(sum(&self.at_start)),
            peak: ByteDelta::new(self.peak),
            peak_after: self.peak_at.map(after),
            at_end: ByteDelta::new(sum(&self.now)),
            categories: names
                .map(|(number, name)| CategoryLevels {
                    name,
                    at_start: delta(&self.at_start, number),
                    at_peak: delta(&self.at_peak, number),
                    peak: delta(&self.peaks, number),
                    at_end: delta(&self.now, number),
                })
                .collect(),
        }
    }
}

fn sum(levels: &LevelsByCategory) -> i64 {
    levels
        .iter()
        .fold(0, |sum, level| sum.saturating_add(*level))
}
