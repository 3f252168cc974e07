//! Judging again: results that no threshold changes are kept between calls.

use super::Analysis;
use super::context::Context;
use super::device_rows::{DeviceRows, RowsByDevice};
use super::findings::checks::{Checks, JudgedSeries, Scope};
use super::idle;
use super::levels;
use super::names::NameHistory;
use super::paths::Paths;
use super::rules::Rules;
use super::series;
use super::stats_cache::StatsCache;
use gpumem_model::recording::Recording;

/// Judges the same recording repeatedly, under other thresholds and as it grows.
///
/// The verdicts are those of [`analyze`](super::analyze) and [`compare`](super::compare()), but statistics
/// of unchanged series are reused.
#[derive(Debug, Default)]
pub struct IncrementalAnalyzer {
    pub(super) stats: StatsCache,
}

impl IncrementalAnalyzer {
    /// Derives levels and findings from a recording.
    pub fn analyze(&mut self, recording: &Recording, rules: &Rules) -> Analysis {
        self.stats.turn();
        self.derived(recording, rules)
    }

    pub(super) fn derived(&mut self, recording: &Recording, rules: &Rules) -> Analysis {
        let rows = levels::rows(recording);
        let of_devices = DeviceRows::all(recording, &rows);
        let devices = levels::summaries(recording, RowsByDevice::new(&rows, &of_devices));
        let mut analysis = Analysis {
            idle: idle::all(recording, &devices),
            devices,
            rows,
            findings: Vec::new(),
            warnings: levels::warnings(recording),
        };
        self.set_findings(&mut analysis, recording, rules);
        analysis
    }

    /// Judges an analysis of this recording again, under other rules.
    pub fn judge(&mut self, analysis: &mut Analysis, recording: &Recording, rules: &Rules) {
        self.stats.turn();
        self.set_findings(analysis, recording, rules);
    }

    fn set_findings(&mut self, analysis: &mut Analysis, recording: &Recording, rules: &Rules) {
        let of_devices = DeviceRows::all(recording, &analysis.rows);
        let paths = Paths::new(recording);
        let names = NameHistory::new(recording);
        let context = Context {
            names: &names,
            recording,
            rows: RowsByDevice::new(&analysis.rows, &of_devices),
            paths: &paths,
            devices: &analysis.devices,
            rules,
        };
        let series = JudgedSeries {
            of_runs: series::of_runs(recording, &paths, &analysis.rows),
            of_steps: series::of_steps(recording, &paths, recording.runs().iter()),
        };
        let checks = Checks {
            context,
            scope: Scope::AllRuns,
            series: &series,
            others: &JudgedSeries::default,
            p_bound: None,
        };
        let findings = checks.findings(&mut self.stats);
        analysis.findings = findings;
    }
}
