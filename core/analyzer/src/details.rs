//! Figures that only one kind of finding has, as types.

use serde::Serialize;

use super::growth::{Growth, Shape};
use super::loop_place::LoopPlace;
use super::oom_breakdown::OomBreakdown;
use gpumem_model::holders::RootKind;
use gpumem_model::json_form;
use gpumem_model::recording::{DeviceKind, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// Forecasts stop here: runs, and steps.
const FAR: [u64; 2] = [1_000, 100_000];

/// Figures that only one kind of finding has. `wording::present` shows them, JSON has them by these names.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Details {
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
        /// Free on the device and in the allocator's cache, if that is hardly anything; no cache was flushed then.
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
}

impl Details {
    /// How fast a series grows, if the finding is about one.
    pub fn growth(&self) -> Option<&SeriesGrowth> {
        match self {
            Self::Growth(details) => Some(&details.series),
            Self::UnattributedGrowth(series)
            | Self::ReservedGrowth { growth: series, .. }
            | Self::Gap(series) => Some(series),
            _ => None,
        }
    }
}

/// How a series of levels grows. [`Finding::growth`](super::Finding::growth) returns it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesGrowth {
    /// The course of the series.
    pub shape: Shape,
    /// What each run (or step) keeps: the Theil-Sen slope (Sen, 1968).
    #[serde(skip)]
    pub bytes_per_run: ByteDelta,
    /// Its 95 % confidence interval, in bytes.
    pub interval: (ByteDelta, ByteDelta),
    /// What it kept over all of these runs (or steps).
    #[serde(rename = "total_bytes")]
    pub total: ByteDelta,
    /// The judged series in bytes, for a sparkline; of a cell's series at most 64 points.
    #[serde(serialize_with = "json_form::numbers")]
    pub sparkline: Vec<f64>,
}

impl SeriesGrowth {
    /// The verdict on these levels.
    pub(super) fn of(growth: &Growth, levels: &[Bytes]) -> Self {
        Self {
            shape: growth.shape,
            bytes_per_run: growth.bytes_per_run,
            interval: growth.interval,
            total: growth.total,
            sparkline: levels.iter().map(|level| level.as_f64()).collect(),
        }
    }
}

/// How the runs of a cell, or the steps in one, grow: [`Details::Growth`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GrowthDetails {
    /// The series that was judged.
    #[serde(flatten)]
    pub series: SeriesGrowth,
    /// The line of the cell that keeps it, where its holder tells; not of a cell that the user labelled.
    #[serde(skip)]
    pub statement: Option<String>,
    /// What grew it while the cell ran, where that is not the cell: `worker (thread)`.
    pub by: Option<String>,
    /// It counts steps inside a run, not runs.
    pub steps: bool,
    /// The loop whose iterations it counts as steps, if the user has not marked them.
    #[serde(rename = "loop")]
    pub in_loop: Option<LoopPlace>,
    /// It is what names hold, whichever cells add to them: the cell's runs may have kept more.
    #[serde(skip)]
    pub of_names: bool,
    /// In how many runs (or steps) it grew.
    pub n_grown: usize,
    /// Of how many runs (or steps) that is known.
    pub n_known: usize,
    /// In how many of the first runs it changed, if it has stayed since.
    #[serde(skip)]
    pub n_moving: Option<usize>,
    /// How many more are needed for a verdict, if there are too few.
    pub n_missing: usize,
    /// Bytes left for growth on the device.
    #[serde(rename = "headroom_bytes")]
    pub headroom: Option<Bytes>,
    /// How many more runs (or steps) fit at this rate, counted from the peak.
    pub runs_to_oom: Option<u64>,
    /// How long that takes, if it counts iterations or steps.
    #[serde(rename = "nanos_to_oom")]
    pub time_to_oom: Option<Nanos>,
    /// What the latest traced run kept.
    #[serde(skip)]
    pub traced: Option<TracedRun>,
    /// What to do, the most promising first.
    #[serde(skip)]
    pub advice: Vec<Advice>,
}

impl GrowthDetails {
    /// How many more runs or steps fit, if that is near enough to be foreseen.
    pub fn foreseen(&self) -> Option<u64> {
        let far = FAR[usize::from(self.steps)];
        self.runs_to_oom.filter(|n| *n <= far)
    }

    /// It grew in every run or step of which that is known.
    pub fn grew_each_time(&self) -> bool {
        self.n_grown >= self.n_known
    }
}

/// What a traced run left alive: [`GrowthDetails::traced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedRun {
    /// Which run.
    pub run: RunIdx,
    /// The line that kept most of what every run keeps, and how much.
    pub line: Option<(u32, Bytes)>,
}

/// Advice against growth, from the cell's text and the device: [`GrowthDetails::advice`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// The cell appends to this list: keep numbers or detached tensors.
    KeepNumbers {
        /// The list as the cell writes it.
        list: String,
    },
    /// Look at what keeps most of it.
    LookAt {
        /// The Python expression of the largest object.
        path: String,
    },
    /// Look for what the loop accumulates.
    FindWhatLoopCollects,
    /// Look for a name that grows with every run, or for displayed results.
    FindWhatOutlives,
    /// Compute without a graph.
    NoGrad {
        /// The module that has `no_grad`.
        framework: &'static str,
    },
}

/// Free memory between held blocks: [`Details::Fragmentation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FragmentationDetails {
    /// Free inside partly used segments.
    #[serde(rename = "inactive_split_bytes")]
    pub inactive_split: Bytes,
    /// Reserved by the allocator.
    #[serde(rename = "reserved_bytes")]
    pub reserved: Bytes,
    /// The largest free block, if that is known.
    #[serde(rename = "largest_free_bytes")]
    pub largest_free: Option<Bytes>,
    /// In segments that are entirely free: what `empty_cache()` returns.
    #[serde(rename = "reclaimable_bytes")]
    pub reclaimable: Bytes,
    /// The run of which the recording tells where memory lay.
    #[serde(skip)]
    pub mapped: Option<RunIdx>,
    /// What kind of device it is.
    #[serde(skip)]
    pub device_kind: DeviceKind,
}

/// The latest re-run that held two copies: [`Details::Doubling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DoublingDetails {
    /// What earlier runs had left.
    #[serde(rename = "old_bytes")]
    pub old: Bytes,
    /// What it built.
    #[serde(rename = "new_bytes")]
    pub new: Bytes,
    /// How far it rose above its start.
    #[serde(rename = "rose_bytes")]
    pub rose: Bytes,
    /// How many re-runs there were.
    pub n_reruns: usize,
}

/// What a part of IPython or Python keeps: [`Details::Retention`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetentionDetails {
    /// Which place.
    pub place: RootKind,
    /// What nothing else keeps.
    #[serde(rename = "n_bytes")]
    pub kept: Bytes,
    /// The run that left it there.
    #[serde(rename = "since_run")]
    pub since: RunIdx,
    /// The name that keeps the largest object.
    pub name: String,
    /// The Python expression of the largest object.
    pub path: String,
    /// What the largest object is.
    pub what: String,
    /// What to type so that it lets go.
    pub release: Option<&'static str>,
    /// Jupyter's number of the run that left it there.
    pub since_execution_count: Option<u32>,
}
