//! What a device held when memory ran out, in parts that a bar can show.

use super::Case;
use crate::recording::{OomHolder, RunIdx};
use crate::units::Bytes;

/// At most so many names are told.
const N_NAMES: usize = 4;

/// Who had a part of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShortagePart {
    /// Tensors.
    Tensors,
    /// The allocator's cache.
    Cache,
    /// Context and libraries of this process.
    Context,
    /// Other processes.
    Others,
    /// Nobody.
    Free,
}

impl ShortagePart {
    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Tensors => "in tensors",
            Self::Cache => "cache",
            Self::Context => "context and libraries",
            Self::Others => "other processes",
            Self::Free => "free",
        }
    }
}

/// What was wanted and what there was. What nobody told is `None`, or no part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The request that failed.
    pub wanted: Option<Bytes>,
    /// The most that could be had.
    pub room: Option<Bytes>,
    /// What took up the device, and what was free.
    pub parts: Vec<(ShortagePart, Bytes)>,
    /// The largest free piece of the cache.
    pub largest_free: Option<Bytes>,
    /// How much more would have been enough.
    pub missing: Option<Bytes>,
    /// The run of which the recording tells where memory lay at that moment.
    pub mapped: Option<RunIdx>,
    /// It happened on a device that nobody read: the finding stands with one that was.
    pub elsewhere: bool,
    /// The names that held most, each with what it held.
    pub holders: Vec<(String, Bytes)>,
}

impl Case<'_> {
    pub(super) fn shortage(&self) -> Shortage {
        let parts = [
            (ShortagePart::Tensors, self.allocated()),
            (ShortagePart::Cache, self.unallocated()),
            (ShortagePart::Context, self.beside()),
            (ShortagePart::Others, self.others().0),
            (ShortagePart::Free, self.free()),
        ];
        let known = parts
            .into_iter()
            .filter_map(|(part, size)| Some((part, size?)));
        let holders = self.oom.holders.iter().take(N_NAMES);
        Shortage {
            wanted: self.figures().wanted,
            room: self.room(),
            parts: known.filter(|(_, size)| *size > Bytes::ZERO).collect(),
            largest_free: self.figures().largest_free,
            missing: self.missing(),
            mapped: {
                let run = self.outermost.idx;
                let mapped = self.recording.mapped(run, self.device);
                mapped.map(|_| run)
            },
            elsewhere: self.elsewhere,
            holders: holders.map(|holder| (name(holder), holder.used)).collect(),
        }
    }
}

/// A holder's name, or what it is where names are not kept.
pub(super) fn name(holder: &OomHolder) -> String {
    match (holder.name.as_str(), holder.kind.words()) {
        ("", Some(words)) => words.to_owned(),
        ("", None) => "a variable".to_owned(),
        (name, _) => name.to_owned(),
    }
}
