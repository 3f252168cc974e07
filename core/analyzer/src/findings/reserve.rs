//! How runs deal with the driver: pressure, repeated and inefficient reservation,
//! and what grows beside the allocator.

use super::{Finding, FindingDetails, FindingKind, SeriesGrowth};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::levels::DeviceSummary;
use crate::row::{Metric, RunRow};
use crate::series::RunSeries;
use crate::stats_cache::StatsCache;
use gpumem_model::recording::{Recording, RunIdx, Status};
use gpumem_model::severity::Severity;
use gpumem_model::units::Bytes;

/// Reservations below this are not worth a word.
const LEAST: Bytes = Bytes::mib(256);

/// A device of which less than this share can still be used is nearly full.
const NEARLY_FULL: f64 = 0.05;

/// Fewest runs that make a habit.
const MIN_RUNS: usize = 5;

/// Runs that use less than this share of what they reserve are inefficient.
const EFFICIENT: f64 = 0.5;

pub(super) fn findings(
    context: Context<'_>,
    of_runs: &[RunSeries<'_>],
    stats: &mut StatsCache,
) -> Vec<Finding> {
    let of_each = context.devices.iter().flat_map(|device| {
        let pressure = pressure(context, device);
        pressure.into_iter().chain(gap(context, device, stats))
    });
    let recording = context.recording;
    let of_cells = of_runs.iter().filter_map(|series| {
        repeated(recording, series).or_else(|| inefficient(recording, series))
    });
    of_each.chain(of_cells).collect()
}

/// Allocations that succeeded only after the cache was flushed.
fn pressure(context: Context<'_>, device: &DeviceSummary) -> Option<Finding> {
    let recording = context.recording;
    let flushes = context.rows.columns(device.device).flushes.iter();
    let pressed = flushes.filter(|(run, _)| !has_run_out(recording, *run));
    let pressed: Vec<(RunIdx, u64)> = pressed.copied().collect();
    let Some((last, _)) = pressed.last().copied() else {
        return nearly_full(context, device);
    };
    // A loaded file may tell of any number.
    let n_flushes = pressed
        .iter()
        .fold(0, |all: u64, (_, n)| all.saturating_add(*n));
    Some(Finding {
        severity: Severity::Warning,
        cell: Some(CellRef::for_run(recording, recording.run(last))),
        runs: pressed.iter().map(|(run, _)| *run).collect(),
        n_runs: pressed.len(),
        evidence: vec![Evidence::met(Statistic::NRetries, n_flushes as f64, 0.0)],
        ..Finding::about(
            FindingKind::Pressure,
            recording.device(device.device).key.as_str(),
            device.device,
            device.metric,
            FindingDetails::Pressure {
                n_flushes,
                usable: None,
            },
        )
    })
}

/// Memory ran out in it: that has a finding of its own.
fn has_run_out(recording: &Recording, run: RunIdx) -> bool {
    let run = recording.run(run);
    run.oom.is_some() || run.status == Status::OutOfMemory
}

/// Hardly anything can still be used, although no request had to wait yet.
fn nearly_full(context: Context<'_>, device: &DeviceSummary) -> Option<Finding> {
    let recording = context.recording;
    let (about, capacity) = (recording.device(device.device), device.capacity?);
    // A framework may have taken the whole device for itself, and not say what of it is free.
    if device.allocated.is_some() && device.reserved.is_none() {
        return None;
    }
    let usable = device.free()? + device.cached().unwrap_or_default();
    let least = NEARLY_FULL * capacity.as_f64();
    if !about.kind.is_accelerator() || usable.as_f64() >= least {
        return None;
    }
    let (last, ..) = *context.rows.columns(device.device).levels.last()?;
    if has_run_out(recording, last) {
        return None;
    }
    Some(Finding {
        severity: Severity::Warning,
        runs: vec![last],
        n_runs: 1,
        evidence: vec![Evidence {
            threshold: Some(least),
            ..Evidence::figure(Statistic::Usable, usable.as_f64())
        }],
        ..Finding::about(
            FindingKind::Pressure,
            about.key.as_str(),
            device.device,
            device.metric,
            FindingDetails::Pressure {
                n_flushes: 0,
                usable: Some(usable),
            },
        )
    })
}

/// What this process holds on the device beside what its allocator reserved.
fn gap(context: Context<'_>, device: &DeviceSummary, stats: &mut StatsCache) -> Option<Finding> {
    let of_device = context.rows.columns(device.device);
    let gaps: Vec<Bytes> = of_device.gaps.iter().map(|(_, gap)| *gap).collect();
    let growth = stats.leak(&gaps, context.min_growth(device.device), context.rules)?;
    let details = FindingDetails::Gap(SeriesGrowth::new(&growth, &gaps));
    Some(Finding {
        runs: of_device.gaps.iter().map(|(run, _)| *run).collect(),
        n_runs: gaps.len(),
        evidence: growth.evidence,
        ..Finding::about(
            FindingKind::Gap,
            context.recording.device(device.device).key.as_str(),
            device.device,
            Metric::ProcessUsed,
            details,
        )
        .without_holder()
    })
}

/// Reserved rises and falls back in run after run: segments go to and fro
/// between allocator and driver, as `empty_cache()` in a loop makes them do.
fn repeated(recording: &Recording, series: &RunSeries<'_>) -> Option<Finding> {
    let gave_back = |row: &&&RunRow| {
        let (before, after) = row.reserved;
        let rose = row
            .peak
            .zip(before)
            .map(|(peak, before)| peak.low().since(before).as_f64());
        let stays = before
            .zip(after)
            .is_some_and(|(before, after)| after <= before);
        stays && rose.is_some_and(|rose| rose >= LEAST.as_f64())
    };
    let to_and_fro: Vec<&RunRow> = series.rows.iter().filter(gave_back).copied().collect();
    let last = to_and_fro.last()?;
    if to_and_fro.len() < MIN_RUNS {
        return None;
    }
    let details = FindingDetails::Repeated {
        n_all: series.rows.len(),
    };
    Some(Finding {
        cell: Some(CellRef::for_run(recording, recording.run(last.run))),
        runs: to_and_fro.iter().map(|row| row.run).collect(),
        n_runs: to_and_fro.len(),
        ..Finding::about(
            FindingKind::Repeated,
            &series.key.id(recording),
            series.key.device,
            last.metric,
            details,
        )
    })
}

/// Runs that reserve much more than their peak ever needs.
fn inefficient(recording: &Recording, series: &RunSeries<'_>) -> Option<Finding> {
    let share = |row: &RunRow| {
        let (before, after) = row.reserved;
        let reserved = after?.since(before?).as_f64();
        let used = row.peak?.low().since(row.before?).as_f64();
        (reserved >= LEAST.as_f64()).then_some(used / reserved)
    };
    let poor: Vec<(&RunRow, f64)> = series
        .rows
        .iter()
        .filter_map(|row| Some((*row, share(row)?)))
        .filter(|(_, share)| (0.0..EFFICIENT).contains(share))
        .collect();
    let (last, used_share) = *poor.last()?;
    if poor.len() < 3 {
        return None;
    }
    Some(Finding {
        cell: Some(CellRef::for_run(recording, recording.run(last.run))),
        runs: poor.iter().map(|(row, _)| row.run).collect(),
        n_runs: poor.len(),
        evidence: vec![Evidence::met(Statistic::UsedShare, used_share, EFFICIENT)],
        ..Finding::about(
            FindingKind::Inefficient,
            &series.key.id(recording),
            series.key.device,
            last.metric,
            FindingDetails::Inefficient { used_share },
        )
    })
}
