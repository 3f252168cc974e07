//! A history as blocks with a birth and an end, and as levels between events.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;

use super::extents::Extents;
use super::history::{Action, AllocatorEvent, History, HistoryLevels, Rounding, StackIdx};
use super::tally;
use crate::downsample::{self, Spacing};
use crate::recording::{DeviceIdx, RunIdx, Sample, Trace, TracedPeak};
use crate::units::{Bytes, Nanos};

/// Every block of the caching allocator is a multiple of this.
const GRANULE: u64 = 512;

/// The largest request of the small pool, in which every rest becomes a block of its own.
const SMALL_REQUEST: u64 = 1 << 20;

/// How much of a history a [`Trace`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLimits {
    /// Points of the exact lines.
    pub n_steps: usize,
    /// Lines of the cell, and classes of modules.
    pub n_places: usize,
    /// Stacks.
    pub n_stacks: usize,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self {
            n_steps: 512,
            n_places: 128,
            n_stacks: 16,
        }
    }
}

impl TraceLimits {
    /// The limits for one of many parts of a run.
    pub fn of_a_part() -> Self {
        Self {
            n_steps: 48,
            n_places: 16,
            n_stacks: 0,
        }
    }
}

/// A block that was allocated in the history.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayedBlock {
    pub(super) size: Bytes,
    /// It may be larger by up to this.
    pub(super) slack: Bytes,
    pub(super) stack: Option<StackIdx>,
    /// The event that it was born in.
    pub(super) born: usize,
    /// The event in which it was given back.
    pub(super) freed: Option<usize>,
}

/// The levels after an event.
#[derive(Debug, Clone, Copy, Default)]
struct ReplayStep {
    levels: HistoryLevels,
    /// Allocated may be higher by up to this.
    slack: Bytes,
}

/// Who holds an address.
enum AddressOwner {
    Block(usize),
    FromBefore(Bytes),
}

/// A history, replayed from its beginning to its end.
#[derive(Debug)]
pub struct Replay {
    history: History,
    /// In the order of their births.
    blocks: Vec<ReplayedBlock>,
    start: ReplayStep,
    /// After each event.
    steps: Vec<ReplayStep>,
    is_cut: bool,
}

/// By how much an event moves the levels.
#[derive(Debug, Clone, Copy, Default)]
struct Move {
    allocated: i128,
    slack: i128,
    reserved: i128,
}

impl Replay {
    /// Replays a history.
    pub fn new(history: History) -> Self {
        let mut replay = Self {
            blocks: Vec::new(),
            start: ReplayStep::default(),
            steps: Vec::with_capacity(history.events.len()),
            is_cut: history.is_cut,
            history,
        };
        let mut moves = replay.pair();
        // An allocator that cuts its pieces in another way than is known here.
        if replay.is_off(&moves) && replay.history.layout_before.take().is_some() {
            replay.blocks.clear();
            moves = replay.pair();
        }
        replay.settle(&moves);
        replay
    }

    /// The history that was replayed.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Sums up the part of the run between two instants, both included.
    pub fn trace(
        &self,
        (run, device): (RunIdx, DeviceIdx),
        from: Nanos,
        to: Nanos,
        limits: TraceLimits,
    ) -> Trace {
        let events = &self.history.events;
        let first = events.partition_point(|event| event.at < from);
        let last = events.partition_point(|event| event.at <= to).max(first);
        let part = first..last;
        let (mut peak, peak_idx) = self.peak(&part, from);
        let tallied = tally::tally(self, &part, peak_idx, to.since(from), limits);
        peak.from_before = peak.low.saturating_sub(tallied.total.at_peak);
        Trace {
            run,
            device,
            steps: downsample::downsampled(
                self.lines(&part, from, to),
                limits.n_steps,
                Spacing::Time,
            ),
            n_events: part.len() as u64,
            is_cut: self.is_cut,
            total: tallied.total,
            peak,
            lines: tallied.lines,
            modules: tallied.modules,
            stacks: tallied.stacks,
            lifetimes: tallied.lifetimes,
        }
    }

    /// The blocks that were born in these events.
    pub(super) fn born_in(&self, part: &Range<usize>) -> &[ReplayedBlock] {
        let before = |idx: usize| self.blocks.partition_point(|block| block.born < idx);
        &self.blocks[before(part.start)..before(part.end)]
    }

