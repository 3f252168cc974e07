//! What a device held when memory ran out, in parts that a bar can show, and what would have avoided it.

use serde::Serialize;

use gpumem_model::named;
use gpumem_model::recording::{OomHolder, RunIdx, Source};
use gpumem_model::units::Bytes;

named! {
    /// Who used a part of the device: [`OomBreakdown::parts`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OomPart {
        /// Tensors.
        Tensors = "tensors",
        /// The allocator's cache.
        Cache = "cache",
        /// Context and libraries of this process.
        Context = "context",
        /// Other processes.
        Others = "other_processes",
        /// Nobody.
        Free = "free",
    }
}

/// What was requested and what there was when memory ran out, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OomBreakdown {
    /// The request that failed.
    #[serde(rename = "wanted_bytes")]
    pub wanted: Option<Bytes>,
    /// Free on the device, as far as the framework's limit allowed to take it.
    #[serde(rename = "free_bytes")]
    pub free: Option<Bytes>,
    /// The size of the device.
    #[serde(rename = "total_bytes")]
    pub total: Option<Bytes>,
    /// The most that could be had: the device, or a limit below it.
    #[serde(skip)]
    pub room: Option<Bytes>,
    /// What filled the device, and what was free.
    pub parts: Vec<OomShare>,
    /// The largest free piece of the cache.
    #[serde(rename = "largest_free_bytes")]
    pub largest_free: Option<Bytes>,
    /// How much more would have been enough.
    #[serde(rename = "missing_bytes")]
    pub missing: Option<Bytes>,
    /// The run whose segments were recorded at that moment.
    #[serde(skip)]
    pub mapped: Option<RunIdx>,
    /// It happened on a device that is not read; the finding names another one.
    #[serde(skip)]
    pub elsewhere: bool,
    /// The cell continued after it.
    pub survived: bool,
    /// How often it happened in the run, as the allocators count.
    #[serde(skip)]
    pub n_times: Option<u64>,
    /// The ids of the other processes that held memory.
    #[serde(skip)]
    pub others: Vec<u64>,
    /// The names that held memory, the largest first.
    pub holders: Vec<OomHolder>,
    /// What would have avoided it, the most decisive first.
    #[serde(skip)]
    pub causes: Vec<Cause>,
}

/// A part of a device when memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename = "Part")]
pub struct OomShare {
    /// Who used it.
    #[serde(rename = "name")]
    pub part: OomPart,
    /// How much it is.
    #[serde(rename = "n_bytes")]
    pub size: Bytes,
}

impl OomBreakdown {
    /// The size of a part, if it is known and not zero.
    pub fn part(&self, part: OomPart) -> Option<Bytes> {
        let mut parts = self.parts.iter();
        parts.find(|it| it.part == part).map(|it| it.size)
    }
}

/// One thing that would have helped, or is worth knowing: an entry of
/// [`OomBreakdown::causes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// What grows from run to run holds at least what was missing.
    Growth {
        /// What it kept over all of its runs.
        kept: Bytes,
        /// The name that holds it, if that is known.
        name: Option<String>,
        /// The cell that keeps it.
        cell: String,
        /// It is a leak, beyond reasonable doubt.
        is_leak: bool,
    },
    /// What a name collected in this very run is at least what was missing.
    Collected {
        /// What it has more since the run began.
        kept: Bytes,
        /// The name.
        name: String,
    },
    /// Freeing does not help: the device never has this much.
    TooLarge {
        /// The most that could be had.
        room: Bytes,
    },
    /// The device had room, but the framework was not allowed to take it.
    Limited {
        /// The framework's limit.
        limit: Bytes,
    },
    /// Enough was free, but in pieces.
    Fragmented {
        /// Free in the cache.
        unallocated: Bytes,
        /// The largest piece of it.
        largest: Option<Bytes>,
        /// Whether segments that grow in place would join these pieces.
        can_expand: bool,
    },
    /// Another framework of this process caches memory that it does not use.
    CachedElsewhere {
        /// Which one.
        source: Source,
        /// Free in its cache.
        cached: Bytes,
    },
    /// Without other processes there would have been room.
    OtherProcesses {
        /// What they hold.
        used: Bytes,
        /// Their numbers, if those are known.
        pids: Vec<u64>,
    },
    /// What an earlier run of the same cell kept was still there while it was built anew.
    OldCopy {
        /// What it kept.
        kept: Bytes,
        /// The name that the cell binds.
        name: String,
    },
    /// An earlier error still kept memory alive.
    EarlierError {
        /// The number of the cell that failed.
        execution_count: Option<u32>,
        /// What it kept, at most.
        kept: Bytes,
    },
    /// Displayed results hold enough.
    Outputs {
        /// What they hold.
        held: Bytes,
    },
    /// An optimizer's first step made its state in this run, and that is at least what was missing.
    OptimizerState {
        /// What it made.
        kept: Bytes,
        /// The optimizer's name.
        name: String,
    },
    /// A graph holds at least what was missing, and the code that made it runs no backward pass.
    NoBackward {
        /// What the graph holds.
        kept: Bytes,
        /// The module with a `no_grad`.
        framework: &'static str,
    },
    /// A name holds at least what was missing, and no cell has used it for a while.
    Unused {
        /// What would be free without it.
        kept: Bytes,
        /// The name; several with commas between them, if they hold it together.
        name: String,
        /// The number of the cell that used it last.
        execution_count: Option<u32>,
    },
    /// None of these: the step needs too much.
    SmallerStep,
    /// What the error itself keeps alive from now on.
    Traceback {
        /// How much.
        kept: HeldByError,
    },
    /// The device is not read.
    Unread,
}

/// What an error keeps alive through its frames: [`Cause::Traceback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldByError {
    /// As a search found.
    Exactly(Bytes),
    /// At most what its run left.
    UpTo(Bytes),
    /// It is not known.
    Unknown,
}
