//! One row per (run, device), derived from the raw readings.

mod peak;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use gpumem_model::recording::{
    AllocatorLevels, DeviceIdx, Level, Reading, Recording, Run, RunIdx, RunLevels, Series, Source,
    Unknown,
};
use gpumem_model::units::{Bytes, Nanos};

use self::peak::peak;
use super::device_rows::{DeviceRows, RowsByDevice};
use super::limits::{Limit, limits};
use super::ongoing::Ongoing;
use super::overlaps;
use super::row::{Metric, Overlap, RunRow, of_sample};

/// The latest levels of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSummary {
    /// Which device.
    pub device: DeviceIdx,
    /// The metric that growth is judged on.
    pub metric: Metric,
    /// Latest allocated.
    pub allocated: Option<Bytes>,
    /// Part of allocated: what was requested, before rounding to blocks.
    pub requested: Option<Bytes>,
    /// Latest reserved.
    pub reserved: Option<Bytes>,
    /// Latest inactive split.
    pub inactive_split: Option<Bytes>,
    /// Latest largest free block.
    pub largest_free: Option<Bytes>,
    /// Latest use of this process.
    pub process_used: Option<Bytes>,
    /// Latest use of the processes that this one began, as far as it is known.
    pub children_used: Option<Bytes>,
    /// Latest use of every process.
    pub device_used: Option<Bytes>,
    /// The limits that apply, the smallest first.
    pub limits: Vec<Limit>,
    /// The smallest limit that applies, as it was read last.
    pub capacity: Option<Bytes>,
    /// The highest level of the metric in any run.
    pub peak: Option<Bytes>,
}

impl DeviceSummary {
    /// The levels of one reading, outside of any run.
    pub fn now(device: DeviceIdx, reading: &Reading) -> Self {
        let totals = Totals::from_reading(reading);
        Self {
            device,
            metric: metric_of(&totals, &totals),
            allocated: totals.allocated,
            requested: totals.requested,
            reserved: totals.reserved,
            inactive_split: totals.inactive_split,
            largest_free: totals.largest_free,
            process_used: totals.process_used,
            children_used: reading.driver.children_used.known(),
            device_used: totals.device_used,
            limits: limits(reading),
            capacity: totals.capacity,
            peak: None,
        }
    }

    /// Free bytes under the limit that leaves least.
    pub fn free(&self) -> Option<Bytes> {
        self.limits.iter().filter_map(Limit::free).min()
    }

    /// (reserved − allocated) / reserved: the share that is free in the allocator, but not in the driver.
    pub fn cache_ratio(&self) -> Option<f64> {
        let reserved = self.reserved.filter(|it| *it > Bytes::ZERO)?;
        Some(self.cached()?.as_f64() / reserved.as_f64())
    }

    /// Free in the allocator, but not in the driver.
    pub fn cached(&self) -> Option<Bytes> {
        Some(self.reserved?.saturating_sub(self.allocated?))
    }
}

/// One row per (ended run, device).
pub(super) fn rows(recording: &Recording) -> Vec<RunRow> {
    let ongoing = Ongoing::new(recording, recording.runs());
    let runs = recording.runs().iter();
    runs.flat_map(|run| rows_of(recording, &ongoing, run))
        .collect()
}

/// Those of one run.
pub(super) fn rows_of<'a>(
    recording: &'a Recording,
    ongoing: &'a Ongoing,
    run: &'a Run,
) -> impl ExactSizeIterator<Item = RunRow> {
    let levels = run.levels.iter();
    levels.map(move |levels| row(recording, ongoing, run, levels))
}

/// What was read around each run, in the order of the rows.
fn all_levels(recording: &Recording) -> impl Iterator<Item = (&Run, &RunLevels)> {
    let runs = recording.runs().iter();
    runs.flat_map(|run| run.levels.iter().map(move |levels| (run, levels)))
}

