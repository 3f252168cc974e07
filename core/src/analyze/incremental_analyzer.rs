//! Judging again: what no threshold changes is kept from one judging to the next.

use super::device_rows::{DeviceRows, Rows};
use super::growth::{Growth, SeriesStats, State};
use super::paths::Paths;
use super::rules::Rules;
use super::series;
use super::{Analysis, Compared};
use super::{
    compare, finding, fragmentation, leak, levels, long_lived, oom, peaks, reserve, retention,
    unattributed_growth,
};
use crate::recording::Recording;
use crate::units::Bytes;
use crate::vec_map::VecMap;

/// One who judges the same recording again and again: under other thresholds, and
/// as it grows. The verdicts are those of [`analyze`](super::analyze) and
/// [`compare`](super::compare()), sooner.
///
/// ```
/// use gpumem_core::analyze::{IncrementalAnalyzer, Rules, analyze};
/// use gpumem_core::recording::{Header, Recording};
/// let recording = Recording::new(Header::default());
/// let mut analyzer = IncrementalAnalyzer::default();
/// let mut analysis = analyzer.analyze(&recording, &Rules::default());
/// let stricter = Rules { min_runs: 20, ..Rules::default() };
/// analyzer.judge(&mut analysis, &recording, &stricter);
/// assert_eq!(analysis, analyze(&recording, &stricter));
/// ```
#[derive(Debug, Default)]
pub struct IncrementalAnalyzer {
    stats: StatsCache,
}

impl IncrementalAnalyzer {
    /// Derives levels and findings from a recording.
    pub fn analyze(&mut self, recording: &Recording, rules: &Rules) -> Analysis {
        let rows = levels::rows(recording);
        let of_devices = DeviceRows::all(recording, &rows);
        let mut analysis = Analysis {
            devices: levels::summaries(recording, Rows::new(&rows, &of_devices)),
            rows,
            findings: Vec::new(),
            warnings: levels::warnings(recording),
        };
        self.judge(&mut analysis, recording, rules);
        analysis
    }

    /// Judges the levels of an analysis of this very recording under other rules.
    pub fn judge(&mut self, analysis: &mut Analysis, recording: &Recording, rules: &Rules) {
        self.stats.turn();
        let of_devices = DeviceRows::all(recording, &analysis.rows);
        let (rows, devices) = (Rows::new(&analysis.rows, &of_devices), &analysis.devices);
        let paths = Paths::of(recording);
        let of_runs = series::of_runs(recording, &paths, &analysis.rows);
        let of_steps = series::of_steps(recording, &paths);
        let stats = &mut self.stats;
        let of_both = (&*of_runs, &*of_steps);
        let mut findings = leak::findings(recording, rows, devices, of_both, rules, stats);
        findings.extend(unattributed_growth::findings(
            recording, rows, &findings, rules, stats,
        ));
        findings.extend(fragmentation::findings(
            recording, rows, devices, &of_runs, rules, stats,
        ));
        findings.extend(peaks::findings(recording, devices, &of_runs));
        findings.extend(reserve::findings(
            recording, rows, devices, &of_runs, rules, stats,
        ));
        findings.extend(long_lived::findings(recording, devices));
        findings.extend(oom::findings(recording, rows, &paths));
        let mut is_told = |device, place| retention::is_told(&findings, device, place);
        let retained = retention::findings(recording, rows, devices, rules, &mut is_told);
        findings.extend(retained);
        finding::sort(&mut findings);
        analysis.findings = findings;
    }

    /// Holds each growing cell of `recording` against `baseline`, worst first.
    pub fn compare(
        &mut self,
        recording: &Recording,
        baseline: &Recording,
        rules: &Rules,
    ) -> Vec<Compared> {
        self.stats.turn();
        compare::compared(recording, baseline, rules, &mut self.stats)
    }
}

/// What the series of levels show that were judged last, by the levels themselves.
#[derive(Debug, Default)]
pub(super) struct StatsCache {
    known: VecMap<Vec<Bytes>, SeriesStats>,
    earlier: VecMap<Vec<Bytes>, SeriesStats>,
}

impl StatsCache {
    /// Begins another judging: what it does not ask for is forgotten with the next.
    pub(super) fn turn(&mut self) {
        self.earlier = std::mem::take(&mut self.known);
    }

    /// The verdict of [`classify_growth`](super::classify_growth).
    pub(super) fn judged(&mut self, levels: &[Bytes], min_growth: Bytes, rules: &Rules) -> Growth {
        self.course(levels).judged(min_growth, rules)
    }

    /// State and p of that verdict.
    pub(super) fn state(
        &mut self,
        levels: &[Bytes],
        min_growth: Bytes,
        rules: &Rules,
    ) -> (State, f64) {
        // Most series are short, and none of what they show is worth keeping.
        if levels.len() < rules.min_runs {
            return (State::NotEnoughData, 1.0);
        }
        self.course(levels).state(min_growth, rules)
    }

    /// The verdict, if it is a leak.
    pub(super) fn leak(
        &mut self,
        levels: &[Bytes],
        min_growth: Bytes,
        rules: &Rules,
    ) -> Option<Growth> {
        let course = self.course(levels);
        let is_leak =
            course.may_grow(min_growth) && course.state(min_growth, rules).0 == State::Leak;
        is_leak.then(|| course.judged(min_growth, rules))
    }

    fn course(&mut self, levels: &[Bytes]) -> &mut SeriesStats {
        if self.known.get(levels).is_none() {
            let known = self.earlier.remove(levels);
            let course = known.unwrap_or_else(|| SeriesStats::of(levels));
            self.known.insert(levels.to_vec(), course);
        }
        let course = self.known.get_mut(levels);
        course.expect("it was just put there")
    }
}
