//! One execution of a cell, or of a block in one.

use super::{CellIdx, DeviceIdx, OutOfMemory, Reading, RunIdx, SourceHash};
use crate::named;
use crate::units::Nanos;

named! {
    /// How a run ended, if it did. [`Status::name`] is the word in JSON and Python.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Status {
        /// Not yet ended.
        #[default]
        Running = "running",
        /// Without an error.
        Ok = "ok",
        /// With an exception.
        Error = "error",
        /// By the user.
        Interrupted = "interrupted",
        /// With an out-of-memory error of a framework or the driver.
        OutOfMemory = "out_of_memory",
        /// With the death of the kernel: nothing was read at its end.
        Died = "died",
    }
}

named! {
    /// What a [`Run`] executed.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum RunKind {
        /// A cell.
        #[default]
        Cell = "cell",
        /// A `with gpumem.record(...)` block or a decorated function, nested in a cell's run.
        Block = "block",
    }
}

/// The levels of one device around a run: an entry of [`Run::levels`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunLevels {
    /// Which device.
    pub device: DeviceIdx,
    /// When the run began.
    pub before: Reading,
    /// When it ended; `None` while it runs.
    pub after: Option<Reading>,
    /// The user (or `--reset-peak`) reset the allocator's peak counter inside the run.
    pub peak_reset: bool,
}

/// One execution of a cell, or of a block nested in one.
///
/// A run that has started but not ended has no `ended`, and `after` is `None` in its levels; a later
/// frame of the same index completes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Its position in the recording.
    pub idx: RunIdx,
    /// The cell that was executed, or in which the block was.
    pub cell: CellIdx,
    /// The cell's text at the time.
    pub revision: SourceHash,
    /// The run in which this one is nested.
    pub parent: Option<RunIdx>,
    /// What was executed.
    pub kind: RunKind,
    /// The name of a block, or the label that the user gave.
    pub label: Option<String>,
    /// Jupyter's number: `In [18]`.
    pub execution_count: Option<u32>,
    /// Since the recording's start.
    pub started: Nanos,
    /// Since the recording's start; `None` while it runs.
    pub ended: Option<Nanos>,
    /// How it ended.
    pub status: Status,
    /// Per device that was read, in the order of the devices.
    pub levels: Vec<RunLevels>,
    /// The last out-of-memory error that it met.
    pub oom: Option<Box<OutOfMemory>>,
    /// The runs that were under way at the same time and are neither around it nor in it, at most
    /// [`MAX_OVERLAPS`](Self::MAX_OVERLAPS). A run that is not in the recording may be among them.
    ///
    /// What a level moved by meanwhile belongs to none of them for certain.
    pub overlaps: Vec<RunIdx>,
    /// Cells that are not recorded ran just before it or since: what they read and define is not known.
    pub beside_unrecorded: bool,
}

impl Run {
    /// A run lists this many others; of one that lists as many, the times that it had alone are not known.
    pub const MAX_OVERLAPS: usize = 256;

    /// The levels of a device around it, if it was read.
    pub fn levels_on(&self, device: DeviceIdx) -> Option<&RunLevels> {
        self.levels.iter().find(|it| it.device == device)
    }
}
