//! What a run needs for a moment: spikes, and (`doubling`) re-runs that hold two copies.

use super::doubling;
use super::{Finding, FindingDetails, FindingKind};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::row::{Peak, RunRow};
use crate::series::RunSeries;
use crate::trend;
use gpumem_model::units::Bytes;

/// Fewest runs against which one can stand out.
const MIN_RUNS: usize = 5;

/// A spike or a second copy below this share of the device is no concern.
const LEAST_SHARE: f64 = 0.05;

pub(super) fn findings(context: Context<'_>, of_runs: &[RunSeries<'_>]) -> Vec<Finding> {
    let of_each = |series: &RunSeries<'_>| {
        let least = LEAST_SHARE * context.capacity(series.key.device)?.as_f64();
        doubling::finding(context, series, least).or_else(|| spike(context, series, least))
    };
    of_runs.iter().filter_map(of_each).collect()
}

/// How far a run rose above the higher of its ends, at least and at most; `None` where nothing
/// bounds it from above.
fn excess(row: &RunRow) -> Option<(Bytes, Bytes)> {
    let ends = row.before?.max(row.after?);
    let (low, high) = match row.peak? {
        Peak::Exact(level) => (level, level),
        Peak::Between { low, high } => (low, high),
        Peak::AtLeast(_) => return None,
    };
    Some((low.saturating_sub(ends), high.saturating_sub(ends)))
}

/// One run rose above its ends far more than the others did: above the third
/// quartile by 1.5 interquartile ranges (Tukey 1977).
///
/// The run by what is certain, the others by the most that they can have needed: an allocator's
/// peak that did not rise again tells no more of a run than that it stayed below.
fn spike(context: Context<'_>, series: &RunSeries<'_>, least: f64) -> Option<Finding> {
    let excesses: Option<Vec<(Bytes, Bytes)>> = series.rows.iter().map(|row| excess(row)).collect();
    let excesses = excesses.filter(|excesses| excesses.len() >= MIN_RUNS)?;
    let at_most: Vec<f64> = excesses.iter().map(|(_, most)| most.as_f64()).collect();
    let [low, high] = [0.25, 0.75].map(|share| trend::quantile(&at_most, share));
    let fence = high + 1.5 * (high - low);
    let (idx, highest) = excesses
        .iter()
        .map(|(least, _)| least.as_f64())
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    if highest <= fence || highest - high < least {
        return None;
    }
    let row = series.rows[idx];
    let recording = context.recording;
    let details = FindingDetails::Spike {
        excess: Bytes::new(highest as u64),
        usual: Bytes::new(high as u64),
    };
    Some(Finding {
        cell: Some(CellRef::for_run(recording, recording.run(row.run))),
        runs: vec![row.run],
        n_runs: series.rows.len(),
        evidence: vec![Evidence::met(Statistic::Excess, highest, fence)],
        ..Finding::about(
            FindingKind::Spike,
            &series.key.id(recording),
            series.key.device,
            row.metric,
            details,
        )
    })
}
