//! The ranks of a job as JSON.

use serde::Serialize;

use crate as report;
use gpumem_jobs::ranks::{Rank, RankCause, RankFinding, RankGrowth, RankRow, Ranks};
use gpumem_model::object;

/// The ranks of a job as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn ranks_json(job: &[Rank], found: &Ranks) -> String {
    let json = JsonRanks { job, found };
    serde_json::to_string(&json).expect("ranks hold strings and numbers only")
}

struct JsonRanks<'a> {
    job: &'a [Rank],
    found: &'a Ranks,
}

object! { JsonRanks<'_>, it => {
    kind: it.found.noun(),
    n_expected: it.found.n_expected,
    missing: it.found.missing,
    skew_nanos: it.found.skew,
    clock_correction_nanos: it.found.correction,
    ranks: it.found.rows.iter().map(|row| JsonRank::new(it.job, row)).collect::<Vec<_>>(),
    findings: it.findings(),
}}

#[derive(Serialize)]
struct JsonRank<'a> {
    id: &'a str,
    #[serde(flatten)]
    row: &'a RankRow,
    growth: Option<JsonRankGrowth<'a>>,
}

#[derive(Serialize)]
struct JsonRankGrowth<'a> {
    per: &'static str,
    #[serde(flatten)]
    growth: &'a RankGrowth,
}

#[derive(Serialize)]
struct JsonRankFinding {
    title: String,
    kind: &'static str,
    ranks: Vec<u32>,
    later_ranks: Vec<u32>,
}

impl JsonRanks<'_> {
    fn findings(&self) -> Vec<JsonRankFinding> {
        let titles = report::rank_findings(self.found);
        let findings = self.found.findings.iter().zip(&titles);
        findings
            .map(|(finding, title)| JsonRankFinding::new(self.found, finding, title))
            .collect()
    }
}

impl<'a> JsonRank<'a> {
    fn new(job: &'a [Rank], row: &'a RankRow) -> Self {
        Self {
            id: &job[row.rank].id,
            row,
            growth: row.growth.as_ref().map(|growth| JsonRankGrowth {
                per: match &growth.task {
                    Some(_) => "task",
                    None if growth.counts_steps => "step",
                    None => "run",
                },
                growth,
            }),
        }
    }
}

impl JsonRankFinding {
    fn new(found: &Ranks, finding: &RankFinding, title: &str) -> Self {
        let number = |idx: &usize| found.rows[*idx].number;
        let (kind, later) = match &finding.cause {
            RankCause::Ended { later, .. } => {
                let later = later.iter().map(|(idx, _)| number(idx)).collect();
                (found.rows[finding.rows[0]].ending.name(), later)
            }
            RankCause::Growth { state } => (state.name(), Vec::new()),
            RankCause::Differs { .. } => ("differs", Vec::new()),
        };
        Self {
            // Without its sign.
            title: title.chars().skip(2).collect(),
            kind,
            ranks: finding.rows.iter().map(number).collect(),
            later_ranks: later,
        }
    }
}
