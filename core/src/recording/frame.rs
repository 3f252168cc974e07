//! One self-contained change of a recording.

use thiserror::Error;

use super::{
    Cell, Device, DeviceIdx, HolderSnapshot, Points, Reading, Run, RunIdx, SegmentSnapshot, Source,
    Trace,
};
use crate::rules::Rules;
use crate::units::{Bytes, Nanos};

/// The longest payload of a frame that is written or read, in bytes.
pub const MAX_FRAME: usize = 64 << 20;

/// What the points of a [`Samples`] are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// Read by the sampler while the run went on.
    Sampled,
    /// Read where the user's code set a mark of this label: one per step of a loop.
    Marked(String),
}

/// One timed reading inside a run. Only what is known at that instant is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// Since the recording's start.
    pub at: Nanos,
    /// Which one of its series this is, counted from 0: downsampling leaves gaps. Of marks: how
    /// many steps have ended until then, so that 0 is where the loop began.
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
    /// What a reading says, its allocators summed. Without an instant and an ordinal.
    pub fn of(reading: &Reading) -> Self {
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
/// A later `Samples` of the same run, device and series replaces what is there
/// from its first instant on: appending and rewriting are the same frame.
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

/// A source as the recorder found it, for `%gpumem status` and for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    /// Which source.
    pub source: Source,
    /// It is read.
    pub used: bool,
    /// Why it is read, or why not.
    pub reason: String,
}

/// The first frame: what the session is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Names the session among others.
    pub session: String,
    /// Wall clock at the recording's start, nanoseconds since 1970 (UTC).
    pub wall_anchor: Nanos,
    /// Versions of what recorded, by name: `gpumem`, `python`, `ipython`, …
    pub versions: Vec<(String, String)>,
    /// The sources as found at the start.
    pub sources: Vec<SourceState>,
    /// What findings are judged by, as the user set it.
    pub rules: Rules,
}

/// The last frame of a session that ended in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finish {
    /// Since the recording's start.
    pub at: Nanos,
}

/// What a recording is known to lack: the end of a file that was cut, or what is too long to be
/// written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// One sentence, without its full stop.
    pub words: String,
}

/// One self-contained change of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// What the session is; the first frame, or a newer state of it.
    Header(Header),
    /// A device, or a newer state of it.
    Device(Device),
    /// A cell, or what is new of it: its revisions join those that are known.
    Cell(Cell),
    /// A run that began, or its newer state (at the latest: ended).
    Run(Run),
    /// Points inside a run.
    Samples(Samples),
    /// What the allocator's history of a run adds up to, or its newer state.
    Trace(Box<Trace>),
    /// Who held a device's memory after a run.
    Holders(Box<HolderSnapshot>),
    /// Where in its segments a device's memory lay.
    Segments(Box<SegmentSnapshot>),
    /// Something that is known to be missing.
    Missing(Missing),
    /// The session ended in order.
    Finish(Finish),
}

impl Frame {
    /// The run that it tells of.
    pub fn run(&self) -> Option<RunIdx> {
        match self {
            Self::Run(run) => Some(run.idx),
            Self::Samples(samples) => Some(samples.run),
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

/// A frame that does not fit what came before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// An index that skips, or names nothing.
    #[error("{frame} names {what} {idx}, but only {n_known} are known")]
    Dangling {
        /// The frame that names it.
        frame: &'static str,
        /// What it names.
        what: &'static str,
        /// The index it gives.
        idx: u32,
        /// How many there are.
        n_known: usize,
    },
    /// A run stays in its cell, and in the run in which it began.
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
