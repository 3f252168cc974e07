//! Growth that no cell and no loop explains: what runs of cells that ran before keep together.

use super::{Finding, FindingDetails, FindingKind, SeriesGrowth};
use crate::context::Context;
use crate::growth::GrowthVerdict;
use crate::stats_cache::StatsCache;
use gpumem_model::recording::{DeviceIdx, DeviceKind, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes};
use std::collections::HashSet;

/// Each cell has too few runs to be judged by itself; only a long course of all is worth a word.
const MIN_RUNS: usize = 30;

/// A finding says where the device grows.
pub(super) fn is_explained(found: &[Finding], device: DeviceIdx) -> bool {
    found.iter().any(|finding| {
        let grows = finding.state.is_some_and(GrowthVerdict::grows);
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
    let (runs, levels) = of_runs_again(context, device);
    if runs.len() < MIN_RUNS {
        return None;
    }
    let mut kept = 0;
    let own_levels = runs.iter().map(|run| {
        let row = context.rows.row(*run, device);
        kept += row.and_then(|row| row.kept).map_or(0, ByteDelta::get);
        Bytes::new(kept.max(0).unsigned_abs())
    });
    let own_levels: Vec<Bytes> = own_levels.collect();
    let least = context.min_growth(device);
    stats.leak(&levels, least, context.rules)?;
    let growth = stats.leak(&own_levels, least, context.rules)?;
    let device = context.recording.device(device);
    let details = SeriesGrowth::new(&growth, &own_levels);
    Some(Finding {
        n_runs: runs.len(),
        runs,
        evidence: growth.evidence,
        ..Finding::about(
            FindingKind::Growing,
            device.key.as_str(),
            device.idx,
            metric,
            FindingDetails::UnattributedGrowth(details),
        )
        .without_holder()
    })
}

/// The runs of cells that ran before, with the level after each. A notebook that is being written fills the
/// device cell by cell: cells that each run once are no series.
fn of_runs_again(context: Context<'_>, device: DeviceIdx) -> (Vec<RunIdx>, Vec<Bytes>) {
    let mut seen = HashSet::new();
    let levels = context.rows.columns(device).levels_of_metric();
    let again = levels.filter(|(run, _)| !seen.insert(context.recording.run(*run).revision));
    again.unzip()
}
