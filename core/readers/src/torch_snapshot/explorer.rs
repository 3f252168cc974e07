//! A snapshot to look around in.

use std::collections::HashMap;

use crate::cell_files::CellFiles;
use crate::code_line::CodeLine;
use crate::pickle;
use gpumem_model::segments::{self, Pool, Segments};
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::fault::SnapshotError;
use super::flame::{Flame, FlameNames, FlamePart, Grower, Side};
use super::holder::without_indices;
use super::levels::Levels;
use super::lines::{Rank, rank};
use super::live::{Life, lives};
use super::model::{DeviceSnapshot, Frame, StackIdx, TorchSnapshot};
use super::summary::{Owner, Summary, Tallies, code_line};

/// A snapshot that answers questions about any moment of its trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Explorer {
    /// What the text report says, too.
    pub summary: Summary,
    /// The frames of its stacks.
    pub frames: Vec<ExplorerFrame>,
    devices: Vec<DeviceSnapshot>,
    /// The blocks of each.
    lives: Vec<Vec<Life>>,
    levels: Vec<Levels>,
    /// Frames of each stack, innermost first: those of Python where there are any.
    stacks: Vec<Vec<u32>>,
    /// The line of each stack that the user can change.
    lines: Vec<Option<CodeLine>>,
    /// What holds blocks, without indices, if gpumem wrote the file: `losses[].grad_fn`.
    pub holders: Vec<String>,
    /// The position in `holders` of each holder in the file.
    patterns: Vec<u32>,
}

/// A frame, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplorerFrame {
    /// Where it is.
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
        let summary = Summary::with(&snapshot, &lives);
        let lines = snapshot.lines().into_iter();
        let lines = lines.map(|line| line.map(code_line)).collect();
        let ranks: Vec<Rank> = snapshot.frames.iter().map(rank).collect();
        let TorchSnapshot {
            devices,
            frames,
            stacks,
            holders,
            ..
        } = snapshot;
        let (holders, patterns) = patterns(&holders);
        // A file may have a frame several times.
        let mut first: HashMap<Frame<'_>, u32> = HashMap::new();
        let same: Vec<u32> = (0..)
            .zip(&frames)
            .map(|(idx, frame)| *first.entry(*frame).or_insert(idx))
            .collect();
        let is_python = |frame: &u32| {
            let rank = ranks.get(*frame as usize);
            rank.is_some_and(|rank| matches!(rank, Rank::User | Rank::Installed))
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
                line: CodeLine {
                    file: frame.file.to_owned(),
                    line: frame.line,
                    function: frame.name.to_owned(),
                },
                is_user: *rank == Rank::User,
            });
        Ok(Self {
            summary,
            frames: frames.collect(),
            levels: devices.iter().map(Levels::of).collect(),
            devices,
            lives,
            stacks: stacks.into_iter().map(shown).collect(),
            lines,
            holders,
            patterns,
        })
    }

    /// What the parts of a flame are called.
    pub fn names(&self) -> FlameNames<'_> {
        FlameNames {
            frames: &self.frames,
            holders: &self.holders,
        }
    }

    /// The levels of a device, by its position in the summary, over its trace.
    pub fn levels(&self, device: usize) -> Levels {
        self.levels.get(device).cloned().unwrap_or_default()
    }

    /// Who holds what of a device after so many events of its trace.
    pub fn flame(&self, device: usize, n_events: usize, side: Side) -> Flame {
        let mut sums: HashMap<(Option<StackIdx>, Option<u32>), (Bytes, usize)> = HashMap::new();
        for life in self.living(device, n_events) {
            let holder = life.holder;
            let holder = holder.and_then(|idx| self.patterns.get(idx as usize).copied());
            let (bytes, n_blocks) = sums.entry((life.stack, holder)).or_default();
            *bytes += life.size;
            *n_blocks += 1;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        // Nodes of one size in the order of their stacks.
        sums.sort_unstable_by_key(|(place, _)| *place);
        let mut grower = Grower::new();
        for ((stack, holder), (bytes, n_blocks)) in sums {
            let frames = stack.and_then(|idx| self.stacks.get(idx.0 as usize));
            let frames = frames.into_iter().flatten().copied();
            // What holds a block is below all that led to it.
            let holder = holder.map(FlamePart::Holder).into_iter();
            let mut parts: Vec<_> = holder.chain(frames.map(FlamePart::Frame)).collect();
            if parts.is_empty() {
                parts.push(FlamePart::NoStack);
            }
            if side == Side::Outside {
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

    /// Who holds what of a device after so many events of its trace, by line, the largest first. What was
    /// allocated before the trace and freed within it is in none.
    pub fn owners(&self, device: usize, n_events: usize) -> Vec<Owner> {
        let mut tallies = Tallies::new();
        for life in self.living(device, n_events) {
            let line = life
                .stack
                .and_then(|idx| self.lines.get(idx.0 as usize)?.as_ref());
            tallies.add(line, life.size);
        }
        tallies.largest_first(CodeLine::clone).0
    }

    /// The blocks of a device that live after so many events.
    fn living(&self, device: usize, n_events: usize) -> impl Iterator<Item = &Life> {
        let lives = self.lives.get(device).into_iter().flatten();
        lives.filter(move |life| life.is_at(n_events))
    }

    /// Where a device's memory lies at the end. PyTorch takes 2 MiB from the driver for requests of at most
    /// 1 MiB, and more for others: by that its two pools are told apart.
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

/// The names without their indices, each once, and which of these each name is.
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
