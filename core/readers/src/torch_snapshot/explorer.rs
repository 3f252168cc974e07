//! An interactive view of a snapshot.

use std::collections::HashMap;

use crate::cell_files::CellFiles;
use crate::code_line::CodeLine;
use crate::pickle;
use gpumem_model::segments::{self, Pool, Segments};
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::fault::SnapshotError;
use super::flame::{Flame, FlameNames, FlamePart, FlameSide, Grower};
use super::holder::without_indices;
use super::levels::SnapshotLevels;
use super::lifetimes::TraceDuration;
use super::lines::{FrameRank, rank};
use super::live::{Life, lives};
use super::model::{DeviceSnapshot, SnapshotFrame, SnapshotStackIdx, TorchSnapshot};
use super::summary::{LineOwner, Tallies, TorchSnapshotSummary, code_line};

/// A snapshot with the levels, blocks and stacks at any instant of its trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Explorer {
    /// The summary, as in the text report.
    pub summary: TorchSnapshotSummary,
    /// The frames of its stacks.
    pub frames: Vec<ExplorerFrame>,
    devices: Vec<DeviceSnapshot>,
    /// The blocks of each.
    lives: Vec<Vec<Life>>,
    levels: Vec<SnapshotLevels>,
    /// Frames of each stack, innermost first: Python's frames if there are any.
    stacks: Vec<Vec<u32>>,
    /// The line of each stack that the user can change.
    lines: Vec<Option<CodeLine>>,
    /// Holders of blocks without indices, if gpumem wrote the file: `losses[].grad_fn`.
    pub holders: Vec<String>,
    /// The position in `holders` of each holder in the file.
    patterns: Vec<u32>,
}

/// A block over the events of a device's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Number of events after which it exists: 0 if it existed before the trace.
    pub from: usize,
    /// Number of events after which it is gone; `None` if it exists at the end.
    pub until: Option<usize>,
    /// As requested.
    pub bytes: Bytes,
    /// The stack that allocated it, if recorded.
    pub stack: Option<SnapshotStackIdx>,
    /// Index of the line that allocated it, in the order of the lines' first blocks.
    pub owner: usize,
}

/// A frame, and whether it is the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplorerFrame {
    /// Its line.
    pub line: CodeLine,
    /// Outside of installed packages and Python itself.
    pub is_user: bool,
}

impl Explorer {
    /// Reads a snapshot's file; cells are named as in `cells`.
    ///
    /// # Errors
    ///
    /// As [`summary`](super::summary()).
    pub fn open(bytes: &[u8], cells: &CellFiles) -> Result<Self, SnapshotError> {
        let tree = pickle::parse(bytes)?;
        let snapshot = super::read(&tree, cells)?;
        let lives: Vec<_> = snapshot.devices.iter().map(lives).collect();
        let summary = TorchSnapshotSummary::new(&snapshot, &lives);
        let lines = snapshot.lines().into_iter();
        let lines = lines.map(|line| line.map(code_line)).collect();
        let ranks: Vec<FrameRank> = snapshot.frames.iter().map(rank).collect();
        let TorchSnapshot {
            devices,
            frames,
            stacks,
            holders,
            ..
        } = snapshot;
        let (holders, patterns) = patterns(&holders);
        // A file may have a frame several times.
        let mut first: HashMap<SnapshotFrame<'_>, u32> = HashMap::new();
        let same: Vec<u32> = (0..)
            .zip(&frames)
            .map(|(idx, frame)| *first.entry(*frame).or_insert(idx))
            .collect();
        let is_python = |frame: &u32| {
            let rank = ranks.get(*frame as usize);
            rank.is_some_and(|rank| matches!(rank, FrameRank::User | FrameRank::Installed))
        };
        let shown = |stack: Vec<u32>| {
            let first = |frame: u32| same.get(frame as usize).copied();
            let stack: Vec<u32> = stack.into_iter().filter_map(first).collect();
            let python: Vec<u32> = stack.iter().copied().filter(is_python).collect();
            if python.is_empty() { stack } else { python }
        };
        let frames = frames
            .iter()
            .zip(&ranks)
            .map(|(frame, rank)| ExplorerFrame {
                line: code_line(*frame),
                is_user: *rank == FrameRank::User,
            });
        Ok(Self {
            summary,
            frames: frames.collect(),
            levels: devices.iter().map(SnapshotLevels::new).collect(),
            devices,
            lives,
            stacks: stacks.into_iter().map(shown).collect(),
            lines,
            holders,
            patterns,
        })
    }