    /// Finds which free ends which block, and by how much each event moves the levels.
    fn pair(&mut self) -> Vec<Move> {
        let before = self.history.blocks_before.iter();
        let mut holders: HashMap<u64, AddressOwner> = before
            .map(|(address, size)| (*address, AddressOwner::FromBefore(*size)))
            .collect();
        let mut moves = vec![Move::default(); self.history.events.len()];
        let layout = self.history.layout_before.as_ref();
        // Of what is missing nobody knows where it lay.
        let mut extents = layout.filter(|_| !self.is_cut).map(Extents::new);
        for (idx, event) in self.history.events.iter().enumerate() {
            let size = i128::from(event.size.get());
            match event.action {
                Action::Alloc => {
                    let exact = extents.as_mut().and_then(|it| self.taken(it, event));
                    let (size, slack) =
                        exact.map_or_else(|| self.size_of(event), |size| (size, Bytes::ZERO));
                    let block = AddressOwner::Block(self.blocks.len());
                    self.blocks.push(ReplayedBlock {
                        size,
                        slack,
                        stack: event.stack,
                        born: idx,
                        freed: None,
                    });
                    // Its last holder's free is among the events that are missing.
                    if let Some(AddressOwner::Block(lost)) = holders.insert(event.address, block) {
                        self.blocks[lost].freed = Some(idx);
                    }
                }
                Action::FreeRequested => match holders.remove(&event.address) {
                    Some(AddressOwner::Block(block)) => self.blocks[block].freed = Some(idx),
                    Some(AddressOwner::FromBefore(size)) => {
                        moves[idx].allocated -= i128::from(size.get());
                    }
                    None => {
                        // It may have been larger: then less is left.
                        let (size, slack) = self.size_of(event);
                        moves[idx].allocated -= i128::from((size + slack).get());
                        moves[idx].slack += i128::from(slack.get());
                    }
                },
                Action::SegmentAlloc => {
                    moves[idx].reserved += size;
                    if let Some(extents) = &mut extents {
                        extents.add_segment(event.address, event.size.get());
                    }
                }
                Action::SegmentFree => {
                    moves[idx].reserved -= size;
                    if let Some(extents) = &mut extents {
                        extents.remove_segment(event.address);
                    }
                }
                Action::FreeCompleted => {
                    if let Some(extents) = &mut extents {
                        extents.give_back(event.address);
                    }
                }
                Action::OutOfMemory => {}
            }
        }
        for (address, holder) in holders {
            if let AddressOwner::Block(block) = holder
                && let Some(size) = self.history.blocks_after.get(&address)
            {
                self.blocks[block].size = *size;
                self.blocks[block].slack = Bytes::ZERO;
            }
        }
        for block in &self.blocks {
            let [size, slack] = [block.size, block.slack].map(|bytes| i128::from(bytes.get()));
            moves[block.born].allocated += size;
            moves[block.born].slack += slack;
            if let Some(freed) = block.freed {
                moves[freed].allocated -= size;
                moves[freed].slack -= slack;
            }
        }
        moves
    }

    /// The size of a block that was cut from what is known to be free.
    fn taken(&self, extents: &mut Extents, event: &AllocatorEvent) -> Option<Bytes> {
        let Rounding::Native { unsplit, max_split } = self.history.rounding else {
            return None;
        };
        let wanted = rounded(event.size);
        let is_whole = max_split.is_some_and(|max| wanted >= max);
        let unsplit = if wanted.get() > SMALL_REQUEST {
            unsplit
        } else {
            Bytes::ZERO
        };
        let stays = |rest: u64| is_whole || rest <= unsplit.get();
        extents
            .take(event.address, wanted.get(), stays)
            .map(Bytes::new)
    }

    /// By how much the levels after differ from those that the moves lead to, where they are known.
    fn difference(&self, moves: &[Move]) -> Option<i128> {
        let after = self.history.after?;
        let moved: i128 = moves.iter().map(|by| by.allocated).sum();
        let number = |bytes: Bytes| i128::from(bytes.get());
        Some(number(self.history.before.allocated) + moved - number(after.allocated))
    }

