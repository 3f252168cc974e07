//! What the allocator's own history of one run adds up to.

use super::{DeviceIdx, RunIdx, Sample};
use crate::units::{Bytes, Nanos};

/// What was allocated in one place (a line, a module, a stack) in the course of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often something was allocated there.
    pub n_allocations: u64,
    /// All of it, whether it was freed or not.
    pub allocated: Bytes,
    /// Of it what was still alive at the run's end.
    pub retained: Bytes,
    /// Of it what was alive when the run's level was highest.
    pub at_peak: Bytes,
    /// Of `at_peak` what lived for at least half of the run, and was freed in it.
    pub long_lived: Bytes,
    /// How long the longest-lived block lived that was freed in the run.
    pub longest: Nanos,
}

/// What one line of the run's own cell allocated, calls that it made included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineTally {
    /// Counted from 1 in the cell as typed. `None`: no line of the cell was on the stack,
    /// as in a backward pass, which runs in a thread of its own.
    pub line: Option<u32>,
    /// What it allocated.
    pub tally: Tally,
}

/// What was allocated inside the `forward` of modules of these classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleTally {
    /// Class names, outermost first: `Net › Block › Linear`.
    pub path: String,
    /// What it allocated.
    pub tally: Tally,
}

/// What was allocated under one stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackTally {
    /// Innermost first, as people read them: `forward (In [3]:12)`.
    pub frames: Vec<String>,
    /// What it allocated.
    pub tally: Tally,
}

/// How many of the blocks that were freed in the run lived no longer than this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// The upper end of this class; `None` in the last, which has none.
    pub up_to: Option<Nanos>,
    /// How many blocks.
    pub n_blocks: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// The highest level of a traced run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TracedPeak {
    /// When it was reached.
    pub at: Nanos,
    /// The level is at least this.
    pub low: Bytes,
    /// And at most this: the same where every block's size is known to the byte.
    pub high: Bytes,
    /// Of it what was there when the run began.
    pub from_before: Bytes,
}

/// What the history of one run on one device adds up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Which run.
    pub run: RunIdx,
    /// On which device.
    pub device: DeviceIdx,
    /// Allocated and reserved after each change, downsampled without losing an extreme.
    pub steps: Vec<Sample>,
    /// How many allocations, frees and changes of segments there were.
    pub n_events: u64,
    /// The oldest events were overwritten by later ones: what is said holds for the rest.
    pub is_cut: bool,
    /// Everything that was allocated.
    pub total: Tally,
    /// The highest level.
    pub peak: TracedPeak,
    /// By line of the cell, those that kept most first.
    pub lines: Vec<LineTally>,
    /// By class of module, those that held most at the peak first.
    pub modules: Vec<ModuleTally>,
    /// By stack, those that kept or held most first.
    pub stacks: Vec<StackTally>,
    /// Of the blocks that were freed in the run.
    pub lifetimes: Vec<Lifetimes>,
}
