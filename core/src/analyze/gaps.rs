//! The gaps between levels of a device: cache, context, other processes.
//!
//! Usually `allocated ≤ reserved ≤ process ≤ device`, but not always: memory that is reserved but not
//! mapped, managed, or shared between processes makes a gap negative. So gaps are signed, and a negative
//! one has its own name.

use super::levels::DeviceSummary;
use super::row::RunRow;
use crate::units::{ByteDelta, Bytes};

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
type Levels = [(&'static str, Option<Bytes>); 4];

fn between(levels: Levels) -> Vec<Gap> {
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
    pub(crate) fn gaps(&self) -> Vec<Gap> {
        between(self.levels())
    }

    /// The narrowest known level with its name; together with the gaps it is the widest.
    pub(crate) fn narrowest(&self) -> Option<(&'static str, Bytes)> {
        let mut levels = self.levels().into_iter();
        levels.find_map(|(name, level)| Some((name, level?)))
    }

    fn levels(&self) -> Levels {
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
    pub(crate) fn gaps(&self) -> Vec<Gap> {
        between([
            ("allocated", self.allocated.1),
            ("reserved", self.reserved.1),
            ("process_used", self.process_used.1),
            ("device_used", self.device_used.1),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording;

    #[track_caller]
    fn check(levels_mib: [Option<u64>; 4], expected: &[(&str, &str)]) {
        let [allocated, reserved, process, device] = levels_mib.map(|n| n.map(Bytes::mib));
        let gaps = between([
            ("allocated", allocated),
            ("reserved", reserved),
            ("process_used", process),
            ("device_used", device),
        ]);
        let shown: Vec<(String, &str)> = gaps
            .iter()
            .map(|gap| (gap.size.to_string(), wording::gap(gap)))
            .collect();
        let shown: Vec<(&str, &str)> = shown.iter().map(|(a, b)| (a.as_str(), *b)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn each_gap_has_its_name() {
        check(
            [Some(10), Some(14), Some(20), Some(50)],
            &[
                ("+4 MiB", "cache"),
                ("+6 MiB", "context and libraries"),
                ("+30 MiB", "other processes"),
            ],
        );
        check(
            [Some(10), None, Some(20), None],
            &[("+10 MiB", "cache, context and libraries")],
        );
        check(
            [None, Some(14), None, Some(50)],
            &[("+36 MiB", "context, libraries and other processes")],
        );
        check([None, None, Some(20), None], &[]);
    }

    #[test]
    fn a_negative_gap_is_named_for_what_makes_it() {
        check(
            [Some(10), Some(200), Some(140), None],
            &[
                ("+190 MiB", "cache"),
                ("−60 MiB", "unmapped, managed or shared"),
            ],
        );
    }
}
