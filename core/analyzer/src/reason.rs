//! Why growth is called what it is.

use gpumem_model::units::Bytes;
use serde::Serialize;

/// Why growth is called what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reason {
    /// Too few runs to tell.
    TooFewRuns,
    /// It has stopped, or slows down.
    Stopped,
    /// Arrays that were allocated before are written for the first time: the system gives a page of memory
    /// when it is touched.
    FirstWrites,
    /// The name that grew has one tensor, which each run replaces by a larger one.
    OneTensor,
    /// The name that grew has a container with a bound, which fills up.
    Fills {
        /// How many entries it has.
        n: u64,
        /// How many it has at most.
        most: u64,
        /// What it has then, in bytes.
        #[serde(rename = "when_full_bytes")]
        when_full: Bytes,
    },
    /// No name holds it where only names count, or the name does not collect: the host in a loop.
    NotCollected,
    /// Objects that only refer to each other hold it, until the garbage collector's next run.
    WaitsForCollector,
    /// Objects that only refer to each other hold it, and the garbage collector is off.
    CollectorOff,
    /// The number of live allocations rose in nearly every run: something accumulates.
    AllocationsGrew {
        /// In how many runs they rose.
        n_grown: usize,
        /// Of how many.
        n_runs: usize,
    },
    /// The number of live allocations never rose: something is replaced by a larger version.
    AllocationsStayed {
        /// Of how many runs.
        n_runs: usize,
    },
    /// A name collects it, and neither is there a sign of an accident, nor will it soon fill the device.
    MayBeMeant,
    /// A cell takes older items out of the name again, at a size that is not known.
    Trimmed,
    /// A cell uses all that the name collects.
    Meant,
    /// What holds it shows that nobody meant to keep it.
    Accident,
    /// The device is full within this many runs or steps.
    FullSoon {
        /// How many more fill the device.
        n_runs: u64,
    },
    /// It has taken a tenth of the device or more.
    TakesMuch {
        /// How much it has taken.
        #[serde(rename = "n_bytes")]
        taken: Bytes,
    },
    /// No name is known to hold it.
    HolderUnknown,
    /// Looks found no object of Python's that has more: memory of C or C++ code.
    Native,
    /// It rests on one of the two tests alone, or chance may explain it.
    NotBeyondDoubt,
}

impl Reason {
    /// It grows no further than its input, or its container, lets it.
    pub const fn is_bound(self) -> bool {
        matches!(
            self,
            Self::OneTensor | Self::FirstWrites | Self::Fills { .. }
        )
    }

    /// You may want what it collects.
    pub const fn is_meant(self) -> bool {
        matches!(self, Self::MayBeMeant | Self::Meant | Self::Trimmed)
    }
}