/// The latest levels of each device that was read.
pub(super) fn summaries(recording: &Recording, rows: RowsByDevice<'_>) -> Vec<DeviceSummary> {
    let latest = || rows.of_devices().map(|(_, last)| rows.at(last));
    let goes_on = |run: &RunIdx| recording.run(*run).ended.is_none();
    let first = latest().map(|(row, _)| row.run).filter(goes_on).min();
    let open = first.map_or(&[][..], |first| &recording.runs()[first.get()..]);
    let ongoing = Ongoing::new(recording, open);
    let summary = |(of_device, last): (&DeviceRows, usize)| {
        let (row, idx) = rows.at(last);
        let run = recording.run(row.run);
        let levels = run.levels.get(idx)?;
        let known = levels.after.as_ref().unwrap_or(&levels.before);
        let inside = ongoing.reading(row.run, row.device, known);
        let later = read_later(recording, run, row.device).filter(|_| inside.is_none());
        let outside = recording.outside_reading(row.device);
        let now = outside.or(later).or(inside.as_ref()).unwrap_or(known);
        let now = DeviceSummary::now(row.device, now);
        // A driver does not always answer in time.
        let read_last = || {
            rows.for_device(row.device)
                .rev()
                .find_map(|row| row.capacity)
        };
        Some(DeviceSummary {
            metric: row.metric,
            peak: of_device.peak,
            capacity: now.capacity.or_else(read_last),
            ..now
        })
    };
    rows.of_devices().filter_map(summary).collect()
}

/// The levels of a device at the end of a run that began earlier and ended later.
fn read_later<'a>(recording: &'a Recording, run: &Run, device: DeviceIdx) -> Option<&'a Reading> {
    let others = recording.overlapping(run).filter(|it| it.ended > run.ended);
    let last = others.max_by_key(|it| it.ended)?;
    last.levels_on(device)?.after.as_ref()
}

/// What could not be read. `wording::warning` has the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// A part of the recording's file, in the reader's words.
    Missing(String),
    /// A source failed to read a device.
    SourceFailed {
        /// The device.
        device: DeviceIdx,
        /// The name of an allocator's source; `None` for the driver.
        source: Option<Source>,
        /// The source's message.
        said: String,
    },
}

/// What is missing, and what could not be read of each device and source.
pub(super) fn warnings(recording: &Recording) -> Vec<Warning> {
    let missing = recording.missing();
    let mut warnings: Vec<Warning> = missing.map(|it| Warning::Missing(it.to_owned())).collect();
    let mut reported = HashSet::new();
    for (_, levels) in all_levels(recording) {
        for reading in std::iter::once(&levels.before).chain(&levels.after) {
            for (source, said) in failures(reading) {
                if reported.insert((levels.device, source, said)) {
                    warnings.push(Warning::SourceFailed {
                        device: levels.device,
                        source,
                        said: said.to_owned(),
                    });
                }
            }
        }
    }
    warnings
}

fn failures(reading: &Reading) -> impl Iterator<Item = (Option<Source>, &str)> {
    let of_driver = [&reading.driver.device_used, &reading.driver.process_used];
    let of_allocators = reading
        .allocators
        .iter()
        .map(|levels| (Some(levels.source), &levels.allocated));
    of_driver
        .into_iter()
        .map(|level| (None, level))
        .chain(of_allocators)
        .filter_map(|(source, level)| match level {
            Level::Unknown(Unknown::Failed(words)) => Some((source, words.as_str())),
            _ => None,
        })
}

/// Totals of one reading over its allocators.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    has_allocator: bool,
    allocated: Option<Bytes>,
    /// All bytes that an allocator handed out, if it does not report requested bytes.
    requested: Option<Bytes>,
    reserved: Option<Bytes>,
    inactive_split: Option<Bytes>,
    largest_free: Option<Bytes>,
    device_used: Option<Bytes>,
    process_used: Option<Bytes>,
    capacity: Option<Bytes>,
    n_retries: Option<u64>,
    n_blocks: Option<u64>,
}

impl Totals {
    fn from_reading(reading: &Reading) -> Self {
        let mut allocators = reading.allocators.iter();
        Self {
            has_allocator: allocators.any(AllocatorLevels::has_started),
            allocated: reading.total(|levels| &levels.allocated),
            requested: reading.handed_out().map(|all| all.n_bytes),
            reserved: reading.total(|levels| &levels.reserved),
            inactive_split: reading.inactive_split(),
            largest_free: reading
                .allocators
                .iter()
                .filter_map(|levels| levels.largest_free.known())
                .max(),
            device_used: reading.driver.device_used.known(),
            process_used: reading.driver.process_used.known(),
            capacity: limits(reading).first().map(|limit| limit.bytes),
            n_retries: reading
                .allocators
                .iter()
                .filter_map(succeeded_retries)
                .reduce(u64::saturating_add),
            n_blocks: reading.n_blocks(),
        }
    }

    fn of_metric(&self, metric: Metric) -> Option<Bytes> {
        match metric {
            Metric::Allocated => self.allocated,
            Metric::ProcessUsed => self.process_used,
            Metric::DeviceUsed => self.device_used,
        }
    }
}

