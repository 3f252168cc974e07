//! The child processes of a session, in the report's JSON.

use serde::Serialize;

use crate::analyze::State;
use crate::processes::{ProcessFinding, ProcessRow, Processes};
use crate::recording::Recording;
use crate::report;

/// A session's child processes, and what is found in them.
pub fn processes_json(recording: &Recording, processes: &Processes) -> String {
    let children = JsonProcesses::of(recording, processes);
    serde_json::to_string(&children).expect("processes hold strings and numbers only")
}

#[derive(Serialize)]
pub(super) struct JsonProcesses<'a> {
    processes: &'a [ProcessRow],
    process_findings: Vec<JsonProcessFinding<'a>>,
}

#[derive(Serialize)]
struct JsonProcessFinding<'a> {
    title: String,
    state: State,
    kind: &'a str,
    pids: Vec<u32>,
    n_named: usize,
    n_of_kind: usize,
}

impl<'a> JsonProcesses<'a> {
    pub(super) fn of(recording: &Recording, processes: &'a Processes) -> Self {
        let lines = report::process_findings(recording, processes);
        let findings = processes.findings.iter().zip(lines);
        let rows = &processes.rows;
        Self {
            processes: rows,
            process_findings: findings
                .map(|(finding, words)| JsonProcessFinding::of(finding, rows, &words))
                .collect(),
        }
    }
}

impl<'a> JsonProcessFinding<'a> {
    fn of(finding: &'a ProcessFinding, rows: &[ProcessRow], words: &str) -> Self {
        Self {
            // Without its sign.
            title: words.chars().skip(2).collect(),
            state: finding.state,
            kind: &finding.kind,
            pids: finding.rows.iter().map(|idx| rows[*idx].pid).collect(),
            n_named: finding.n_named,
            n_of_kind: finding.n_of_kind,
        }
    }
}
