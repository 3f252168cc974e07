//! What a device held when memory ran out, in parts that a bar can show, and what would have avoided it.

use serde::Serialize;

use super::oom_cause::OomCause;
use super::oom_cures::Cure;
use gpumem_model::named;
use gpumem_model::recording::{OomHolder, RunIdx};
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
    /// What would have been enough, in the order in which to try it. The finding's first suggestions say the same.
    pub cures: Vec<Cure>,
    /// Why it happened, the most decisive first: what `cures` come from, and what is good to know beside them.
    #[serde(skip)]
    pub causes: Vec<OomCause>,
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