    /// The names of a flame's parts.
    pub fn names(&self) -> FlameNames<'_> {
        FlameNames {
            frames: &self.frames,
            holders: &self.holders,
        }
    }

    /// The levels of a device, by its position in the summary, over its trace.
    pub fn levels(&self, device: usize) -> SnapshotLevels {
        self.levels.get(device).cloned().unwrap_or_default()
    }

    /// A device's live blocks by stack, after `n_events` events of its trace.
    pub fn flame(&self, device: usize, n_events: usize, side: FlameSide) -> Flame {
        let mut sums: HashMap<(Option<SnapshotStackIdx>, Option<u32>), (Bytes, usize)> =
            HashMap::new();
        for life in self.living(device, n_events) {
            let holder = life.holder;
            let holder = holder.and_then(|idx| self.patterns.get(idx as usize).copied());
            let (bytes, n_blocks) = sums.entry((life.stack, holder)).or_default();
            *bytes += life.size;
            *n_blocks += 1;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        // Nodes of equal size in the order of their stacks.
        sums.sort_unstable_by_key(|(place, _)| *place);
        let mut grower = Grower::new();
        for ((stack, holder), (bytes, n_blocks)) in sums {
            let frames = stack.and_then(|idx| self.stacks.get(idx.0 as usize));
            let frames = frames.into_iter().flatten().copied();
            // A block's holder is below its stack.
            let holder = holder.map(FlamePart::Holder).into_iter();
            let mut parts: Vec<_> = holder.chain(frames.map(FlamePart::Frame)).collect();
            if parts.is_empty() {
                parts.push(FlamePart::NoStack);
            }
            if side == FlameSide::Outside {
                parts.reverse();
            }
            grower.add(parts.into_iter(), bytes, n_blocks);
        }
        let levels = self.levels.get(device).map(|levels| &levels.allocated);
        let level = levels.and_then(|levels| levels.get(n_events).copied());
        let before = level.unwrap_or_default().saturating_sub(grower.bytes());
        if before > Bytes::ZERO {
            grower.add([FlamePart::BeforeTrace].into_iter(), before, 0);
        }
        grower.grown()
    }

    /// A device's live blocks by line, after `n_events` events of its trace, the largest first. Blocks that were
    /// allocated before the trace and freed within it are missing.
    pub fn owners(&self, device: usize, n_events: usize) -> Vec<LineOwner> {
        let mut tallies = Tallies::new();
        for life in self.living(device, n_events) {
            tallies.add(self.line(life.stack), life.size);
        }
        tallies.largest_first(CodeLine::clone).0
    }

    /// The blocks of a device, the oldest first. Blocks that were allocated before the trace and freed within it
    /// are missing.
    pub fn allocations(&self, device: usize) -> Vec<Allocation> {
        let mut lives: Vec<&Life> = self.lives.get(device).into_iter().flatten().collect();
        lives.sort_by_key(|life| life.from);
        let mut owners: HashMap<Option<&CodeLine>, usize> = HashMap::new();
        let allocations = lives.into_iter().map(|life| {
            let n_known = owners.len();
            Allocation {
                from: life.from as usize,
                until: (life.until < u32::MAX).then_some(life.until as usize),
                bytes: life.size,
                stack: life.stack,
                owner: *owners.entry(self.line(life.stack)).or_insert(n_known),
            }
        });
        allocations.collect()
    }

    /// How long a block of a device lived.
    pub fn lived(&self, device: usize, allocation: &Allocation) -> TraceDuration {
        let events = self.devices.get(device).map(|it| it.events.as_slice());
        let events = events.unwrap_or_default();
        let last = allocation.until.unwrap_or(events.len());
        TraceDuration::between(
            events,
            allocation.from.saturating_sub(1),
            last.saturating_sub(1),
        )
    }

    /// The line of a stack that the user can change.
    pub fn line(&self, stack: Option<SnapshotStackIdx>) -> Option<&CodeLine> {
        self.lines.get(stack?.0 as usize)?.as_ref()
    }

    /// The blocks of a device that live after `n_events` events.
    fn living(&self, device: usize, n_events: usize) -> impl Iterator<Item = &Life> {
        let lives = self.lives.get(device).into_iter().flatten();
        lives.filter(move |life| life.is_at(n_events))
    }

    /// A device's segments at the end. PyTorch takes 2 MiB from the driver for requests of at most 1 MiB, and more
    /// for others: the size shows a segment's pool.
    pub fn segments(&self, device: usize) -> Segments {
        let segments = self.devices.get(device).map(|it| it.segments.iter());
        let segments = segments.into_iter().flatten().map(|segment| {
            let blocks = segment.blocks.iter();
            let blocks = blocks.map(|block| segments::Block::new(block.state, block.size));
            let is_small = segment.size <= Bytes::mib(2);
            segments::Segment {
                pool: if is_small { Pool::Small } else { Pool::Large },
                stream: 0,
                blocks: blocks.collect(),
            }
        });
        Segments::new(segments.collect())
    }

    /// After how many events of a device's trace a request failed.
    pub fn failures(&self, device: usize) -> Vec<usize> {
        let events = self.devices.get(device).map(|it| it.events.iter());
        let events = events.into_iter().flatten().enumerate();
        let failed = events.filter(|(_, event)| event.action == Some(Action::OutOfMemory));
        failed.map(|(at, _)| at + 1).collect()
    }

    /// Microseconds from the first event of a device's trace to that event; `None` without times.
    pub fn micros(&self, device: usize, event: usize) -> Option<u64> {
        let events = &self.devices.get(device)?.events;
        let first = events.iter().find_map(|event| event.at_micros)?;
        events.get(event)?.at_micros?.checked_sub(first)
    }
}

/// The distinct names without their indices, and the index of each name among them.
fn patterns(names: &[&str]) -> (Vec<String>, Vec<u32>) {
    let mut places: HashMap<String, u32> = HashMap::new();
    let mut patterns = Vec::new();
    let place = |name: &&str| {
        let (pattern, _) = without_indices(name);
        *places.entry(pattern).or_insert_with_key(|pattern| {
            patterns.push(pattern.clone());
            patterns.len() as u32 - 1
        })
    };
    let of_names = names.iter().map(place).collect();
    (patterns, of_names)
}
