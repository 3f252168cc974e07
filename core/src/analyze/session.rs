//! Growth that no cell and no loop explains: the level after every run.

use std::collections::HashSet;

use super::analyst::Courses;
use super::finding::{Finding, FindingKind};
use super::growth::State;
use super::leak::min_growth;
use super::levels::{ByDevice, RunRow};
use super::rules::Rules;
use crate::recording::{DeviceIdx, DeviceKind, Recording};
use crate::severity::Severity;
use crate::units::Bytes;

/// A notebook that is being written fills the device cell by cell; only a long
/// course that does not end is worth a word.
const MIN_RUNS: usize = 30;

/// A finding for each accelerator that grows from run to run while no finding in
/// `found` says where.
pub(super) fn findings(
    recording: &Recording,
    rows: &ByDevice<'_>,
    found: &[Finding],
    rules: &Rules,
    courses: &mut Courses,
) -> Vec<Finding> {
    let says_where = |finding: &&Finding| matches!(finding.state, State::Leak | State::Watch);
    let said = found.iter().filter(says_where);
    let explained: HashSet<DeviceIdx> = said.map(|finding| finding.device).collect();
    recording
        .devices()
        .iter()
        .filter(|device| device.kind != DeviceKind::Host)
        .filter(|device| !explained.contains(&device.idx))
        .filter_map(|device| finding(recording, rows, device.idx, rules, courses))
        .collect()
}

fn finding(
    recording: &Recording,
    rows: &ByDevice<'_>,
    device: DeviceIdx,
    rules: &Rules,
    courses: &mut Courses,
) -> Option<Finding> {
    let is_outermost = |row: &&RunRow| recording.run(row.run).parent.is_none();
    let rows = rows.rows(device);
    let lane = rows.last()?.lane;
    let rows: Vec<&RunRow> = rows
        .iter()
        .copied()
        .filter(|row| row.lane == lane && row.after.is_some())
        .filter(is_outermost)
        .collect();
    let levels: Vec<Bytes> = rows.iter().filter_map(|row| row.after).collect();
    let growth = courses.judged(&levels, min_growth(recording, device, rules), rules);
    if levels.len() < MIN_RUNS || growth.state != State::Leak {
        return None;
    }
    let label = &recording.device(device).label;
    let kept = growth.bytes_per_run.magnitude();
    Some(Finding {
        id: format!("session/{}", recording.device(device).key),
        kind: FindingKind::Growing,
        severity: Severity::Warning,
        state: State::Watch,
        withdrawn: None,
        shape: Some(growth.shape),
        title: format!("{label} fills by about {kept} a run, and no cell alone explains it"),
        detail: format!(
            "{} over {} runs · what grows is spread over cells that ran once or a few times",
            growth.total,
            levels.len()
        ),
        cell: None,
        path: Vec::new(),
        device,
        lane,
        runs: rows.iter().map(|row| row.run).collect(),
        n_runs: levels.len(),
        steps: false,
        bytes_per_run: Some(growth.bytes_per_run),
        interval: Some(growth.interval),
        runs_to_oom: None,
        figures: None,
        holders: Vec::new(),
        fix: None,
        suggestions: vec![
            "see which names hold memory that is not needed any more, and `del` them".to_owned(),
        ],
        evidence: growth.evidence,
        sparkline: levels.iter().map(|level| level.as_f64()).collect(),
    })
}
