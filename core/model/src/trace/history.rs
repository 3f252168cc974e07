//! One device's history as its allocator reports it.

use std::collections::HashMap;

use crate::recording::FrameOrigin;
use crate::units::{Bytes, Nanos};

/// What an allocator did, as in the trace of `torch.cuda.memory._snapshot()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It handed out a block.
    Alloc,
    /// The program freed the block; it is no longer allocated.
    FreeRequested,
    /// No stream uses it any more; it is no longer active.
    FreeCompleted,
    /// It reserved a segment from the driver, or mapped a part of one.
    SegmentAlloc,
    /// It returned a segment, or unmapped a part.
    SegmentFree,
    /// A request failed.
    OutOfMemory,
}

/// A position in [`History::stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackIdx(pub u32);

/// One action of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorEvent {
    /// Since the recording's start.
    pub at: Nanos,
    /// What was done.
    pub action: Action,
    /// The first byte of the block or segment.
    pub address: u64,
    /// As requested or of the block; [`Rounding`] tells which.
    pub size: Bytes,
    /// The stack that requested it, if known.
    pub stack: Option<StackIdx>,
}

/// One line of a stack. [`History::frames`] has each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// The function.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The line in the file; in a cell, in its text as typed.
    pub line: u32,
    /// Where the code is.
    pub origin: FrameOrigin,
    /// The class whose `forward` this is.
    pub module: Option<String>,
}

/// What an event's size tells about the size of its block: [`History::rounding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// It is the block's size.
    Exact,
    /// It is the requested size. The block is rounded up to 512 B, and in the large pool it may have up to
    /// `unsplit` more that was not worth its own block.
    Native {
        /// Bytes; zero if rests are always split off.
        unsplit: Bytes,
        /// A block of this size or more is never cut from a larger one, if there is such a size.
        max_split: Option<Bytes>,
    },
    /// It is the requested size, and the user's settings round it in their own way.
    Custom,
}

/// Which end of a named part an [`Annotation`] marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It begins.
    Start,
    /// It ends.
    End,
}

/// One end of a part of the run that the user's code named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Since the recording's start.
    pub at: Nanos,
    /// Which end.
    pub stage: Stage,
    /// The name.
    pub name: String,
}

/// An allocator's levels at one instant, in bytes: [`History::before`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryLevels {
    /// In blocks that are held.
    pub allocated: Bytes,
    /// In segments.
    pub reserved: Bytes,
}

/// Where an allocator's memory lay at one instant: [`History::layout_before`].
#[derive(Debug, Clone, Default)]
pub struct AllocatorLayout {
    /// Every segment: its address and size.
    pub segments: Vec<(u64, Bytes)>,
    /// Every block that nothing holds.
    pub free: Vec<(u64, Bytes)>,
    /// Every block that a tensor holds or a stream still uses.
    pub held: Vec<(u64, Bytes)>,
}

/// One device's history of one run, oldest first.
#[derive(Debug, Clone)]
pub struct History {
    /// What was done, in order.
    pub events: Vec<AllocatorEvent>,
    /// Every frame once.
    pub frames: Vec<StackFrame>,
    /// Every stack once: positions in `frames`, innermost first.
    pub stacks: Vec<Vec<u32>>,
    /// The levels before the first event.
    pub before: HistoryLevels,
    /// The levels after the last one, if the allocator reported them.
    pub after: Option<HistoryLevels>,
    /// The blocks that were alive before, by address, if they are known.
    pub blocks_before: HashMap<u64, Bytes>,
    /// Where segments and blocks lay before, if that is known: then every block's size is exact.
    pub layout_before: Option<AllocatorLayout>,
    /// The blocks that are alive now, by address, if they are known.
    pub blocks_after: HashMap<u64, Bytes>,
    /// What an event's size tells about its block.
    pub rounding: Rounding,
    /// The oldest events are known to be missing.
    pub is_cut: bool,
    /// The ends of the parts that the user's code named.
    pub annotations: Vec<Annotation>,
}

impl History {
    /// An empty history that starts at these levels.
    pub fn new(before: HistoryLevels, rounding: Rounding) -> Self {
        Self {
            events: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            before,
            after: None,
            blocks_before: HashMap::new(),
            layout_before: None,
            blocks_after: HashMap::new(),
            rounding,
            is_cut: false,
            annotations: Vec::new(),
        }
    }
}
