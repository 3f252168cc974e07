//! Judging again: what no threshold changes is kept from one judging to the next.

use std::collections::HashMap;

use super::growth::{Course, Growth};
use super::levels::ByDevice;
use super::rules::Rules;
use super::series;
use super::{Analysis, Compared};
use super::{
    compare, finding, fragmentation, leak, levels, long_lived, oom, peaks, reserve, retention,
};
use crate::recording::Recording;
use crate::units::Bytes;

/// One who judges the same recording again and again: under other thresholds, and
/// as it grows. The verdicts are those of [`analyze`](super::analyze) and
/// [`compare`](super::compare()), sooner.
///
/// ```
/// use gpumem_core::analyze::{Analyst, Rules, analyze};
/// use gpumem_core::recording::{Header, Recording};
/// let recording = Recording::new(Header::default());
/// let mut analyst = Analyst::default();
/// let mut analysis = analyst.analyze(&recording, &Rules::default());
/// let stricter = Rules { min_runs: 20, ..Rules::default() };
/// analyst.judge(&mut analysis, &recording, &stricter);
/// assert_eq!(analysis, analyze(&recording, &stricter));
/// ```
#[derive(Debug, Default)]
pub struct Analyst {
    courses: Courses,
}

impl Analyst {
    /// Derives levels and findings from a recording.
    pub fn analyze(&mut self, recording: &Recording, rules: &Rules) -> Analysis {
        let rows = levels::rows(recording);
        let mut analysis = Analysis {
            devices: levels::summaries(recording, &rows),
            rows,
            findings: Vec::new(),
            warnings: levels::warnings(recording),
        };
        self.judge(&mut analysis, recording, rules);
        analysis
    }

    /// Judges the levels of an analysis of this very recording under other rules.
    pub fn judge(&mut self, analysis: &mut Analysis, recording: &Recording, rules: &Rules) {
        self.courses.turn();
        let (rows, devices) = (&ByDevice::of(&analysis.rows), &analysis.devices);
        let of_runs = series::of_runs(recording, &analysis.rows);
        let courses = &mut self.courses;
        let mut findings = leak::findings(recording, rows, devices, &of_runs, rules, courses);
        findings.extend(fragmentation::findings(
            recording, rows, devices, &of_runs, rules, courses,
        ));
        findings.extend(peaks::findings(recording, devices, &of_runs));
        findings.extend(reserve::findings(
            recording, rows, devices, &of_runs, rules, courses,
        ));
        findings.extend(long_lived::findings(recording, devices));
        findings.extend(oom::findings(recording, rows));
        let retained = retention::findings(recording, rows, devices, &findings, rules);
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
        self.courses.turn();
        compare::compared(recording, baseline, rules, &mut self.courses)
    }
}

/// What the series of levels show that were judged last.
#[derive(Debug, Default)]
pub(super) struct Courses {
    known: HashMap<Vec<Bytes>, Course>,
    earlier: HashMap<Vec<Bytes>, Course>,
}

impl Courses {
    /// Begins another judging: what it does not ask for is forgotten with the next.
    fn turn(&mut self) {
        self.earlier = std::mem::take(&mut self.known);
    }

    /// The verdict of [`classify_growth`](super::classify_growth).
    pub(super) fn judged(&mut self, levels: &[Bytes], min_growth: Bytes, rules: &Rules) -> Growth {
        if !self.known.contains_key(levels) {
            let known = self.earlier.remove_entry(levels);
            let (levels, course) = known.unwrap_or_else(|| (levels.to_vec(), Course::of(levels)));
            self.known.insert(levels, course);
        }
        let course = self.known.get_mut(levels);
        course
            .expect("it was just put there")
            .judged(min_growth, rules)
    }
}
