//! One self-contained change of a recording.

use thiserror::Error;

use super::{
    Cell, Device, DeviceIdx, HolderSnapshot, Loop, LoopIdx, Points, Reading, Run, RunIdx,
    SegmentSnapshot, Source, Trace,
};
use crate::named;
use crate::rules::Rules;
use crate::units::{Bytes, Nanos};

/// The longest payload of a frame that is written or read, in bytes.
///
/// It bounds the memory that reading a damaged file can take. The format is described in
/// `format`.
pub const MAX_FRAME: usize = 64 << 20;

/// What the points of a [`Samples`] frame are. [`Recording::samples`](super::Recording::samples)
/// looks a series up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    /// Read by the sampler during the run.
    Sampled,
    /// Read at `gpumem.mark(label)` in the user's code: one point per step of a loop.
    Marked(String),
    /// Read where an iteration of a loop ended, if that was affordable: [`Loop`] tells which loop.
    Loop(LoopIdx),
}

/// One timed reading inside a run. Levels that were not known at that instant are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// Since the recording's start.
    pub at: Nanos,
    /// Position in its series, counted from 0; downsampling leaves gaps. Of a mark or a loop: how many
    /// steps have ended by then, so 0 is the start of the loop.
    pub ordinal: u64,
    /// Allocated, summed over the device's allocators.
    pub allocated: Option<Bytes>,
    /// Reserved, summed over the device's allocators.
    pub reserved: Option<Bytes>,
    /// Used by every process together.
    pub device_used: Option<Bytes>,
    /// Used by this process.
    pub process_used: Option<Bytes>,
}

impl Sample {
    /// The levels of a reading, summed over its allocators; `at` and `ordinal` are zero.
    pub fn from_reading(reading: &Reading) -> Self {
        Self {
            allocated: reading.total(|levels| &levels.allocated),
            reserved: reading.total(|levels| &levels.reserved),
            device_used: reading.driver.device_used.known(),
            process_used: reading.driver.process_used.known(),
            ..Self::default()
        }
    }
}

/// Points of one series in a run, in time order.
///
/// A later `Samples` of the same run, device and series replaces the points from its first instant on,
/// so appending and rewriting are the same frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// Inside which run.
    pub run: RunIdx,
    /// Of which device.
    pub device: DeviceIdx,
    /// What the points are.
    pub series: Series,
    /// In time order.
    pub points: Points,
}

/// A source as the recorder found it, for `%gpumem status` and the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    /// Which source.
    pub source: Source,
    /// Whether it is read.
    pub used: bool,
    /// Why it is read, or why not.
    pub reason: String,
}

/// The first frame: which session this is, and the rules that it is judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Identifies the session.
    pub session: String,
    /// Wall clock at the recording's start, in nanoseconds since 1970 (UTC): the only such time in a
    /// recording.
    pub wall_anchor: Nanos,
    /// Versions of the software that recorded, by name: `gpumem`, `python`, `ipython`, …
    pub versions: Vec<(String, String)>,
    /// The sources as found at the start.
    pub sources: Vec<SourceState>,
    /// The rules that findings are judged by, as the user set them.
    pub rules: Rules,
    /// What is known of the process that recorded, by name: `pid`, `host`, `rank`, `slurm_job`, …
    pub process: Vec<(String, String)>,
    /// The names and paths whose growth the user means: `losses`, `trainer.logs`.
    pub expected: Vec<String>,
}

/// The last frame of a session that ended in order. A recording without it was cut off or is still
/// growing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finish {
    /// Since the recording's start.
    pub at: Nanos,
}

/// What a recording is known to lack: the end of a file that was cut, or a frame that was too long to
/// be written. [`Recording::missing`](super::Recording::missing) lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// One sentence, without its full stop.
    pub words: String,
}

/// One self-contained change of a recording.
///
/// A newer state of the same thing is sent as another whole frame, so a reader who misses a frame is
/// wrong about one thing only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// What the session is; the first frame, or a newer state of it.
    Header(Header),
    /// A device, or a newer state of it.
    Device(Device),
    /// A cell, or new revisions of it; they are added to the known ones.
    Cell(Cell),
    /// A run that began, or its newer state (ended at the latest).
    Run(Run),
    /// Points inside a run.
    Samples(Samples),
    /// A loop of a run, or its newer state.
    Loop(Box<Loop>),
    /// A run's trace, or its newer state.
    Trace(Box<Trace>),
    /// The holders of a device's memory after a run, or inside of it.
    Holders(Box<HolderSnapshot>),
    /// The segments of a device's memory.
    Segments(Box<SegmentSnapshot>),
    /// What is known to be missing.
    Missing(Missing),
    /// The session ended in order.
    Finish(Finish),
}

impl Frame {
    /// Points of one series in a run.
    pub fn samples(
        run: RunIdx,
        device: DeviceIdx,
        series: Series,
        points: impl Into<Points>,
    ) -> Self {
        Self::Samples(Samples {
            run,
            device,
            series,
            points: points.into(),
        })
    }

    /// The run that the frame is about, if it is about one.
    pub fn run(&self) -> Option<RunIdx> {
        match self {
            Self::Run(run) => Some(run.idx),
            Self::Samples(samples) => Some(samples.run),
            Self::Loop(of_run) => Some(of_run.run),
            Self::Trace(trace) => Some(trace.run),
            Self::Holders(held) => Some(held.run),
            Self::Segments(mapped) => Some(mapped.run),
            Self::Header(_)
            | Self::Device(_)
            | Self::Cell(_)
            | Self::Missing(_)
            | Self::Finish(_) => None,
        }
    }
}

named! {
    /// What other frames refer to by its index.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum EntryKind {
        /// A [`Device`].
        Device = "device",
        /// A [`Cell`].
        Cell = "cell",
        /// A [`Run`].
        Run = "run",
    }
}

/// A frame that does not fit what came before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// An index that skips, or that nothing has.
    #[error("{frame} names {} {idx}, but only {n_known} are known", what.name())]
    Dangling {
        /// The frame that names it.
        frame: &'static str,
        /// What it names.
        what: EntryKind,
        /// The index it gives.
        idx: u32,
        /// How many there are.
        n_known: usize,
    },
    /// A run that changes the run around it, or its cell once it has ended.
    #[error("run frame moves run {run} to another place")]
    Moved {
        /// Which run.
        run: u32,
    },
    /// Points that go back in time.
    #[error("run {run}: point {point_idx} is at {at} ns, before the one ahead of it")]
    Unordered {
        /// Of which run.
        run: u32,
        /// Which point of the frame.
        point_idx: usize,
        /// Its time in nanoseconds.
        at: u64,
    },
}