    /// Whether the moves do not lead to the levels after.
    fn is_off(&self, moves: &[Move]) -> bool {
        let slack: i128 = moves.iter().map(|by| by.slack).sum();
        self.difference(moves)
            .is_some_and(|off| !(-slack..=0).contains(&off))
    }

    /// Adds the moves up: from the levels before, or, where events are missing, so that the
    /// last level is right.
    fn settle(&mut self, moves: &[Move]) {
        let sum = |of: fn(&Move) -> i128| moves.iter().map(of).sum::<i128>();
        let number = |bytes: Bytes| i128::from(bytes.get());
        let before = self.history.before;
        let (mut allocated, mut slack) = (number(before.allocated), 0);
        let mut reserved = number(before.reserved);
        if let Some(after) = self.history.after
            && (self.is_cut || self.is_off(moves))
        {
            self.is_cut = true;
            allocated -= self.difference(moves).unwrap_or_default();
            reserved = number(after.reserved) - sum(|it| it.reserved);
        }
        let bytes = |n: i128| Bytes::new(u64::try_from(n.max(0)).unwrap_or(u64::MAX));
        let step = |by: Move| {
            allocated += by.allocated;
            slack += by.slack;
            reserved += by.reserved;
            ReplayStep {
                levels: HistoryLevels {
                    allocated: bytes(allocated),
                    reserved: bytes(reserved),
                },
                slack: bytes(slack),
            }
        };
        let mut steps = iter::once(Move::default())
            .chain(moves.iter().copied())
            .map(step);
        self.start = steps.next().unwrap_or_default();
        self.steps = steps.collect();
    }

    /// A block's size, and by how much it may be larger.
    fn size_of(&self, event: &AllocatorEvent) -> (Bytes, Bytes) {
        let rounded = rounded(event.size);
        let by_much = rounded.max(Bytes::new(SMALL_REQUEST));
        match self.history.rounding {
            Rounding::Exact => (event.size, Bytes::ZERO),
            Rounding::Native { max_split, .. } if max_split.is_some_and(|max| rounded >= max) => {
                (rounded, by_much)
            }
            Rounding::Native { unsplit, .. } if rounded.get() > SMALL_REQUEST => (rounded, unsplit),
            Rounding::Native { .. } => (rounded, Bytes::ZERO),
            Rounding::Custom => (rounded, by_much),
        }
    }

    fn before(&self, idx: usize) -> ReplayStep {
        idx.checked_sub(1).map_or(self.start, |idx| self.steps[idx])
    }

    /// The highest level, and after which event; `None` where it was the first.
    fn peak(&self, part: &Range<usize>, from: Nanos) -> (TracedPeak, Option<usize>) {
        let start = self.before(part.start);
        let mut peak = TracedPeak {
            at: from,
            low: start.levels.allocated,
            high: start.levels.allocated + start.slack,
            from_before: Bytes::ZERO,
        };
        let mut peak_idx = None;
        for idx in part.clone() {
            let step = self.steps[idx];
            peak.high = peak.high.max(step.levels.allocated + step.slack);
            if step.levels.allocated > peak.low {
                peak.low = step.levels.allocated;
                peak.at = self.history.events[idx].at;
                peak_idx = Some(idx);
            }
        }
        (peak, peak_idx)
    }

    /// The levels at the start, after each change, and at the end.
    fn lines(&self, part: &Range<usize>, from: Nanos, to: Nanos) -> Vec<Sample> {
        let sample = |at: Nanos, ordinal: u64, levels: HistoryLevels| Sample {
            at,
            ordinal,
            allocated: Some(levels.allocated),
            reserved: Some(levels.reserved),
            ..Sample::default()
        };
        let mut last = self.before(part.start).levels;
        let mut lines = vec![sample(from, 0, last)];
        for (ordinal, idx) in (1..).zip(part.clone()) {
            let levels = self.steps[idx].levels;
            if levels != last {
                let at = self.history.events[idx].at;
                lines.push(sample(at, ordinal, levels));
                last = levels;
            }
        }
        lines.push(sample(to, part.len() as u64 + 1, last));
        lines
    }
}

/// What the allocator makes of a request.
fn rounded(requested: Bytes) -> Bytes {
    let granules = requested.get().max(1).div_ceil(GRANULE);
    Bytes::new(granules.saturating_mul(GRANULE))
}
