//! What a run needs for a moment: spikes, and re-runs that hold two copies.

use super::finding::{Evidence, Finding, FindingKind};
use super::levels::{DeviceSummary, Peak, RunRow};
use super::series::{self, RunSeries};
use super::trend;
use crate::recording::Recording;
use crate::severity::Severity;
use crate::units::Bytes;

/// Fewest runs against which one can stand out.
const MIN_RUNS: usize = 5;

/// A spike or a second copy below this share of the device is no concern.
const LEAST_SHARE: f64 = 0.05;

/// How much of the first run's result a later run holds twice, to be called doubling.
const COPY: f64 = 0.9;

pub(super) fn findings(
    recording: &Recording,
    devices: &[DeviceSummary],
    of_runs: &[RunSeries<'_>],
) -> Vec<Finding> {
    let of_each = |series: &RunSeries<'_>| {
        let capacity = devices
            .iter()
            .find(|device| device.device == series.key.device)?
            .capacity?;
        let least = LEAST_SHARE * capacity.as_f64();
        doubling(recording, series, least).or_else(|| spike(recording, series, least))
    };
    of_runs.iter().filter_map(of_each).collect()
}

/// How far a run rose above the higher of its ends.
fn excess(row: &RunRow) -> Option<Bytes> {
    let ends = row.before?.max(row.after?);
    Some(row.peak?.low().saturating_sub(ends))
}

/// One run rose above its ends far more than the others did: above the third
/// quartile by 1.5 interquartile ranges (Tukey 1977).
fn spike(recording: &Recording, series: &RunSeries<'_>, least: f64) -> Option<Finding> {
    let excesses: Vec<f64> = series
        .rows
        .iter()
        .filter_map(|row| excess(row))
        .map(Bytes::as_f64)
        .collect();
    if excesses.len() < MIN_RUNS || excesses.len() != series.rows.len() {
        return None;
    }
    let [low, high] = [0.25, 0.75].map(|share| trend::quantile(&excesses, share));
    let fence = high + 1.5 * (high - low);
    let (idx, highest) = excesses
        .iter()
        .copied()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    if highest <= fence || highest - high < least {
        return None;
    }
    let row = series.rows[idx];
    let run = recording.run(row.run);
    let cell = series::cell_ref(recording, run);
    let (shown, usual) = (Bytes::new(highest as u64), Bytes::new(high as u64));
    let number = run
        .execution_count
        .map_or_else(|| "one run".to_owned(), |n| format!("In [{n}]"));
    let subject = series.key.id(recording);
    Some(Finding {
        title: format!("{}: {number} needed {shown} for a moment", cell.label),
        detail: format!(
            "above its ends; {usual} is usual over {} runs",
            series.rows.len()
        ),
        cell: Some(cell),
        runs: vec![row.run],
        n_runs: series.rows.len(),
        suggestions: vec![
            "see what was larger in that run (a batch, a sequence, a validation pass)".to_owned(),
        ],
        evidence: vec![Evidence {
            name: "excess_bytes",
            words: "peak above the higher end, against the fence of the others".to_owned(),
            value: highest,
            threshold: Some(fence),
            holds: true,
        }],
        sparkline: excesses,
        ..Finding::about(FindingKind::Spike, &subject, series.key.device, row.lane)
    })
}

/// The first run kept something, later ones keep nothing more, but rise by as
/// much again: the name is bound to the old copy until the new one is ready.
fn doubling(recording: &Recording, series: &RunSeries<'_>, least: f64) -> Option<Finding> {
    let (first, later) = series.rows.split_first()?;
    let copy = first.kept?.as_f64();
    let is_second_copy = |row: &&&RunRow| {
        let is_same = row
            .kept
            .is_some_and(|kept| kept.as_f64().abs() < 0.1 * copy);
        let exact = row.peak.filter(|peak| matches!(peak, Peak::Exact(_)));
        let rose = exact
            .zip(row.before)
            .map(|(peak, before)| peak.low().since(before));
        is_same && rose.is_some_and(|rose| rose.as_f64() >= COPY * copy)
    };
    let doubled: Vec<&RunRow> = later.iter().filter(is_second_copy).copied().collect();
    let last = doubled.last().filter(|_| copy >= least)?;
    let cell = series::cell_ref(recording, recording.run(last.run));
    let shown = first.kept?.magnitude();
    let subject = series.key.id(recording);
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{} holds its old and its new {shown} at once", cell.label),
        detail: format!(
            "in {} of {} re-runs the peak stood a whole copy above the start",
            doubled.len(),
            later.len()
        ),
        cell: Some(cell),
        runs: doubled.iter().map(|row| row.run).collect(),
        n_runs: doubled.len(),
        suggestions: vec![
            "give the old copy up first: `del` the name at the top of the cell".to_owned(),
        ],
        evidence: vec![Evidence {
            name: "copy_bytes",
            words: "what the first run kept, and later ones hold twice".to_owned(),
            value: copy,
            threshold: Some(least),
            holds: true,
        }],
        ..Finding::about(
            FindingKind::Doubling,
            &subject,
            series.key.device,
            last.lane,
        )
    })
}
