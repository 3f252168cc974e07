//! Why memory ran out, and what removes that.

use gpumem_model::holders::{RootKind, Twin};
use gpumem_model::recording::Source;
use gpumem_model::units::Bytes;

/// One thing that would have helped, or is worth knowing: an entry of
/// [`OomBreakdown::causes`](super::OomBreakdown::causes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OomCause {
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
    /// Other processes hold memory.
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
    /// Displayed results hold memory.
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
    /// No cell has used a name for a while.
    Unused {
        /// What would be free without it.
        kept: Bytes,
        /// The name; several with commas between them, if they hold it together.
        name: String,
        /// The number of the cell that used it last.
        execution_count: Option<u32>,
        /// Another variable holds the same.
        twin: Option<Twin>,
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

impl OomCause {
    /// What would be free without it; `None` if that is not known, or if it frees nothing.
    pub fn frees(&self) -> Option<Bytes> {
        match self {
            Self::Growth { kept: frees, .. }
            | Self::Collected { kept: frees, .. }
            | Self::Fragmented {
                unallocated: frees, ..
            }
            | Self::CachedElsewhere { cached: frees, .. }
            | Self::OtherProcesses { used: frees, .. }
            | Self::OldCopy { kept: frees, .. }
            | Self::EarlierError { kept: frees, .. }
            | Self::Outputs { held: frees }
            | Self::OptimizerState { kept: frees, .. }
            | Self::NoBackward { kept: frees, .. }
            | Self::Unused { kept: frees, .. } => Some(*frees),
            Self::TooLarge { .. }
            | Self::Limited { .. }
            | Self::SmallerStep
            | Self::Traceback { .. }
            | Self::Unread => None,
        }
    }

    /// The statement or the magic that frees it, if one does.
    pub fn command(&self) -> Option<String> {
        let of_place = |kind: RootKind| kind.release().map(str::to_owned);
        match self {
            Self::CachedElsewhere { .. } => Some("%gpumem release cache".to_owned()),
            Self::EarlierError { .. } | Self::Traceback { .. } => of_place(RootKind::Traceback),
            Self::Outputs { .. } => of_place(RootKind::OutputHistory),
            Self::OldCopy { name, .. } | Self::Unused { name, .. } => Some(format!("del {name}")),
            _ => None,
        }
    }
}

/// What an error keeps alive through its frames: [`OomCause::Traceback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldByError {
    /// As a search found.
    Exactly(Bytes),
    /// At most what its run left.
    UpTo(Bytes),
    /// It is not known.
    Unknown,
}
