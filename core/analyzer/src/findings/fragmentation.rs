//! Memory that is free in the allocator but neither usable nor to be given back.
//!
//! A large cache is not fragmentation: (reserved − allocated) / reserved is a
//! cache ratio. What cannot be given back is the inactive split, the free blocks
//! of segments that are partly used.

use serde::Serialize;

use super::{Finding, FindingDetails, FindingKind, SeriesGrowth};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::growth::{GrowthShape, GrowthVerdict};
use crate::levels::DeviceSummary;
use crate::row::{Metric, Peak};
use crate::rules::Rules;
use crate::series::RunSeries;
use crate::stats_cache::StatsCache;
use gpumem_model::recording::{DeviceIdx, DeviceKind, Recording, RunIdx};
use gpumem_model::severity::Severity;
use gpumem_model::units::Bytes;

/// Free memory between held blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FragmentationDetails {
    /// Free inside partly used segments.
    #[serde(rename = "inactive_split_bytes")]
    pub inactive_split: Bytes,
    /// Reserved by the allocator.
    #[serde(rename = "reserved_bytes")]
    pub reserved: Bytes,
    /// The largest free block, if that is known.
    #[serde(rename = "largest_free_bytes")]
    pub largest_free: Option<Bytes>,
    /// In segments that are entirely free: what `empty_cache()` returns.
    #[serde(rename = "reclaimable_bytes")]
    pub reclaimable: Bytes,
    /// The run of which the recording tells where memory lay.
    #[serde(skip)]
    pub mapped: Option<RunIdx>,
    /// What kind of device it is.
    #[serde(skip)]
    pub device_kind: DeviceKind,
}

/// Less than this in free pieces is not worth a card.
const MIN_SPLIT: Bytes = Bytes::mib(64);

/// If this share of what is free lies in one piece, a request finds it as if nothing lay between.
const ONE_PIECE: f64 = 0.9;

/// What lies free on a device now, whatever run left it so.
pub(crate) fn on_devices(context: Context<'_>) -> Vec<Finding> {
    let devices = context.devices.iter();
    devices
        .filter_map(|device| split(context, device))
        .collect()
}

