//! Every kind of finding: its name, its figures, and the check that finds it.

pub(crate) mod checks;
mod children;
mod decision;
mod doubling;
mod expected;
mod facts;
pub(crate) mod finding;
mod fingerprint;
pub(crate) mod fragmentation;
mod growing_holders;
mod growth_details;
pub(crate) mod leak;
mod library;
mod long_lived;
mod oom;
mod oom_breakdown;
mod oom_cause;
mod oom_cures;
pub(crate) mod outlived;
mod peaks;
mod reserve;
mod retention;
mod suggest;
mod traced;
mod unattributed_growth;

use serde::Serialize;

use crate::stats_cache::StatsCache;
use checks::{Checks, Everywhere};
pub use children::ChildrenDetails;
pub use doubling::DoublingDetails;
pub use finding::{Finding, Withdrawn};
pub use fingerprint::Fingerprint;
pub use fragmentation::FragmentationDetails;
use gpumem_model::recording::{DeviceIdx, RunIdx};
use gpumem_model::units::Bytes;
use gpumem_model::{json_form, named};
pub use growth_details::{Advice, GrowthDetails, SeriesGrowth, TracedRun};
pub use oom_breakdown::{OomBreakdown, OomPart, OomShare};
pub use oom_cause::{HeldByError, OomCause};
pub use oom_cures::{Cure, Sufficiency};
pub use outlived::{FreedVariable, OutlivedDetails};
pub use retention::RetentionDetails;

named! {
    /// What a finding is about. [`FindingKind::name`] is its name in JSON and Python, its documentation also the
    /// meaning in docs/findings.md.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FindingKind {
        /// Every run, or every step, keeps more memory, beyond reasonable doubt; it looks like an accident, or it
        /// soon fills the device.
        Leak = "leak",
        /// Memory grows, but there are too few runs, the holder is unknown, or you may want it.
        Growing = "growing",
        /// Memory grows, but no further than its container (`deque(maxlen=…)`) or its input allows.
        Bounded = "bounded",
        /// Memory grew and stopped: a warm-up, a cache, a plateau.
        Settled = "settled",
        /// IPython or Python keeps memory that your names no longer reach.
        Retention = "retention",
        /// A variable is deleted, or `None`, but something else keeps what it held.
        Outlived = "outlived",
        /// A process that a cell began holds memory, and nothing leads to it any more.
        Children = "children",
        /// A run builds its new result while the old one is still alive.
        Doubling = "rerun_doubling",
        /// An allocation failed.
        OutOfMemory = "out_of_memory",
        /// The allocator has free memory, but in pieces that it can neither use nor return to the driver.
        Fragmentation = "fragmentation",
        /// Nearly full: allocations succeed only after the cache is flushed, or less than 5 % of the device can
        /// still be used.
        Pressure = "pressure",
        /// One run's peak is far above the others (only if all peaks have an upper bound).
        Spike = "spike",
        /// Every run takes memory from the driver and gives it back.
        Repeated = "repeated_allocation",
        /// Runs reserve much more than they ever use.
        Inefficient = "inefficient_allocation",
        /// This process's memory outside the allocator grows.
        Gap = "growing_gap",
        /// A line's results live through most of a run and are then freed.
        LongLived = "long_lived_intermediates",
    }
}

