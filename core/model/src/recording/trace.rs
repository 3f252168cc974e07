//! What the allocator's history of one run adds up to. [`trace`](crate::trace) computes it.

use serde::Serialize;

use super::{DeviceIdx, RunIdx, Sample};
use crate::units::{Bytes, Nanos};

/// What was allocated in one place (a line, a module, a stack) during a run. [`Trace::total`] is the
/// tally of all places; [the trace module](crate::trace) has an example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AllocationTally {
    /// How many allocations were made there.
    pub n_allocations: u64,
    /// All bytes allocated there, freed or not.
    #[serde(rename = "allocated_bytes")]
    pub allocated: Bytes,
    /// Part of `allocated`: still alive at the run's end.
    #[serde(rename = "retained_bytes")]
    pub retained: Bytes,
    /// Part of `allocated`: alive when the run's level was highest.
    #[serde(rename = "at_peak_bytes")]
    pub at_peak: Bytes,
    /// Part of `at_peak`: lived for at least half of the run, and was freed in it.
    #[serde(rename = "long_lived_bytes")]
    pub long_lived: Bytes,
    /// Lifetime of the longest-lived block that was freed in the run.
    #[serde(rename = "longest_nanos")]
    pub longest: Nanos,
}

/// What one line of the run's own cell allocated, including the calls that it made: an entry of
/// [`Trace::lines`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LineTally {
    /// Counted from 1 in the cell as typed. `None` if no line of the cell was on the stack, as in a
    /// backward pass, which runs in its own thread.
    pub line: Option<u32>,
    /// What it allocated.
    #[serde(flatten)]
    pub tally: AllocationTally,
}

/// What was allocated inside the `forward` of modules of these classes: an entry of [`Trace::modules`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ModuleTally {
    /// Class names, outermost first: `Net › Block › Linear`.
    pub path: String,
    /// What it allocated.
    #[serde(flatten)]
    pub tally: AllocationTally,
}

/// What was allocated from one stack: an entry of [`Trace::stacks`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StackTally {
    /// Innermost first: `forward (In [3]:12)`.
    pub frames: Vec<String>,
    /// What it allocated.
    #[serde(flatten)]
    pub tally: AllocationTally,
}

/// One class of a histogram: how many blocks freed in the run lived at most this long. An entry of
/// [`Trace::lifetimes`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LifetimeClass {
    /// The upper end of this class; `None` for the last, which has none.
    #[serde(rename = "up_to_nanos")]
    pub up_to: Option<Nanos>,
    /// How many blocks.
    pub n_blocks: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// The highest level of a traced run: [`Trace::peak`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TracedPeak {
    /// When it was reached.
    #[serde(rename = "at_nanos")]
    pub at: Nanos,
    /// The level is at least this.
    #[serde(rename = "low_bytes")]
    pub low: Bytes,
    /// And at most this; equal to `low` if every block's size is known exactly.
    #[serde(rename = "high_bytes")]
    pub high: Bytes,
    /// Part of it: what was there when the run began.
    #[serde(rename = "from_before_bytes")]
    pub from_before: Bytes,
}

/// What the allocator's history of one run on one device adds up to.
/// [`Replay::trace`](crate::trace::Replay::trace) makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Which run.
    pub run: RunIdx,
    /// On which device.
    #[serde(skip)]
    pub device: DeviceIdx,
    /// Allocated and reserved after each change, downsampled without losing an extreme.
    #[serde(skip)]
    pub steps: Vec<Sample>,
    /// How many allocations, frees and segment changes there were.
    pub n_events: u64,
    /// The oldest events were overwritten; the figures are of the rest.
    pub is_cut: bool,
    /// Everything that was allocated.
    pub total: AllocationTally,
    /// The highest level.
    pub peak: TracedPeak,
    /// By line of the cell, the most retained first.
    #[serde(skip)]
    pub lines: Vec<LineTally>,
    /// By class of module, the most held at the peak first.
    pub modules: Vec<ModuleTally>,
    /// By stack, the most retained or held first.
    pub stacks: Vec<StackTally>,
    /// Lifetimes of the blocks that were freed in the run.
    pub lifetimes: Vec<LifetimeClass>,
}