/// Allocators count a flush that did not help among their retries, too.
fn succeeded_retries(levels: &AllocatorLevels) -> Option<u64> {
    let n_ooms = levels.n_ooms.unwrap_or_default();
    Some(levels.n_retries?.saturating_sub(n_ooms))
}

/// A run's totals on a device before it and after it; all unknown while it has no end.
fn totals_of(levels: &RunLevels) -> (Totals, Totals) {
    let after = levels.after.as_ref().map(Totals::from_reading);
    (
        Totals::from_reading(&levels.before),
        after.unwrap_or_default(),
    )
}

fn row(recording: &Recording, ongoing: &Ongoing, run: &Run, levels: &RunLevels) -> RunRow {
    let (before, after) = totals_of(levels);
    let metric = metric_of(&before, &after);
    let (from, to) = (start_of(metric, &before, &after), after.of_metric(metric));
    RunRow {
        run: run.idx,
        device: levels.device,
        metric,
        before: from,
        after: to,
        so_far: so_far(
            (recording, ongoing),
            run,
            levels.device,
            metric,
            from,
            &before,
        ),
        kept: from.zip(to).map(|(from, to)| to.since(from)),
        overlap: overlap(recording, run, (levels.device, metric), [from, to]),
        peak: peak(recording, run, levels, metric, [from, to]),
        allocated: (before.allocated, after.allocated),
        reserved: (before.reserved, after.reserved),
        process_used: (before.process_used, after.process_used),
        device_used: (before.device_used, after.device_used),
        capacity: after.capacity.or(before.capacity),
        n_blocks: (n_blocks_at_start(&before, &after), after.n_blocks),
        n_retries: before
            .n_retries
            .zip(after.n_retries)
            .map(|(before, after)| after.saturating_sub(before)),
    }
}

/// The metric in a run that goes on. Where an allocator can be read at marks, in loops and at ends alone, what
/// the driver's figure has risen by since stands for what it has handed out.
fn so_far(
    (recording, ongoing): (&Recording, &Ongoing),
    run: &Run,
    device: DeviceIdx,
    metric: Metric,
    from: Option<Bytes>,
    before: &Totals,
) -> Option<Bytes> {
    let figure = match before.process_used {
        Some(_) => Metric::ProcessUsed,
        None => Metric::DeviceUsed,
    };
    let (now_at, now) = ongoing.level(run.idx, device, figure).unzip();
    let risen_since = |at: Nanos| {
        let sampled = recording.samples(run.idx, device, &Series::Sampled);
        let then = sampled.iter().rfind(|it| it.at <= at)?;
        let is_later = now_at > Some(at);
        let now = now.filter(|_| is_later)?;
        Some(now.saturating_sub(of_sample(&then, figure)?))
    };
    match ongoing.level(run.idx, device, metric) {
        Some((at, level)) => Some(level + risen_since(at).unwrap_or_default()),
        None => Some(from? + now?.saturating_sub(before.of_metric(figure)?)),
    }
}

/// The first metric that is known at the run's end, or, while it runs, at its start.
fn metric_of(before: &Totals, after: &Totals) -> Metric {
    let known = |totals: &Totals| {
        Metric::ALL
            .into_iter()
            .find(|metric| totals.of_metric(*metric).is_some())
    };
    known(after)
        .or_else(|| known(before))
        .unwrap_or(Metric::DeviceUsed)
}

/// An allocator that woke up inside the run had allocated nothing before it. One that was there
/// and could not be read is none of them.
fn woke_up(before: &Totals, after: &Totals) -> bool {
    !before.has_allocator && after.allocated.is_some()
}

fn n_blocks_at_start(before: &Totals, after: &Totals) -> Option<u64> {
    if woke_up(before, after) {
        Some(0)
    } else {
        before.n_blocks
    }
}

/// The metric's level at the start.
fn start_of(metric: Metric, before: &Totals, after: &Totals) -> Option<Bytes> {
    if metric == Metric::Allocated && woke_up(before, after) {
        return Some(Bytes::ZERO);
    }
    before.of_metric(metric)
}

/// What the metric moved by while other runs were under way, if some were.
fn overlap(
    recording: &Recording,
    run: &Run,
    (device, metric): (DeviceIdx, Metric),
    ends: [Option<Bytes>; 2],
) -> Option<Overlap> {
    if run.overlaps.is_empty() {
        return None;
    }
    let ends_of = |other: &Run| {
        let Some(levels) = other.levels_on(device) else {
            return [None, None];
        };
        let (before, after) = totals_of(levels);
        [start_of(metric, &before, &after), after.of_metric(metric)]
    };
    let moved = overlaps::moved(recording, run, ends, ends_of);
    Some(Overlap { moved })
}
