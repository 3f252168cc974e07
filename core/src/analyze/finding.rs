//! One verdict of the analyzer with its evidence.

use std::cmp::Reverse;

use super::growth::{Shape, State};
use super::levels::Lane;
use super::oom::Shortage;
use crate::holders::{Fix, Holder, RootKind};
use crate::order;
use crate::recording::{CellIdx, DeviceIdx, RunIdx};
use crate::severity::Severity;
use crate::units::{ByteDelta, Bytes};

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

/// A cell as people see it: first line of source, Jupyter's latest number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRef {
    /// Its position in the recording.
    pub idx: CellIdx,
    /// The frontend's id, or the hash of its source.
    pub id: String,
    /// The first line of its source that says something, or the user's label.
    pub label: String,
    /// Jupyter's latest number.
    pub execution_count: Option<u32>,
}

/// One figure that a verdict rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The name of the statistic: `block_t`.
    pub name: &'static str,
    /// What it says, in plain words.
    pub words: String,
    /// Its value.
    pub value: f64,
    /// The threshold that it was held against, where there is one.
    pub threshold: Option<f64>,
    /// It speaks for the finding.
    pub holds: bool,
}

/// What a kind of finding tells in figures of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Figures {
    /// Of [`FindingKind::Retention`].
    Retention {
        /// What keeps it.
        place: RootKind,
        /// What nothing but such places keeps.
        kept: Bytes,
        /// The run that left it there.
        since: Option<RunIdx>,
    },
    /// Of [`FindingKind::OutOfMemory`].
    OutOfMemory(Shortage),
    /// Of [`FindingKind::Fragmentation`].
    Pieces {
        /// Of which run the recording tells where memory lay.
        mapped: Option<RunIdx>,
    },
    /// Of [`FindingKind::Doubling`], of the latest re-run.
    Doubling {
        /// What runs before it had left.
        old: Bytes,
        /// What it built.
        new: Bytes,
        /// How far it rose above its start.
        rose: Bytes,
    },
}

/// One verdict with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stays the same while the finding stands, so that a card can be followed.
    pub id: String,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// The verdict.
    pub state: State,
    /// Why what grew is no concern any more, where the finding is withdrawn.
    pub withdrawn: Option<&'static str>,
    /// The course of the series, where the finding is about one.
    pub shape: Option<Shape>,
    /// Where; `None` when it is about a device as a whole.
    pub cell: Option<CellRef>,
    /// The label of the steps or the names of the blocks inside the cell, outermost first.
    pub path: Vec<String>,
    /// On which device; see `known_device`.
    pub device: DeviceIdx,
    /// On which of its levels.
    pub lane: Lane,
    /// The runs that it rests on.
    pub runs: Vec<RunIdx>,
    /// How many runs, or steps where `steps` is set, it rests on.
    pub n_runs: usize,
    /// The series counts steps inside a run, not runs.
    pub steps: bool,
    /// What each run (or step) keeps: Theil-Sen slope.
    pub bytes_per_run: Option<ByteDelta>,
    /// Its confidence interval of 95 %, in bytes.
    pub interval: Option<(ByteDelta, ByteDelta)>,
    /// How many more runs (or steps) until memory runs out at this rate, from the peak.
    pub runs_to_oom: Option<u64>,
    /// One sentence: what happens where.
    pub title: String,
    /// One sentence: how sure, how fast, what next.
    pub detail: String,
    /// What only its kind of finding tells.
    pub figures: Option<Figures>,
    /// The names that hold it, the most first: `grown` is what each has more over these runs.
    pub holders: Vec<Holder>,
    /// What to change so that the first of them lets go.
    pub fix: Option<Fix>,
    /// What to do about it, the most likely first.
    pub suggestions: Vec<String>,
    /// The figures that it rests on.
    pub evidence: Vec<Evidence>,
    /// The series as judged, in bytes, thinned to at most 64 points: for a sparkline.
    pub sparkline: Vec<f64>,
}

impl Finding {
    /// The device to name; `None` where it happened on one that nobody read.
    pub fn known_device(&self) -> Option<DeviceIdx> {
        let elsewhere = match &self.figures {
            Some(Figures::OutOfMemory(shortage)) => shortage.elsewhere,
            _ => false,
        };
        (!elsewhere).then_some(self.device)
    }

    /// A finding of `kind` with nothing told yet: to be filled by struct update.
    pub(super) fn about(kind: FindingKind, subject: &str, device: DeviceIdx, lane: Lane) -> Self {
        Self {
            id: format!("{}/{subject}", kind.name()),
            kind,
            severity: Severity::Info,
            state: State::Watch,
            withdrawn: None,
            shape: None,
            cell: None,
            path: Vec::new(),
            device,
            lane,
            runs: Vec::new(),
            n_runs: 0,
            steps: false,
            bytes_per_run: None,
            interval: None,
            runs_to_oom: None,
            title: String::new(),
            detail: String::new(),
            figures: None,
            holders: Vec::new(),
            fix: None,
            suggestions: Vec::new(),
            evidence: Vec::new(),
            sparkline: Vec::new(),
        }
    }
}

/// Worst first: severity, what has happened already, leaks before what is only watched, size.
pub(super) fn sort(findings: &mut [Finding]) {
    order::sort_by_key(findings, |finding| {
        let rate = finding.bytes_per_run.unwrap_or_default();
        let kept = match finding.figures {
            Some(Figures::Retention { kept, .. }) => kept,
            _ => Bytes::ZERO,
        };
        (
            Reverse(finding.severity),
            finding.kind != FindingKind::OutOfMemory,
            finding.state,
            Reverse(rate),
            Reverse(kept),
        )
    });
}
