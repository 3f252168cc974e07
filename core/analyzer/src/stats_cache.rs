//! What no threshold changes, kept from one judging to the next.

use std::collections::HashMap;

use super::growth::{Growth, GrowthVerdict, SeriesStats};
use super::rules::Rules;
use gpumem_model::units::Bytes;

/// What the series of levels show that were judged last, by the levels themselves.
#[derive(Debug, Default)]
pub(super) struct StatsCache {
    known: HashMap<Vec<Bytes>, SeriesStats>,
    earlier: HashMap<Vec<Bytes>, SeriesStats>,
}

impl StatsCache {
    /// Begins another judging: what it does not ask for is forgotten with the next.
    pub(super) fn turn(&mut self) {
        self.earlier = std::mem::take(&mut self.known);
    }

    /// The verdict of [`classify_growth`](super::classify_growth).
    pub(super) fn judged(&mut self, levels: &[Bytes], min_growth: Bytes, rules: &Rules) -> Growth {
        self.stats(levels).judged(min_growth, rules)
    }

    /// State and p of that verdict.
    pub(super) fn state(
        &mut self,
        levels: &[Bytes],
        min_growth: Bytes,
        rules: &Rules,
    ) -> (GrowthVerdict, f64) {
        // Most series are short, and none of what they show is worth keeping.
        if levels.len() < rules.min_runs {
            return (GrowthVerdict::NotEnoughData, 1.0);
        }
        self.stats(levels).state(min_growth, rules)
    }

    /// The verdict, if it is a leak.
    pub(super) fn leak(
        &mut self,
        levels: &[Bytes],
        min_growth: Bytes,
        rules: &Rules,
    ) -> Option<Growth> {
        let stats = self.stats(levels);
        let is_leak =
            stats.may_grow(min_growth) && stats.state(min_growth, rules).0 == GrowthVerdict::Leak;
        is_leak.then(|| stats.judged(min_growth, rules))
    }

    fn stats(&mut self, levels: &[Bytes]) -> &mut SeriesStats {
        if !self.known.contains_key(levels) {
            let known = self.earlier.remove(levels);
            let stats = known.unwrap_or_else(|| SeriesStats::from_levels(levels));
            self.known.insert(levels.to_vec(), stats);
        }
        let stats = self.known.get_mut(levels);
        stats.expect("it was just put there")
    }
}
