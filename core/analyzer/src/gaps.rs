//! The gaps between levels of a device: cache, context, other processes.
//!
//! Usually `allocated ≤ reserved ≤ process ≤ device`, but not always: memory that is reserved but not
//! mapped, managed, or shared between processes makes a gap negative. So gaps are signed, and a negative
//! one has its own name.

use super::levels::DeviceSummary;
use super::row::RunRow;
use gpumem_model::units::{ByteDelta, Bytes};

/// The signed difference of two adjacent known levels. [`Analysis::parts`](super::Analysis::parts)
/// includes the positive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The narrower level: `allocated`, `reserved` or `process_used`.
    pub from: &'static str,
    /// The next wider level that is known: `reserved`, `process_used` or `device_used`.
    pub to: &'static str,
    /// The wider minus the narrower.
    pub size: ByteDelta,
}

/// Levels by their names, from the narrowest to the widest.
type NamedLevels = [(&'static str, Option<Bytes>); 4];

fn between(levels: NamedLevels) -> Vec<Gap> {
    let known: Vec<(&str, Bytes)> = levels
        .into_iter()
        .filter_map(|(name, level)| Some((name, level?)))
        .collect();
    let gap = |pair: &[(&'static str, Bytes)]| Gap {
        from: pair[0].0,
        to: pair[1].0,
        size: pair[1].1.since(pair[0].1),
    };
    known.windows(2).map(gap).collect()
}

impl DeviceSummary {
    /// What lies between the levels that are known, from allocated to device used.
    pub fn gaps(&self) -> Vec<Gap> {
        between(self.levels())
    }

    /// The narrowest known level with its name; together with the gaps it is the widest.
    pub fn narrowest(&self) -> Option<(&'static str, Bytes)> {
        let mut levels = self.levels().into_iter();
        levels.find_map(|(name, level)| Some((name, level?)))
    }

    fn levels(&self) -> NamedLevels {
        [
            ("allocated", self.allocated),
            ("reserved", self.reserved),
            ("process_used", self.process_used),
            ("device_used", self.device_used),
        ]
    }
}

impl RunRow {
    /// What lay between the levels that were known when the run ended.
    pub fn gaps(&self) -> Vec<Gap> {
        between([
            ("allocated", self.allocated.1),
            ("reserved", self.reserved.1),
            ("process_used", self.process_used.1),
            ("device_used", self.device_used.1),
        ])
    }
}
