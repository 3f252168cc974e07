//! What was allocated where: by line of the cell, by class of module, by stack.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;

use super::history::{History, StackFrame, StackIdx};
use super::replay::{Replay, ReplayedBlock, TraceLimits};
use crate::recording::{
    AllocationTally, FrameOrigin, LifetimeClass, LineTally, ModuleTally, StackTally,
};
use crate::units::{Bytes, Nanos};

/// The upper ends of the lifetime classes, in milliseconds.
const LIFETIMES_MS: [u64; 5] = [1, 10, 100, 1_000, 10_000];

/// The most frames of a stack that is shown.
const MAX_FRAMES: usize = 24;

/// Between a module's call and its `forward` stand two frames of this file: they say nothing.
const CALLS_FORWARD: &str = "torch/nn/modules/module.py";

/// What a part of a history adds up to.
pub(super) struct Tallied {
    pub(super) total: AllocationTally,
    pub(super) lines: Vec<LineTally>,
    pub(super) modules: Vec<ModuleTally>,
    pub(super) stacks: Vec<StackTally>,
    pub(super) lifetimes: Vec<LifetimeClass>,
}

/// Adds up what was born in `part`; its level was highest after the event `peak_idx`.
pub(super) fn tally(
    replay: &Replay,
    part: &Range<usize>,
    peak_idx: Option<usize>,
    length: Nanos,
    limits: TraceLimits,
) -> Tallied {
    let history = replay.history();
    let mut total = AllocationTally::default();
    let mut by_stack: HashMap<Option<StackIdx>, AllocationTally> = HashMap::new();
    let mut lifetimes = no_lifetimes();
    for block in replay.born_in(part) {
        let freed = block.freed.filter(|freed| *freed < part.end);
        let lived = freed.map(|freed| {
            let at = |idx: usize| history.events[idx].at;
            at(freed).since(at(block.born))
        });
        let is_at_peak = peak_idx
            .is_some_and(|peak| block.born <= peak && freed.is_none_or(|freed| freed > peak));
        let is_long_lived =
            is_at_peak && lived.is_some_and(|lived| lived.get() >= length.get() / 2);
        let of_block = AllocationTally {
            n_allocations: 1,
            allocated: block.size,
            retained: if lived.is_none() {
                block.size
            } else {
                Bytes::ZERO
            },
            at_peak: if is_at_peak { block.size } else { Bytes::ZERO },
            long_lived: if is_long_lived {
                block.size
            } else {
                Bytes::ZERO
            },
            longest: lived.unwrap_or_default(),
        };
        add(&mut total, &of_block);
        add(by_stack.entry(block.stack).or_default(), &of_block);
        if let Some(lived) = lived {
            count(&mut lifetimes, lived, block);
        }
    }
    Tallied {
        total,
        lines: lines(history, &by_stack, limits.n_places),
        modules: modules(history, &by_stack, limits.n_places),
        stacks: stacks(history, &by_stack, limits.n_stacks),
        lifetimes,
    }
}

fn add(sum: &mut AllocationTally, other: &AllocationTally) {
    sum.n_allocations += other.n_allocations;
    sum.allocated += other.allocated;
    sum.retained += other.retained;
    sum.at_peak += other.at_peak;
    sum.long_lived += other.long_lived;
    sum.longest = sum.longest.max(other.longest);
}

fn no_lifetimes() -> Vec<LifetimeClass> {
    let classes = LIFETIMES_MS.into_iter().map(Nanos::millis).map(Some);
    let classes = classes.chain([None]).map(|up_to| LifetimeClass {
        up_to,
        n_blocks: 0,
        bytes: Bytes::ZERO,
    });
    classes.collect()
}

fn count(lifetimes: &mut [LifetimeClass], lived: Nanos, block: &ReplayedBlock) {
    let class = lifetimes
        .iter_mut()
        .find(|class| class.up_to.is_none_or(|up_to| lived <= up_to));
    if let Some(class) = class {
        class.n_blocks += 1;
        class.bytes += block.size;
    }
}

/// The stacks' tallies, added up by what `place` says of each.
fn by_place<K: Eq + Hash + Ord>(
    by_stack: &HashMap<Option<StackIdx>, AllocationTally>,
    place: impl Fn(Option<StackIdx>) -> Option<K>,
) -> BTreeMap<K, AllocationTally> {
    let mut places = BTreeMap::new();
    for (stack, tally) in by_stack {
        if let Some(place) = place(*stack) {
            add(places.entry(place).or_default(), tally);
        }
    }
    places
}

