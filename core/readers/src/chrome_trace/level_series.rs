//! One device's level over time.

use super::device::TraceDevice;
use super::model::{ChromeTrace, TraceChange};

/// A process's memory on one device: levels in bytes, which are relative to the trace's start if the
/// trace has no totals.
#[derive(Debug)]
pub(super) struct TraceLevelSeries {
    pub(super) process: u32,
    pub(super) device: TraceDevice,
    /// Whether the levels are totals.
    pub(super) is_absolute: bool,
    /// Before the first change.
    pub(super) at_start: i64,
    /// Numbers of the changes, in order of time.
    pub(super) changes: Vec<u32>,
    /// The time of each change and the level after it.
    times: Vec<i64>,
    levels: Vec<i64>,
    /// A tree of maxima over the levels: the node `n` covers the nodes `2n` and `2n+1`.
    maxima: Vec<i64>,
}

impl TraceLevelSeries {
    /// The series of all devices.
    pub(super) fn all(trace: &ChromeTrace) -> Vec<Self> {
        let key = |number: u32| {
            let change = &trace.changes[number as usize];
            (change.device, trace.process_of(change.thread))
        };
        let mut numbers: Vec<u32> = (0..trace.changes.len()).map(|n| n as u32).collect();
        numbers.sort_unstable_by_key(|&n| (key(n), trace.changes[n as usize].at, n));
        let devices = numbers.chunk_by(|a, b| key(*a) == key(*b));
        devices
            .filter_map(|numbers| Self::new(trace, numbers))
            .collect()
    }

    fn new(trace: &ChromeTrace, numbers: &[u32]) -> Option<Self> {
        let first = &trace.changes[*numbers.first()? as usize];
        let change = |number: &u32| &trace.changes[*number as usize];
        let is_absolute = numbers
            .iter()
            .map(change)
            .any(|change| change.allocated > Some(0));
        let at_start = if is_absolute {
            total(first).saturating_sub(first.bytes).max(0)
        } else {
            0
        };
        let mut level = at_start;
        let levels: Vec<i64> = numbers
            .iter()
            .map(|number| {
                let change = change(number);
                level = match change.allocated {
                    Some(_) if is_absolute => total(change),
                    _ => level.saturating_add(change.bytes),
                };
                level
            })
            .collect();
        let n_leaves = levels.len();
        let mut maxima = vec![i64::MIN; n_leaves];
        maxima.extend(&levels);
        for node in (1..n_leaves).rev() {
            maxima[node] = maxima[2 * node].max(maxima[2 * node + 1]);
        }
        Some(Self {
            process: trace.process_of(first.thread),
            device: first.device,
            is_absolute,
            at_start,
            changes: numbers.to_vec(),
            times: numbers.iter().map(|number| change(number).at).collect(),
            levels,
            maxima,
        })
    }

    /// The highest level and the position of the change that reached it first; `None` at the start.
    pub(super) fn peak(&self) -> (i64, Option<usize>) {
        let mut peak = (self.at_start, None);
        for (position, level) in self.levels.iter().enumerate() {
            if *level > peak.0 {
                peak = (*level, Some(position));
            }
        }
        peak
    }

    /// After each change.
    pub(super) fn levels(&self) -> &[i64] {
        &self.levels
    }

    pub(super) fn at_end(&self) -> i64 {
        self.levels.last().copied().unwrap_or(self.at_start)
    }

    /// The level after all changes before `at`.
    pub(super) fn before(&self, at: i64) -> i64 {
        self.after_first(self.times.partition_point(|time| *time < at))
    }

    /// The level after all changes until `at`.
    pub(super) fn until(&self, at: i64) -> i64 {
        self.after_first(self.times.partition_point(|time| *time <= at))
    }

    /// The highest level from `start` to `end`, with the one before.
    pub(super) fn peak_within(&self, start: i64, end: i64) -> i64 {
        let first = self.times.partition_point(|time| *time < start);
        let last = self.times.partition_point(|time| *time <= end);
        let mut peak = self.after_first(first);
        let n_leaves = self.levels.len();
        let (mut low, mut high) = (first + n_leaves, last.max(first) + n_leaves);
        while low < high {
            if low % 2 == 1 {
                peak = peak.max(self.maxima[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                peak = peak.max(self.maxima[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        peak
    }

    fn after_first(&self, n_changes: usize) -> i64 {
        let last = n_changes
            .checked_sub(1)
            .and_then(|last| self.levels.get(last));
        last.copied().unwrap_or(self.at_start)
    }
}

fn total(change: &TraceChange) -> i64 {
    i64::try_from(change.allocated.unwrap_or(0)).unwrap_or(i64::MAX)
}