/// Cells that reserve more and more.
pub(super) fn of_cells(
    context: Context<'_>,
    of_runs: &[RunSeries<'_>],
    stats: &mut StatsCache,
) -> Vec<Finding> {
    let of_runs = of_runs.iter();
    of_runs
        .filter_map(|series| reserved_only(context, series, stats))
        .collect()
}

/// Enough of reserved memory is free next to held blocks to be worth a card.
pub(crate) fn is_in_pieces(inactive_split: Bytes, reserved: Bytes, rules: &Rules) -> bool {
    let share = inactive_split.as_f64() / reserved.as_f64().max(1.0);
    inactive_split >= MIN_SPLIT && share > rules.fragmentation_ratio
}

/// Much of what is reserved lies free between blocks that are held.
fn split(context: Context<'_>, device: &DeviceSummary) -> Option<Finding> {
    let Context {
        recording, rules, ..
    } = context;
    let (inactive_split, reserved) = (device.inactive_split?, device.reserved?);
    if !is_in_pieces(inactive_split, reserved, rules) {
        return None;
    }
    let share = inactive_split.as_f64() / reserved.as_f64().max(1.0);
    let largest_free = device.largest_free.or_else(|| {
        // Where the allocator counts none, the map knows, as long as memory lies as it shows.
        let found = recording
            .latest_mapped(device.device)?
            .found
            .as_ref()
            .ok()?;
        let is_now = found.split() == inactive_split && found.reserved() == reserved;
        is_now.then_some(found.largest_free)
    });
    let in_one = ONE_PIECE * inactive_split.as_f64();
    if largest_free.is_some_and(|largest| largest.as_f64() >= in_one) {
        return None;
    }
    let cached = reserved.saturating_sub(device.allocated.unwrap_or_default());
    let details = FragmentationDetails {
        inactive_split,
        reserved,
        largest_free,
        reclaimable: cached.saturating_sub(inactive_split),
        mapped: mapped(recording, device.device),
        device_kind: recording.device(device.device).kind,
    };
    let figures = [
        (Statistic::CacheRatio, device.cache_ratio()),
        (Statistic::LargestFree, largest_free.map(Bytes::as_f64)),
        (Statistic::Reclaimable, Some(details.reclaimable.as_f64())),
    ];
    let figures = figures
        .into_iter()
        .filter_map(|(statistic, value)| Some(Evidence::figure(statistic, value?)));
    let ratio = Evidence::met(
        Statistic::InactiveSplitRatio,
        share,
        rules.fragmentation_ratio,
    );
    Some(Finding {
        severity: Severity::Warning,
        n_runs: context.rows.for_device(device.device).len(),
        evidence: std::iter::once(ratio).chain(figures).collect(),
        ..Finding::about(
            FindingKind::Fragmentation,
            recording.device(device.device).key.as_str(),
            device.device,
            device.metric,
            FindingDetails::Fragmentation(details),
        )
    })
}

/// The run of which the recording tells where memory lay.
fn mapped(recording: &Recording, device: DeviceIdx) -> Option<RunIdx> {
    recording.latest_mapped(device).map(|mapped| mapped.run)
}

/// What is reserved beyond all that was ever in use at once: a cache of what was freed is none of it.
fn beyond_use(series: &RunSeries<'_>) -> Vec<Bytes> {
    let mut highest = Bytes::ZERO;
    let rows = series.rows.iter().filter_map(|row| {
        let peak = row.peak.map_or(Bytes::ZERO, Peak::low);
        highest = highest.max(peak).max(row.after.unwrap_or_default());
        Some(row.reserved.1?.saturating_sub(highest))
    });
    rows.collect()
}

/// Reserved grows from run to run over a flat allocated.
fn reserved_only(
    context: Context<'_>,
    series: &RunSeries<'_>,
    stats: &mut StatsCache,
) -> Option<Finding> {
    let Context {
        recording, rules, ..
    } = context;
    let last = series.rows.last()?;
    if last.metric != Metric::Allocated {
        return None;
    }
    let least = context.min_growth(series.key.device);
    let reserved: Vec<Bytes> = series
        .rows
        .iter()
        .filter_map(|row| row.reserved.1)
        .collect();
    let growth = stats.leak(&reserved, least, rules)?;
    stats.leak(&beyond_use(series), least, rules)?;
    let (of_allocated, _) = stats.state(&series.levels(), least, rules);
    if of_allocated != GrowthVerdict::Stable {
        return None;
    }
    let device = series.key.device;
    let details = FindingDetails::ReservedGrowth {
        growth: SeriesGrowth {
            shape: GrowthShape::Growth,
            ..SeriesGrowth::new(&growth, &reserved)
        },
        mapped: mapped(recording, device),
    };
    Some(Finding {
        cell: Some(CellRef::for_run(recording, recording.run(last.run))),
        path: series.key.path.clone(),
        runs: series.runs(),
        n_runs: reserved.len(),
        evidence: growth.evidence,
        ..Finding::about(
            FindingKind::Fragmentation,
            &series.key.id(recording),
            device,
            Metric::Allocated,
            details,
        )
        .without_holder()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inactive_split: Bytes, reserved: Bytes, expected: bool) {
        let found = is_in_pieces(inactive_split, reserved, &Rules::default());
        assert_eq!(found, expected);
    }

    #[test]
    fn pieces_are_worth_a_card_by_size_and_by_share() {
        check(Bytes::mib(500), Bytes::gib(1), true);
        check(Bytes::mib(20), Bytes::mib(40), false);
        check(Bytes::mib(100), Bytes::gib(1), false);
    }
}
