//! Growth that no cell and no loop explains: the level after every run.

use super::{Details, Finding, FindingKind, SeriesGrowth};
use crate::context::Context;
use crate::growth::State;
use crate::stats_cache::StatsCache;
use gpumem_model::recording::{DeviceIdx, DeviceKind};
use gpumem_model::units::Bytes;

/// A notebook that is being written fills the device cell by cell; only a long
/// course that does not end is worth a word.
const MIN_RUNS: usize = 30;

/// A finding says where the device grows.
pub(super) fn is_explained(found: &[Finding], device: DeviceIdx) -> bool {
    found.iter().any(|finding| {
        let grows = matches!(finding.state, Some(State::Leak | State::Suspected));
        grows && finding.device == device
    })
}

/// An accelerator grows from run to run, whatever else is found.
pub(super) fn finding(
    context: Context<'_>,
    device: DeviceIdx,
    stats: &mut StatsCache,
) -> Option<Finding> {
    let of_device = context.rows.columns(device);
    let metric = of_device.metric?;
    if context.recording.device(device).kind == DeviceKind::Host
        || of_device.levels.len() < MIN_RUNS
    {
        return None;
    }
    let levels: Vec<Bytes> = of_device
        .levels_of_metric()
        .map(|(_, level)| level)
        .collect();
    if levels.len() < MIN_RUNS {
        return None;
    }
    let growth = stats.leak(&levels, context.min_growth(device), context.rules)?;
    let device = context.recording.device(device);
    let details = SeriesGrowth::of(&growth, &levels);
    Some(Finding {
        runs: of_device.levels_of_metric().map(|(run, _)| run).collect(),
        n_runs: levels.len(),
        evidence: growth.evidence,
        ..Finding::about(
            FindingKind::Growing,
            device.key.as_str(),
            device.idx,
            metric,
            Details::UnattributedGrowth(details),
        )
        .without_holder()
    })
}
