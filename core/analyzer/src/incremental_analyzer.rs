//! Judging again: results that no threshold changes are kept between calls.

use super::Analysis;
use super::context::Context;
use super::device_rows::{DeviceRows, Rows};
use super::names::Names;
use super::paths::Paths;
use super::rules::Rules;
use super::series;
use super::stats_cache::StatsCache;
use super::{
    finding, fragmentation, leak, levels, long_lived, oom, peaks, reserve, retention,
    unattributed_growth,
};
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
        let mut analysis = Analysis {
            devices: levels::summaries(recording, Rows::new(&rows, &of_devices)),
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
        let paths = Paths::of(recording);
        let names = Names::of(recording);
        let context = Context {
            names: &names,
            recording,
            rows: Rows::new(&analysis.rows, &of_devices),
            paths: &paths,
            devices: &analysis.devices,
            rules,
        };
        let of_runs = series::of_runs(recording, &paths, &analysis.rows);
        let of_steps = series::of_steps(recording, &paths);
        let stats = &mut self.stats;
        let mut findings = leak::findings(context, &of_runs, &of_steps, stats);
        leak::add_names(context, &mut findings, stats);
        findings.extend(unattributed_growth::findings(context, &findings, stats));
        findings.extend(fragmentation::findings(context, &of_runs, stats));
        findings.extend(peaks::findings(context, &of_runs));
        findings.extend(reserve::findings(context, &of_runs, stats));
        findings.extend(long_lived::findings(context));
        let mut ooms = oom::findings(context);
        oom::join_growth(&mut ooms, &findings);
        findings.extend(ooms);
        let mut is_told = |device, place| retention::is_told(&findings, device, place);
        let retained = retention::findings(context, &mut is_told);
        findings.extend(retained);
        finding::sort(&mut findings);
        analysis.findings = findings;
    }
}
