//! Growth that no cell and no loop explains: the level after every run.

use super::details::{Details, SeriesGrowth};
use super::device_rows::{DeviceRows, Rows};
use super::finding::{Finding, FindingKind};
use super::growth::State;
use super::rules::Rules;
use super::stats_cache::StatsCache;
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
    stats: &mut StatsCache,
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
            finding(recording, of_device, device.idx, rules, stats)
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
    matches!(finding.state, State::Leak | State::Suspected)
}

/// An accelerator grows from run to run, whatever else is found.
pub(super) fn finding(
    recording: &Recording,
    of_device: &DeviceRows,
    device: DeviceIdx,
    rules: &Rules,
    stats: &mut StatsCache,
) -> Option<Finding> {
    let metric = of_device.metric?;
    if recording.device(device).kind == DeviceKind::Host || of_device.levels.len() < MIN_RUNS {
        return None;
    }
    let levels: Vec<Bytes> = of_device
        .levels_of_metric()
        .map(|(_, level)| level)
        .collect();
    if levels.len() < MIN_RUNS {
        return None;
    }
    let growth = stats.leak(
        &levels,
        rules.min_growth_on(recording.device(device).kind),
        rules,
    )?;
    let device = recording.device(device);
    let details = SeriesGrowth::of(&growth, &levels);
    Some(Finding {
        severity: Severity::Warning,
        runs: of_device.levels_of_metric().map(|(run, _)| run).collect(),
        n_runs: levels.len(),
        evidence: growth.evidence,
        id: format!("session/{}", device.key),
        ..Finding::about(
            FindingKind::Growing,
            device.key.as_str(),
            device.idx,
            metric,
            Details::UnattributedGrowth(details),
        )
    })
}
