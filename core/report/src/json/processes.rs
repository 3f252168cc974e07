//! The child processes of a session, in the report's JSON.

use serde::Serialize;

use crate as report;
use gpumem_jobs::processes::{ChildProcesses, ProcessFinding, ProcessRow};
use gpumem_model::object;
use gpumem_model::recording::Recording;

/// A session's child processes, and what is found in them.
pub fn processes_json(recording: &Recording, processes: &ChildProcesses) -> String {
    let children = JsonProcesses::new(recording, processes);
    serde_json::to_string(&children).expect("processes hold strings and numbers only")
}

#[derive(Serialize)]
pub(super) struct JsonProcesses<'a> {
    processes: &'a [ProcessRow],
    process_findings: Vec<JsonProcessFinding<'a>>,
}

struct JsonProcessFinding<'a> {
    finding: &'a ProcessFinding,
    rows: &'a [ProcessRow],
    line: String,
}

object! { JsonProcessFinding<'_>, it => {
    // Without its sign.
    title: it.line.chars().skip(2).collect::<String>(),
    state: it.finding.state,
    kind: it.finding.kind,
    pids: it.finding.rows.iter().map(|idx| it.rows[*idx].pid).collect::<Vec<_>>(),
    n_named: it.finding.n_named,
    n_of_kind: it.finding.n_of_kind,
}}

impl<'a> JsonProcesses<'a> {
    pub(super) fn new(recording: &Recording, processes: &'a ChildProcesses) -> Self {
        let lines = report::process_findings(recording, processes);
        let findings = processes.findings.iter().zip(lines);
        let rows = &processes.rows;
        Self {
            processes: rows,
            process_findings: findings
                .map(|(finding, line)| JsonProcessFinding {
                    finding,
                    rows,
                    line,
                })
                .collect(),
        }
    }
}
