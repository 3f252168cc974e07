//! Growth that no cell and no loop explains: the level after every run.

use super::analyst::Courses;
use super::device_rows::{DeviceRows, Rows};
use super::finding::{Finding, FindingKind};
use super::growth::State;
use super::leak::min_growth;
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
    rows: Rows<'_>,
    found: &[Finding],
    rules: &Rules,
    courses: &mut Courses,
) -> Vec<Finding> {
    let mut explained = vec![false; recording.devices().len()];
    for finding in found {
        explained[finding.device.get()] |= explains(finding);
    }
    recording
        .devices()
        .iter()
        .filter(|device| !explained[device.idx.get()])
        .filter_map(|device| {
            let of_device = rows.columns(device.idx);
            finding(recording, of_device, device.idx, rules, courses)
        })
        .collect()
}

/// A finding says where the device grows.
pub(super) fn is_explained(found: &[Finding], device: DeviceIdx) -> bool {
    found
        .iter()
        .any(|finding| finding.device == device && explains(finding))
}

fn explains(finding: &Finding) -> bool {
    matches!(finding.state, State::Leak | State::Watch)
}

/// An accelerator grows from run to run, whatever else is found.
pub(super) fn finding(
    recording: &Recording,
    of_device: &DeviceRows,
    device: DeviceIdx,
    rules: &Rules,
    courses: &mut Courses,
) -> Option<Finding> {
    let lane = of_device.lane?;
    if recording.device(device).kind == DeviceKind::Host || of_device.levels.len() < MIN_RUNS {
        return None;
    }
    let levels: Vec<Bytes> = of_device.levels_of_lane().map(|(_, level)| level).collect();
    if levels.len() < MIN_RUNS {
        return None;
    }
    let growth = courses.leak(&levels, min_growth(recording, device, rules), rules)?;
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
        runs: of_device.levels_of_lane().map(|(run, _)| run).collect(),
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