/// What only its kind of finding has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FindingDetails {
    /// Of a cell's runs or steps: `Leak`, `Growing`, `Settled`.
    Growth(Box<GrowthDetails>),
    /// Of a device that grows from run to run while no cell alone explains it: `Growing`.
    UnattributedGrowth(SeriesGrowth),
    /// Of a device whose reserved memory lies in pieces: `Fragmentation`.
    Fragmentation(FragmentationDetails),
    /// Of a cell whose runs reserve more and more over a flat allocated: `Fragmentation`.
    ReservedGrowth {
        /// How fast.
        #[serde(flatten)]
        growth: SeriesGrowth,
        /// The run of which the recording tells where memory lay.
        #[serde(skip)]
        mapped: Option<RunIdx>,
    },
    /// A device that is nearly full.
    Pressure {
        /// How often the allocator flushed its cache.
        n_flushes: u64,
        /// Free on the device and in the allocator's cache, if that is hardly anything and no cache was flushed.
        #[serde(skip)]
        usable: Option<Bytes>,
    },
    /// What one run needed above its ends, and what is usual.
    Spike {
        /// What the run needed above its higher end.
        #[serde(rename = "excess_bytes")]
        excess: Bytes,
        /// The third quartile of all runs.
        #[serde(rename = "usual_bytes")]
        usual: Bytes,
    },
    /// Runs that take memory from the driver and give it back.
    #[serde(rename = "repeated_allocation")]
    Repeated {
        /// How many runs of the cell there were.
        #[serde(rename = "n_all_runs")]
        n_all: usize,
    },
    /// Runs that reserve much more than they use.
    #[serde(rename = "inefficient_allocation")]
    Inefficient {
        /// What the latest such run used of what it reserved: 0 to 1.
        #[serde(serialize_with = "json_form::number")]
        used_share: f64,
    },
    /// Of `Doubling`.
    #[serde(rename = "rerun_doubling")]
    Doubling(DoublingDetails),
    /// Of `Gap`: what this process holds outside the allocator.
    #[serde(rename = "growing_gap")]
    Gap(SeriesGrowth),
    /// A line whose results live through most of a run.
    #[serde(rename = "long_lived_intermediates")]
    LongLived {
        /// The number of the line in the cell, from 1.
        line: u32,
        /// What it holds through most of the run.
        #[serde(rename = "held_bytes")]
        held: Bytes,
        /// The peak of the run.
        #[serde(rename = "peak_bytes")]
        peak: Bytes,
    },
    /// Of `OutOfMemory`.
    OutOfMemory(Box<OomBreakdown>),
    /// Of `Retention`.
    Retention(RetentionDetails),
    /// Of `Outlived`.
    Outlived(OutlivedDetails),
    /// Of processes that runs of a cell began: `Children`, and `Growing` or `Leak` if they become more and more.
    Children(ChildrenDetails),
}

impl FindingDetails {
    /// How fast a series grows, if the finding is about one.
    pub fn growth(&self) -> Option<&SeriesGrowth> {
        match self {
            Self::Growth(details) => Some(&details.series),
            Self::UnattributedGrowth(series)
            | Self::ReservedGrowth { growth: series, .. }
            | Self::Gap(series) => Some(series),
            Self::Children(details) => details.growth.as_ref(),
            _ => None,
        }
    }
}

impl Checks<'_, '_> {
    /// What every check finds, worst first.
    pub(crate) fn findings(&self, stats: &mut StatsCache) -> Vec<Finding> {
        let (context, of_runs) = (self.context, &self.series.of_runs);
        let recording = context.recording;
        let mut everywhere = Everywhere {
            checks: self,
            own: self.growth(self.series, stats),
            all: None,
        };
        let mut findings = if self.has_growing_names(&everywhere.own) {
            everywhere.growth(stats).to_vec()
        } else {
            everywhere.own.clone()
        };
        for device in recording.devices() {
            let found = self.unattributed(device.idx, &findings, &mut everywhere, stats);
            findings.extend(found);
        }
        findings.extend(fragmentation::on_devices(context));
        findings.extend(fragmentation::of_cells(context, of_runs, stats));
        findings.extend(peaks::findings(context, of_runs));
        findings.extend(reserve::findings(context, of_runs, stats));
        let is_on_any = |is_it: &dyn Fn(DeviceIdx) -> bool| {
            let mut devices = recording.devices().iter();
            devices.any(|device| is_it(device.idx))
        };
        let is_traced = |run| is_on_any(&|device| recording.trace(run, device).is_some());
        if self.scope.is_any(is_traced) {
            findings.extend(long_lived::findings(context));
        }
        if self.scope.is_any(|run| recording.run(run).oom.is_some()) {
            let mut ooms = oom::findings(context);
            if !ooms.is_empty() {
                oom::set_cures(&mut ooms, everywhere.growth(stats));
            }
            findings.extend(ooms);
        }
        if self.scope.is_any(|run| children::is_any(recording, run)) {
            findings.extend(children::findings(context));
        }
        let is_looked_at = |run| is_on_any(&|device| recording.holders(run, device).is_some());
        if self.scope.is_any(is_looked_at) {
            let mut is_reported = |device, place| {
                retention::is_reported(&findings, device, place)
                    || retention::is_reported(everywhere.growth(stats), device, place)
            };
            let kept = retention::findings(context, &mut is_reported);
            findings.extend(kept);
            if outlived::is_any(context) {
                findings.extend(outlived::findings(context, everywhere.growth(stats)));
            }
        }
        library::recognise(recording, &mut findings);
        expected::withdraw(&recording.header().expected, &mut findings);
        finding::sort(&mut findings);
        findings
    }
}
