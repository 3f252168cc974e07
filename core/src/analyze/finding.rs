//! One verdict of the analyzer with its evidence.

use std::cmp::Reverse;

use super::cell::CellRef;
use super::details::{Details, SeriesGrowth};
use super::evidence::Evidence;
use super::growth::State;
use super::row::Metric;
use crate::holders::{Fix, Holder};
use crate::recording::{DeviceIdx, RunIdx};
use crate::severity::Severity;
use crate::sort;
use crate::units::Bytes;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// Every run, or every step, keeps more memory, beyond reasonable doubt.
    Leak,
    /// It grows, but what holds it, or whether it goes on, is not known.
    Growing,
    /// It grew and stopped: a warm-up, a cache, a plateau.
    Settled,
    /// Memory that is free in the allocator, but in pieces that cannot be used or given back.
    Fragmentation,
    /// Allocations that succeed only after the cache was flushed: the device is at its edge.
    Pressure,
    /// A run whose peak stands far above that of the others.
    Spike,
    /// Every run takes memory from the driver and gives it back.
    Repeated,
    /// Runs that reserve much more than they ever use.
    Inefficient,
    /// A run builds its new result while the old one is still alive.
    Doubling,
    /// What this process holds outside the allocator grows.
    Gap,
    /// A line's results live through most of a run and are then given back.
    LongLived,
    /// A request that could not be served.
    OutOfMemory,
    /// Memory that IPython or Python keeps of what the user let go of.
    Retention,
}

impl FindingKind {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Growing => "growing",
            Self::Settled => "settled",
            Self::Fragmentation => "fragmentation",
            Self::Pressure => "pressure",
            Self::Spike => "spike",
            Self::Repeated => "repeated_allocation",
            Self::Inefficient => "inefficient_allocation",
            Self::Doubling => "rerun_doubling",
            Self::Gap => "growing_gap",
            Self::LongLived => "long_lived_intermediates",
            Self::OutOfMemory => "out_of_memory",
            Self::Retention => "retention",
        }
    }
}

/// Why a finding is no concern any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Withdrawn {
    /// The device fell back to where it stood before the growth.
    GivenBack,
    /// The cell has another text now.
    Edited,
    /// A later run of the cell had enough memory.
    HadEnough,
    /// What was kept was let go of.
    LetGo,
}

impl Withdrawn {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GivenBack => "given_back",
            Self::Edited => "edited",
            Self::HadEnough => "had_enough",
            Self::LetGo => "let_go",
        }
    }
}

/// One verdict with its evidence, as facts: [`wording`](crate::wording) makes sentences of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stays the same while the finding stands, so that a card can be followed.
    pub id: String,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// The verdict on its series; `None` if it is about none, as an error for lack of memory.
    pub state: Option<State>,
    /// Why it is no concern any more, if it is withdrawn.
    pub withdrawn: Option<Withdrawn>,
    /// The cell; `None` if it is about a device as a whole.
    pub cell: Option<CellRef>,
    /// The label of the steps or the names of the blocks inside the cell, outermost first.
    pub path: Vec<String>,
    /// The device; see `known_device`.
    pub device: DeviceIdx,
    /// On which of its levels.
    pub metric: Metric,
    /// The runs that it rests on.
    pub runs: Vec<RunIdx>,
    /// How many runs, or steps where it counts steps, it rests on.
    pub n_runs: usize,
    /// The names that hold it, the most first: `grown` is what each has more over these runs.
    pub holders: Vec<Holder>,
    /// What to change so that the first of them lets go.
    pub fix: Option<Fix>,
    /// The figures that it rests on.
    pub evidence: Vec<Evidence>,
    /// What only its kind of finding has.
    pub details: Details,
}

impl Finding {
    /// The device to name; `None` if it happened on one that nobody read.
    pub fn known_device(&self) -> Option<DeviceIdx> {
        let elsewhere = match &self.details {
            Details::OutOfMemory(breakdown) => breakdown.elsewhere,
            _ => false,
        };
        (!elsewhere).then_some(self.device)
    }

    /// How fast a series grows, if the finding is about one.
    pub fn growth(&self) -> Option<&SeriesGrowth> {
        self.details.growth()
    }

    /// It counts steps inside a run, not runs.
    pub fn counts_steps(&self) -> bool {
        matches!(&self.details, Details::Growth(details) if details.steps)
    }

    /// A finding with nothing but its head: to be filled by struct update.
    pub(super) fn about(
        kind: FindingKind,
        subject: &str,
        device: DeviceIdx,
        metric: Metric,
        details: Details,
    ) -> Self {
        Self {
            id: format!("{}/{subject}", kind.name()),
            kind,
            severity: Severity::Info,
            state: None,
            withdrawn: None,
            cell: None,
            path: Vec::new(),
            device,
            metric,
            runs: Vec::new(),
            n_runs: 0,
            holders: Vec::new(),
            fix: None,
            evidence: Vec::new(),
            details,
        }
    }
}

/// Worst first: severity, what has happened already, leaks before what is only watched, size.
pub(super) fn sort(findings: &mut [Finding]) {
    sort::sort_by_key(findings, |finding| {
        let rate = finding.growth().map(|growth| growth.bytes_per_run);
        let kept = match &finding.details {
            Details::Retention(retained) => retained.kept,
            _ => Bytes::ZERO,
        };
        (
            Reverse(finding.severity),
            finding.kind != FindingKind::OutOfMemory,
            finding.state.unwrap_or(State::Suspected),
            Reverse(rate.unwrap_or_default()),
            Reverse(kept),
        )
    });
}
