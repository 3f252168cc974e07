//! The ranks of a job as JSON.

use serde::Serialize;

use crate::ranks::{Cause, Rank, RankFinding, RankGrowth, RankRow, Ranks};
use crate::report;
use crate::units::Nanos;

/// The ranks of a job as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn ranks_json(job: &[Rank], found: &Ranks) -> String {
    let titles = report::rank_findings(found);
    let findings = found.findings.iter().zip(&titles);
    let json = JsonRanks {
        kind: found.noun(),
        n_expected: found.n_expected,
        missing: &found.missing,
        skew_nanos: found.skew,
        clock_correction_nanos: found.correction,
        ranks: found
            .rows
            .iter()
            .map(|row| JsonRank::of(job, row))
            .collect(),
        findings: findings
            .map(|(finding, title)| JsonFinding::of(found, finding, title))
            .collect(),
    };
    serde_json::to_string(&json).expect("ranks hold strings and numbers only")
}

#[derive(Serialize)]
struct JsonRanks<'a> {
    kind: &'static str,
    n_expected: usize,
    missing: &'a [u32],
    skew_nanos: Option<Nanos>,
    clock_correction_nanos: Option<Nanos>,
    ranks: Vec<JsonRank<'a>>,
    findings: Vec<JsonFinding>,
}

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
struct JsonFinding {
    title: String,
    kind: &'static str,
    ranks: Vec<u32>,
    later_ranks: Vec<u32>,
}

impl<'a> JsonRank<'a> {
    fn of(job: &'a [Rank], row: &'a RankRow) -> Self {
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

impl JsonFinding {
    fn of(found: &Ranks, finding: &RankFinding, title: &str) -> Self {
        let number = |idx: &usize| found.rows[*idx].number;
        let (kind, later) = match &finding.cause {
            Cause::Ended { later, .. } => {
                let later = later.iter().map(|(idx, _)| number(idx)).collect();
                (found.rows[finding.rows[0]].ending.name(), later)
            }
            Cause::Growth { state } => (state.name(), Vec::new()),
            Cause::Differs { .. } => ("differs", Vec::new()),
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
