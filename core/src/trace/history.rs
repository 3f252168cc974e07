//! One device's history as its allocator recorded it.

use std::collections::HashMap;

use crate::units::{Bytes, Nanos};

/// What an allocator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It handed out a block.
    Alloc,
    /// The block was given back; from here on it is not allocated any more.
    FreeRequested,
    /// Every stream has let go of it; from here on it is not active any more.
    FreeCompleted,
    /// It took a segment from the driver, or mapped a part of one.
    SegmentAlloc,
    /// It gave one back, or unmapped a part.
    SegmentFree,
    /// A request failed.
    OutOfMemory,
}

/// A stack of a [`History`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackIdx(pub u32);

/// One action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Since the recording's start.
    pub at: Nanos,
    /// What was done.
    pub action: Action,
    /// The first byte of the block or segment.
    pub address: u64,
    /// As asked for, or of the block: see [`Rounding`].
    pub size: Bytes,
    /// Who asked for it, where that is known.
    pub stack: Option<StackIdx>,
}

/// Where the code of a frame stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FrameOrigin {
    /// In the cell whose run this is.
    Own,
    /// In the cell of that number.
    Cell(u32),
    /// In a file.
    #[default]
    File,
}

/// A line of code that was under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// The function.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The line in it; in a cell, of its text as typed.
    pub line: u32,
    /// Where that is.
    pub origin: FrameOrigin,
    /// The class whose `forward` it is.
    pub module: Option<String>,
}

/// What is known of a block's size from the size that an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// It is the block's.
    Exact,
    /// It is what was asked for: the block has it rounded up to 512 B, and where it is of the
    /// large pool it may have up to `unsplit` more that were not worth a block of their own.
    Native {
        /// Zero where rests are always split off.
        unsplit: Bytes,
    },
    /// It is what was asked for, and the user's settings round it in ways of their own.
    Custom,
}

/// Which end of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It begins.
    Start,
    /// It ends.
    End,
}

/// One end of a part of the run that the user's code gave a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Since the recording's start.
    pub at: Nanos,
    /// Which end.
    pub stage: Stage,
    /// The name.
    pub name: String,
}

/// An allocator's levels at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels {
    /// In blocks that are held.
    pub allocated: Bytes,
    /// In segments.
    pub reserved: Bytes,
}

/// One device's history of one run, oldest first.
#[derive(Debug, Clone)]
pub struct History {
    /// What was done, in order.
    pub events: Vec<Event>,
    /// Every frame once.
    pub frames: Vec<StackFrame>,
    /// Every stack once: positions in `frames`, innermost first.
    pub stacks: Vec<Vec<u32>>,
    /// Before the first event.
    pub before: Levels,
    /// After the last one, if the allocator reported it.
    pub after: Option<Levels>,
    /// The blocks that were alive before, by address, as far as they are known.
    pub blocks_before: HashMap<u64, Bytes>,
    /// The blocks that are alive now, by address, as far as they are known.
    pub blocks_after: HashMap<u64, Bytes>,
    /// What an event's size says of a block.
    pub rounding: Rounding,
    /// The oldest events are known to be missing.
    pub is_cut: bool,
    /// What the user's code gave a name.
    pub annotations: Vec<Annotation>,
}

impl History {
    /// Nothing yet, from these levels on.
    pub fn new(before: Levels, rounding: Rounding) -> Self {
        Self {
            events: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            before,
            after: None,
            blocks_before: HashMap::new(),
            blocks_after: HashMap::new(),
            rounding,
            is_cut: false,
            annotations: Vec::new(),
        }
    }
}
