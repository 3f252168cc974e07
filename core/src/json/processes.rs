//! The child processes of a session, in the report's JSON.

use serde::Serialize;

use crate::processes::{Per, ProcessFinding, ProcessRow, Processes};
use crate::recording::Recording;
use crate::report;
use crate::units::Bytes;

#[derive(Serialize)]
pub(super) struct JsonProcess<'a> {
    pid: u32,
    parent_pid: Option<u32>,
    name: &'a str,
    started_nanos: u64,
    until_nanos: u64,
    ending: &'static str,
    exit_code: Option<i32>,
    ended_in_run: Option<u32>,
    first_bytes: Option<u64>,
    latest_bytes: Option<u64>,
    peak_bytes: Option<u64>,
    copied_bytes: Option<u64>,
    device_used_bytes: Option<u64>,
    device_peak_bytes: Option<u64>,
    growth: Option<JsonGrowing>,
}

#[derive(Serialize)]
struct JsonGrowing {
    state: &'static str,
    shape: &'static str,
    per: &'static str,
    n_steps: usize,
    bytes_per_step: i64,
    total_bytes: i64,
    step_nanos: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct JsonProcessFinding<'a> {
    title: String,
    state: &'static str,
    kind: &'a str,
    pids: Vec<u32>,
    n_named: usize,
    n_of_kind: usize,
}

impl<'a> JsonProcess<'a> {
    pub(super) fn of(row: &'a ProcessRow) -> Self {
        Self {
            pid: row.pid,
            parent_pid: (row.parent > 0).then_some(row.parent),
            name: &row.name,
            started_nanos: row.started.get(),
            until_nanos: row.until.get(),
            ending: row.ending.name(),
            exit_code: row.ending.exit_code(),
            ended_in_run: row.ended_in.map(|run| run.0),
            first_bytes: row.first.map(Bytes::get),
            latest_bytes: row.latest.map(Bytes::get),
            peak_bytes: row.peak.map(Bytes::get),
            copied_bytes: row.copied.map(Bytes::get),
            device_used_bytes: row.device_used.map(Bytes::get),
            device_peak_bytes: row.device_peak.map(Bytes::get),
            growth: row.growth.as_ref().map(|growing| {
                let (per, step) = match growing.per {
                    Per::Step => ("step", None),
                    Per::Run => ("run", None),
                    Per::Span(span) => ("span", Some(span.get())),
                };
                JsonGrowing {
                    state: growing.growth.state.name(),
                    shape: growing.growth.shape.name(),
                    per,
                    n_steps: growing.n_steps,
                    bytes_per_step: growing.bytes_per_step.get(),
                    total_bytes: growing.growth.total.get(),
                    step_nanos: step,
                }
            }),
        }
    }
}

impl<'a> JsonProcessFinding<'a> {
    pub(super) fn all(recording: &Recording, processes: &'a Processes) -> Vec<Self> {
        let lines = report::process_findings(recording, processes);
        let findings = processes.findings.iter().zip(lines);
        findings
            .map(|(finding, words)| Self::of(finding, &processes.rows, &words))
            .collect()
    }

    fn of(finding: &'a ProcessFinding, rows: &[ProcessRow], words: &str) -> Self {
        Self {
            // Without its sign.
            title: words.chars().skip(2).collect(),
            state: finding.state.name(),
            kind: &finding.kind,
            pids: finding.rows.iter().map(|idx| rows[*idx].pid).collect(),
            n_named: finding.n_named,
            n_of_kind: finding.n_of_kind,
        }
    }
}
