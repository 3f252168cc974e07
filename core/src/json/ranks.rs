//! The ranks of a job as JSON.

use serde::Serialize;

use crate::ranks::{Cause, Rank, RankFinding, RankRow, Ranks};
use crate::report;
use crate::units::{Bytes, Nanos};

/// The ranks of a job as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn ranks_json(job: &[Rank], found: &Ranks) -> String {
    let titles = report::rank_findings(found);
    let findings = found.findings.iter().zip(&titles);
    let json = JsonRanks {
        kind: found.noun(),
        n_expected: found.n_expected,
        missing: &found.missing,
        skew_nanos: found.skew.map(Nanos::get),
        clock_correction_nanos: found.correction.map(Nanos::get),
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
    skew_nanos: Option<u64>,
    clock_correction_nanos: Option<u64>,
    ranks: Vec<JsonRank<'a>>,
    findings: Vec<JsonFinding>,
}

#[derive(Serialize)]
struct JsonRank<'a> {
    rank: u32,
    name: Option<&'a str>,
    id: &'a str,
    machine: &'a str,
    device: Option<&'a str>,
    latest_bytes: Option<u64>,
    peak_bytes: Option<u64>,
    outside_bytes: Option<u64>,
    n_steps: u64,
    steps_are_runs: bool,
    ending: &'static str,
    until_nanos: u64,
    growth: Option<JsonRankGrowth<'a>>,
}

#[derive(Serialize)]
struct JsonRankGrowth<'a> {
    state: &'static str,
    per: &'static str,
    bytes_per_step: i64,
    task: Option<&'a str>,
    holder: Option<&'a str>,
    since_step: Option<u64>,
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
            rank: row.number,
            name: row.name.as_deref(),
            id: &job[row.rank].id,
            machine: &row.node,
            device: row.device.as_deref(),
            latest_bytes: row.latest.map(Bytes::get),
            peak_bytes: row.peak.map(Bytes::get),
            outside_bytes: row.outside.map(Bytes::get),
            n_steps: row.n_steps,
            steps_are_runs: row.steps_are_runs,
            ending: row.ending.name(),
            until_nanos: row.until.get(),
            growth: row.growth.as_ref().map(|growth| JsonRankGrowth {
                state: growth.state.name(),
                per: match &growth.task {
                    Some(_) => "task",
                    None if growth.counts_steps => "step",
                    None => "run",
                },
                bytes_per_step: growth.per_step.get(),
                task: growth.task.as_deref(),
                holder: growth.holder.as_deref(),
                since_step: growth.since,
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
