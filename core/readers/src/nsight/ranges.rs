//! NVTX ranges as runs, and the calls that failed in them.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::levels::ProcessLevels;
use super::{Capture, NsightFailure, RangeTally, pid, plain_name};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// At most this many ranges are searched for those around a failed call.
const N_SEARCHED: usize = 100_000;

/// Levels are searched for their peak in parts of this many.
const PART: usize = 256;

/// The first failed calls are kept, at most this many.
const N_FAILED: usize = 1000;

/// The levels of one process, with the peak of each part of them.
struct PeakIndex<'l> {
    levels: &'l [(i64, Bytes)],
    peaks: Vec<Bytes>,
}

impl<'l> PeakIndex<'l> {
    fn new(levels: &'l [(i64, Bytes)]) -> Self {
        let peak = |part: &[(i64, Bytes)]| part.iter().map(|(_, level)| *level).max();
        Self {
            levels,
            peaks: levels.chunks(PART).filter_map(peak).collect(),
        }
    }

    /// Number of levels until an instant.
    fn n_until(&self, at: i64) -> usize {
        self.levels.partition_point(|(time, _)| *time <= at)
    }

    fn level(&self, n_until: usize) -> Bytes {
        let at = n_until.checked_sub(1).and_then(|at| self.levels.get(at));
        at.map_or(Bytes::ZERO, |(_, level)| *level)
    }

    /// The highest level from the one at the start on.
    fn peak(&self, from: usize, to: usize) -> Bytes {
        let from = from.saturating_sub(1);
        let (first, last) = (from.div_ceil(PART), to / PART);
        let slow = |from: usize, to: usize| {
            let levels = self.levels.get(from..to).unwrap_or_default();
            levels
                .iter()
                .map(|(_, level)| *level)
                .max()
                .unwrap_or_default()
        };
        if first >= last {
            return slow(from, to);
        }
        let parts = self.peaks.get(first..last).unwrap_or_default().iter().max();
        let ends = slow(from, first * PART).max(slow(last * PART, to));
        ends.max(parts.copied().unwrap_or_default())
    }
}

/// Memory kept by the ranges of each name, the most first.
pub(super) fn tallies(capture: &Capture, levels: &ProcessLevels) -> Vec<RangeTally> {
    let searched: HashMap<u64, PeakIndex<'_>> = levels
        .iter()
        .map(|(pid, levels)| (*pid, PeakIndex::new(levels)))
        .collect();
    let end = end_of(capture);
    let mut by_name: HashMap<&str, RangeTally> = HashMap::new();
    for range in &capture.ranges {
        let range_end = range.end_nanos.unwrap_or(end).max(range.start_nanos);
        let duration = range_end.saturating_sub(range.start_nanos);
        let tally = by_name.entry(&range.name).or_insert_with(|| RangeTally {
            name: range.name.to_string(),
            n: 0,
            n_grew: 0,
            kept: ByteDelta::ZERO,
            most_kept: ByteDelta::new(i64::MIN),
            peak: Bytes::ZERO,
            duration: Nanos::ZERO,
        });
        tally.n += 1;
        tally.duration += Nanos::new(u64::try_from(duration).unwrap_or(0));
        let mut kept = ByteDelta::ZERO;
        if let Some(process) = searched.get(&pid(range.global_tid)) {
            let (first, last) = (
                process.n_until(range.start_nanos),
                process.n_until(range_end),
            );
            kept = process.level(last) - process.level(first);
            tally.peak = tally.peak.max(process.peak(first, last));
        }
        tally.n_grew += usize::from(kept > ByteDelta::ZERO);
        tally.kept += kept;
        tally.most_kept = tally.most_kept.max(kept);
    }
    let mut tallies: Vec<RangeTally> = by_name.into_values().collect();
    tallies.sort_by(|a, b| {
        let key = |it: &RangeTally| (Reverse(it.kept), Reverse(it.duration));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    tallies
}

/// The capture's end, where open ranges end.
fn end_of(capture: &Capture) -> i64 {
    let stated = capture
        .duration
        .map(|it| i64::try_from(it.get()).unwrap_or(i64::MAX));
    let events = capture.events.last().map(|event| event.at_nanos);
    let ranges = capture
        .ranges
        .iter()
        .filter_map(|range| range.end_nanos)
        .max();
    [stated, events, ranges]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(0)
}

/// The calls that ran out of memory, with the levels at that time.
pub(super) fn failures(capture: &Capture, levels: &ProcessLevels) -> Vec<NsightFailure> {
    let failed = capture.failed.iter().take(N_FAILED);
    let failure = |call: &super::FailedCall| {
        let of_process = levels.get(&pid(call.global_tid));
        let allocated = of_process.map(|levels| {
            let levels = PeakIndex {
                levels,
                peaks: Vec::new(),
            };
            levels.level(levels.n_until(call.at_nanos))
        });
        let none = capture.has_memory.then_some(Bytes::ZERO);
        let is_around = |range: &&super::NvtxRange| {
            range.global_tid == call.global_tid
                && range.start_nanos <= call.at_nanos
                && range.end_nanos.is_none_or(|end| end >= call.at_nanos)
        };
        let mut around: Vec<&super::NvtxRange> = Vec::new();
        // Each failed call searches: few fail, but a program may retry often.
        if capture.ranges.len() <= N_SEARCHED {
            around.extend(capture.ranges.iter().filter(is_around));
        }
        around.sort_by_key(|range| range.start_nanos);
        NsightFailure {
            at: capture.wall(call.at_nanos),
            after: Nanos::new(u64::try_from(call.at_nanos).unwrap_or(0)),
            pid: pid(call.global_tid),
            function: plain_name(&call.function).to_owned(),
            code: call.code,
            allocated: allocated.or(none),
            ranges: around.iter().map(|range| range.name.to_string()).collect(),
        }
    };
    failed.map(failure).collect()
}