fn frames_of(history: &History, stack: Option<StackIdx>) -> impl Iterator<Item = &StackFrame> {
    let stack = stack.and_then(|idx| history.stacks.get(idx.0 as usize));
    let frames = stack.into_iter().flatten();
    frames.filter_map(|idx| history.frames.get(*idx as usize))
}

fn lines(
    history: &History,
    by_stack: &HashMap<Option<StackIdx>, AllocationTally>,
    limit: usize,
) -> Vec<LineTally> {
    let line = |stack| {
        let mut frames = frames_of(history, stack);
        frames
            .find(|frame| frame.origin == FrameOrigin::Own)
            .map(|frame| frame.line)
    };
    let mut lines: Vec<LineTally> = by_place(by_stack, |stack| Some(line(stack)))
        .into_iter()
        .map(|(line, tally)| LineTally { line, tally })
        .collect();
    lines.sort_by(|a, b| by_weight(&a.tally, &b.tally).then(a.line.cmp(&b.line)));
    lines.truncate(limit);
    lines
}

fn modules(
    history: &History,
    by_stack: &HashMap<Option<StackIdx>, AllocationTally>,
    limit: usize,
) -> Vec<ModuleTally> {
    let path = |stack| {
        let mut classes: Vec<&str> = frames_of(history, stack)
            .filter_map(|frame| frame.module.as_deref())
            .collect();
        classes.reverse();
        (!classes.is_empty()).then(|| classes.join(" › "))
    };
    let mut modules: Vec<ModuleTally> = by_place(by_stack, path)
        .into_iter()
        .map(|(path, tally)| ModuleTally { path, tally })
        .collect();
    modules.sort_by(|a, b| {
        let heaviest = |tally: &AllocationTally| (tally.at_peak, tally.retained, tally.allocated);
        heaviest(&b.tally)
            .cmp(&heaviest(&a.tally))
            .then_with(|| a.path.cmp(&b.path))
    });
    modules.truncate(limit);
    modules
}

fn stacks(
    history: &History,
    by_stack: &HashMap<Option<StackIdx>, AllocationTally>,
    limit: usize,
) -> Vec<StackTally> {
    let mut heaviest: Vec<(StackIdx, &AllocationTally)> = by_stack
        .iter()
        .filter_map(|(stack, tally)| Some(((*stack)?, tally)))
        .collect();
    heaviest.sort_by(|(a_idx, a), (b_idx, b)| by_weight(a, b).then(a_idx.cmp(b_idx)));
    heaviest.truncate(limit);
    heaviest
        .into_iter()
        .map(|(stack, tally)| StackTally {
            frames: shown(history, stack),
            tally: *tally,
        })
        .collect()
}

/// The most retained first, then the most held at the peak.
fn by_weight(a: &AllocationTally, b: &AllocationTally) -> std::cmp::Ordering {
    let weight = |tally: &AllocationTally| (tally.retained, tally.at_peak, tally.allocated);
    weight(b).cmp(&weight(a))
}

/// From the innermost frame out to the outermost one of a cell: what is around that is the
/// kernel's own.
fn shown(history: &History, stack: StackIdx) -> Vec<String> {
    let frames: Vec<&StackFrame> = frames_of(history, Some(stack)).collect();
    let is_of_cell = |frame: &&StackFrame| frame.origin != FrameOrigin::File;
    let n_shown = frames
        .iter()
        .rposition(is_of_cell)
        .map_or(frames.len(), |last| last + 1);
    let kept = frames[..n_shown]
        .iter()
        .filter(|frame| !frame.file.ends_with(CALLS_FORWARD));
    kept.take(MAX_FRAMES)
        .map(|frame| frame_text(frame))
        .collect()
}

/// `line 3`, `train, line 12`, `train, In [4] line 12`, `forward, torch/nn/modules/linear.py:134`.
fn frame_text(frame: &StackFrame) -> String {
    let place = match frame.origin {
        FrameOrigin::Own => format!("line {}", frame.line),
        FrameOrigin::Cell(number) => format!("In [{number}] line {}", frame.line),
        FrameOrigin::File => format!("{}:{}", short(&frame.file), frame.line),
    };
    match frame.name.as_str() {
        "<module>" | "" => place,
        // As IPython 7 names a cell's own code.
        name if name.starts_with("<cell line: ") => place,
        name => format!("{name}, {place}"),
    }
}

/// A file as it would be imported, where it is installed; else its last two parts.
fn short(file: &str) -> &str {
    if let Some((_, installed)) = file.rsplit_once("-packages/") {
        return installed;
    }
    let mut cuts = file.rmatch_indices(['/', '\\']);
    cuts.nth(1).map_or(file, |(at, _)| &file[at + 1..])
}
