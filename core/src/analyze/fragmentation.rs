//! Memory that is free in the allocator but neither usable nor to be given back.
//!
//! A large cache is not fragmentation: (reserved − allocated) / reserved is a
//! cache ratio. What cannot be given back is the inactive split, the free blocks
//! of segments that are partly used.

use super::analyst::Courses;
use super::device_rows::Rows;
use super::finding::{Evidence, Figures, Finding, FindingKind};
use super::growth::{Shape, State};
use super::leak::min_growth;
use super::levels::{DeviceSummary, Lane, Peak};
use super::rules::Rules;
use super::series::{self, RunSeries};
use crate::recording::{DeviceIdx, DeviceKind, Recording};
use crate::severity::Severity;
use crate::units::Bytes;

/// Less than this in free pieces is not worth a card.
const MIN_SPLIT: Bytes = Bytes::mib(64);

pub(super) fn findings(
    recording: &Recording,
    rows: Rows<'_>,
    devices: &[DeviceSummary],
    of_runs: &[RunSeries<'_>],
    rules: &Rules,
    courses: &mut Courses,
) -> Vec<Finding> {
    let of_devices = devices
        .iter()
        .filter_map(|device| split(recording, rows, device, rules));
    let of_cells = of_runs
        .iter()
        .filter_map(|series| reserved_only(recording, series, rules, courses));
    of_devices.chain(of_cells).collect()
}

/// So much of what is reserved is free beside blocks that are held that it is worth a card.
///
/// ```
/// use gpumem_core::analyze::{Rules, is_in_pieces};
/// use gpumem_core::units::Bytes;
///
/// assert!(is_in_pieces(Bytes::mib(500), Bytes::gib(1), &Rules::default()));
/// assert!(!is_in_pieces(Bytes::mib(20), Bytes::mib(40), &Rules::default()));
/// ```
pub fn is_in_pieces(inactive_split: Bytes, reserved: Bytes, rules: &Rules) -> bool {
    let share = inactive_split.as_f64() / reserved.as_f64().max(1.0);
    inactive_split >= MIN_SPLIT && share > rules.fragmentation_ratio
}

/// Much of what is reserved lies free between blocks that are held.
fn split(
    recording: &Recording,
    rows: Rows<'_>,
    device: &DeviceSummary,
    rules: &Rules,
) -> Option<Finding> {
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
    let label = &recording.device(device.device).label;
    let mut evidence = vec![Evidence {
        name: "inactive_split_ratio",
        words: "free inside partly used segments, as a share of reserved".to_owned(),
        value: share,
        threshold: Some(rules.fragmentation_ratio),
        holds: true,
    }];
    evidence.extend(device.cache_ratio().map(|ratio| Evidence {
        name: "cache_ratio",
        words: "(reserved − allocated) / reserved".to_owned(),
        value: ratio,
        threshold: None,
        holds: true,
    }));
    evidence.extend(largest_free.map(|largest| Evidence {
        name: "largest_free_bytes",
        words: "the largest request that the cache can serve".to_owned(),
        value: largest.as_f64(),
        threshold: None,
        holds: true,
    }));
    let cached = reserved.saturating_sub(device.allocated.unwrap_or_default());
    let reclaimable = cached.saturating_sub(inactive_split);
    evidence.push(Evidence {
        name: "reclaimable_bytes",
        words: "in segments that are wholly free: what `empty_cache()` would give back".to_owned(),
        value: reclaimable.as_f64(),
        threshold: None,
        holds: true,
    });
    let pieces = largest_free.map_or_else(String::new, |largest| {
        format!(", the largest piece {largest}")
    });
    Some(Finding {
        id: format!("fragmentation/{}", recording.device(device.device).key),
        kind: FindingKind::Fragmentation,
        severity: Severity::Warning,
        state: State::Watch,
        withdrawn: None,
        shape: None,
        cell: None,
        path: Vec::new(),
        device: device.device,
        lane: device.lane,
        runs: Vec::new(),
        n_runs: rows.of(device.device).len(),
        steps: false,
        bytes_per_run: None,
        interval: None,
        runs_to_oom: None,
        figures: Some(figures(recording, device.device)),
        title: format!("{inactive_split} of {label} is free in pieces between held blocks"),
        detail: format!(
            "{:.0} % of the {reserved} reserved{pieces} · `empty_cache()` would give back {reclaimable}",
            100.0 * share
        ),
        holders: Vec::new(),
        fix: None,
        suggestions: against_splits(recording.device(device.device).kind),
        evidence,
        sparkline: Vec::new(),
    })
}

fn figures(recording: &Recording, device: DeviceIdx) -> Figures {
    let mapped = recording.latest_mapped(device).map(|mapped| mapped.run);
    Figures::Pieces { mapped }
}

fn against_splits(kind: DeviceKind) -> Vec<String> {
    let order =
        "allocate what lives long before what lives short, so that they do not share segments";
    let segments = "before the kernel starts, set \
                    `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: segments then grow in place";
    let advice: &[&str] = match kind {
        DeviceKind::Gpu => &[order, segments],
        _ => &[order],
    };
    advice.iter().map(|&advice| advice.to_owned()).collect()
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
    recording: &Recording,
    series: &RunSeries<'_>,
    rules: &Rules,
    courses: &mut Courses,
) -> Option<Finding> {
    let last = series.rows.last()?;
    if last.lane != Lane::Allocated {
        return None;
    }
    let least = min_growth(recording, series.key.device, rules);
    let reserved: Vec<Bytes> = series
        .rows
        .iter()
        .filter_map(|row| row.reserved.1)
        .collect();
    let growth = courses.leak(&reserved, least, rules)?;
    courses.leak(&beyond_use(series), least, rules)?;
    let (of_allocated, _) = courses.state(&series.levels(), least, rules);
    if of_allocated != State::None {
        return None;
    }
    let cell = series::cell_ref(recording, recording.run(last.run));
    let rate = growth.bytes_per_run.magnitude();
    Some(Finding {
        id: format!("reserved/{}", series.key.id(recording)),
        kind: FindingKind::Fragmentation,
        severity: Severity::Warning,
        state: State::Watch,
        withdrawn: None,
        shape: Some(Shape::Growth),
        title: format!(
            "{}: reserved grows by {rate} a run, allocated does not",
            cell.label
        ),
        detail: format!(
            "over {} runs · free blocks do not fit what the next run asks for",
            reserved.len()
        ),
        cell: Some(cell),
        path: series.key.path.clone(),
        device: series.key.device,
        lane: Lane::Allocated,
        runs: series.runs(),
        n_runs: reserved.len(),
        steps: false,
        bytes_per_run: Some(growth.bytes_per_run),
        interval: Some(growth.interval),
        runs_to_oom: None,
        figures: Some(figures(recording, series.key.device)),
        holders: Vec::new(),
        fix: None,
        suggestions: vec![
            "keep the sizes of a run's tensors alike (pad batches to a few lengths): then freed \
             blocks fit again"
                .to_owned(),
        ],
        evidence: growth.evidence,
        sparkline: reserved.iter().map(|level| level.as_f64()).collect(),
    })
}
