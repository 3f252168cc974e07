//! How runs deal with the driver: pressure, repeated and inefficient reservation,
//! and what grows beside the allocator.

use super::analyst::Courses;
use super::device_rows::{DeviceRows, Rows};
use super::finding::{Evidence, Finding, FindingKind};
use super::leak::min_growth;
use super::levels::{DeviceSummary, Lane, RunRow};
use super::rules::Rules;
use super::series::{self, RunSeries};
use crate::recording::Recording;
use crate::severity::Severity;
use crate::units::Bytes;

/// Reservations below this are not worth a word.
const LEAST: Bytes = Bytes::mib(256);

/// Fewest runs that make a habit.
const MIN_RUNS: usize = 5;

/// Runs that use less than this share of what they reserve are inefficient.
const EFFICIENT: f64 = 0.5;

pub(super) fn findings(
    recording: &Recording,
    rows: Rows<'_>,
    devices: &[DeviceSummary],
    of_runs: &[RunSeries<'_>],
    rules: &Rules,
    courses: &mut Courses,
) -> Vec<Finding> {
    let of_each = devices.iter().flat_map(|device| {
        let of_device = rows.columns(device.device);
        let pressure = pressure(recording, of_device, device);
        pressure
            .into_iter()
            .chain(gap(recording, of_device, device, rules, courses))
    });
    let of_cells = of_runs.iter().filter_map(|series| {
        repeated(recording, series).or_else(|| inefficient(recording, series))
    });
    of_each.chain(of_cells).collect()
}

/// Allocations that succeeded only after the cache was flushed.
fn pressure(
    recording: &Recording,
    of_device: &DeviceRows,
    device: &DeviceSummary,
) -> Option<Finding> {
    let pressed = &of_device.flushes;
    let (last, _) = *pressed.last()?;
    let n_retries: u64 = pressed.iter().map(|(_, n)| n).sum();
    let label = &recording.device(device.device).label;
    let cell = series::cell_ref(recording, recording.run(last));
    Some(Finding {
        severity: Severity::Warning,
        title: format!("{label} is at its edge: the allocator flushed its cache {n_retries} times"),
        detail: format!(
            "in {} runs, last in {} · each flush costs time, the next request may fail",
            pressed.len(),
            cell.label
        ),
        cell: Some(cell),
        runs: pressed.iter().map(|(run, _)| *run).collect(),
        n_runs: pressed.len(),
        suggestions: vec![
            "use smaller batches, or free what is not needed before the largest step".to_owned(),
        ],
        evidence: vec![Evidence {
            name: "n_retries",
            words: "allocations that succeeded only after the cache was flushed".to_owned(),
            value: n_retries as f64,
            threshold: Some(0.0),
            holds: true,
        }],
        ..Finding::about(
            FindingKind::Pressure,
            recording.device(device.device).key.as_str(),
            device.device,
            device.lane,
        )
    })
}

/// What this process holds on the device beside what its allocator reserved.
fn gap(
    recording: &Recording,
    of_device: &DeviceRows,
    device: &DeviceSummary,
    rules: &Rules,
    courses: &mut Courses,
) -> Option<Finding> {
    let gaps: Vec<Bytes> = of_device.gaps.iter().map(|(_, gap)| *gap).collect();
    let growth = courses.leak(&gaps, min_growth(recording, device.device, rules), rules)?;
    let label = &recording.device(device.device).label;
    let rate = growth.bytes_per_run.magnitude();
    Some(Finding {
        severity: Severity::Warning,
        shape: Some(growth.shape),
        title: format!("{label}: {rate} more a run outside the framework"),
        detail: format!(
            "over {} runs · held by this process, not by its caching allocator",
            gaps.len()
        ),
        runs: of_device.gaps.iter().map(|(run, _)| *run).collect(),
        n_runs: gaps.len(),
        bytes_per_run: Some(growth.bytes_per_run),
        interval: Some(growth.interval),
        suggestions: vec![
            "look at what allocates by itself: another framework, a custom kernel, CUDA graphs, \
             communicators, workspaces"
                .to_owned(),
        ],
        evidence: growth.evidence,
        sparkline: gaps.iter().map(|gap| gap.as_f64()).collect(),
        ..Finding::about(
            FindingKind::Gap,
            recording.device(device.device).key.as_str(),
            device.device,
            Lane::ProcessUsed,
        )
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
    let cell = series::cell_ref(recording, recording.run(last.run));
    let subject = series.key.id(recording);
    Some(Finding {
        title: format!(
            "{} takes memory from the driver in every run and gives it back",
            cell.label
        ),
        detail: format!("in {} of {} runs", to_and_fro.len(), series.rows.len()),
        cell: Some(cell),
        runs: to_and_fro.iter().map(|row| row.run).collect(),
        n_runs: to_and_fro.len(),
        suggestions: vec![
            "leave `empty_cache()` out of what runs often: the cache is what makes allocation fast"
                .to_owned(),
        ],
        ..Finding::about(
            FindingKind::Repeated,
            &subject,
            series.key.device,
            last.lane,
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
    let (last, least) = *poor.last()?;
    if poor.len() < 3 {
        return None;
    }
    let cell = series::cell_ref(recording, recording.run(last.run));
    let subject = series.key.id(recording);
    Some(Finding {
        title: format!("{} reserves much more than it uses", cell.label),
        detail: format!(
            "in {} runs, last {:.0} % of what it reserved",
            poor.len(),
            100.0 * least
        ),
        cell: Some(cell),
        runs: poor.iter().map(|(row, _)| row.run).collect(),
        n_runs: poor.len(),
        suggestions: vec![
            "many sizes that differ a little each leave a free block: round them to a few"
                .to_owned(),
        ],
        evidence: vec![Evidence {
            name: "used_share",
            words: "rise of the peak over rise of reserved".to_owned(),
            value: least,
            threshold: Some(EFFICIENT),
            holds: true,
        }],
        ..Finding::about(
            FindingKind::Inefficient,
            &subject,
            series.key.device,
            last.lane,
        )
    })
}
