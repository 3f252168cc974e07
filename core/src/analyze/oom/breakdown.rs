//! What a device held when memory ran out, in parts that a bar can show.

use serde::{Serialize, Serializer};

use super::Case;
use super::causes::Cause;
use crate::named;
use crate::recording::{OomHolder, RunIdx};
use crate::units::Bytes;

named! {
    /// Who used a part of the device: [`OomBreakdown::parts`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
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

/// What was requested and what there was when memory ran out. Unknown figures are `None`, or not among
/// the parts.
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
    #[serde(serialize_with = "parts")]
    pub parts: Vec<(OomPart, Bytes)>,
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

/// `{"name": "tensors", "n_bytes": 7}` of each.
fn parts<S: Serializer>(parts: &[(OomPart, Bytes)], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Part {
        name: OomPart,
        n_bytes: Bytes,
    }

    serializer.collect_seq(parts.iter().map(|&(name, n_bytes)| Part { name, n_bytes }))
}

impl OomBreakdown {
    /// The size of a part, if it is known and not zero.
    pub fn part(&self, part: OomPart) -> Option<Bytes> {
        let mut parts = self.parts.iter();
        parts.find(|(it, _)| *it == part).map(|(_, size)| *size)
    }
}

impl Case<'_> {
    pub(super) fn breakdown(&self) -> OomBreakdown {
        let (others_used, others) = self.others();
        let parts = [
            (OomPart::Tensors, self.allocated()),
            (OomPart::Cache, self.unallocated()),
            (OomPart::Context, self.beside()),
            (OomPart::Others, others_used),
            (OomPart::Free, self.free()),
        ];
        let known = parts
            .into_iter()
            .filter_map(|(part, size)| Some((part, size?)));
        let run = self.outermost.idx;
        OomBreakdown {
            wanted: self.figures().wanted,
            free: self.available(),
            total: self.figures().total.or(self.now.capacity),
            room: self.room(),
            parts: known.filter(|(_, size)| *size > Bytes::ZERO).collect(),
            largest_free: self.figures().largest_free,
            missing: self.missing(),
            mapped: self.recording.mapped(run, self.device).map(|_| run),
            elsewhere: self.elsewhere,
            survived: self.survived(),
            n_times: self.n_times(),
            others: others.iter().map(|other| other.pid).collect(),
            holders: self.oom.holders.clone(),
            causes: if self.is_over() {
                Vec::new()
            } else {
                Cause::all(self)
            },
        }
    }
}
