//! Figures of growth.

use serde::Serialize;

use crate::growth::{Growth, GrowthShape};
use crate::loop_place::LoopPlace;
use gpumem_model::holders::RootKind;
use gpumem_model::json_form;
use gpumem_model::recording::RunIdx;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// Forecasts stop here: runs, and steps.
const FAR: [u64; 2] = [1_000, 100_000];

/// How a series of levels grows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesGrowth {
    /// The course of the series.
    pub shape: GrowthShape,
    /// What each run (or step) keeps: the Theil-Sen slope (Sen, 1968).
    #[serde(skip)]
    pub bytes_per_run: ByteDelta,
    /// The confidence interval of 95 % of the finding's `bytes_per_run`.
    pub interval: (ByteDelta, ByteDelta),
    /// What it kept over all of these runs (or steps).
    #[serde(rename = "total_bytes")]
    pub total: ByteDelta,
    /// The judged series in bytes; of a cell's at most 64 points.
    #[serde(serialize_with = "json_form::numbers")]
    pub sparkline: Vec<f64>,
}

impl SeriesGrowth {
    /// The verdict on these levels.
    pub(super) fn new(growth: &Growth, levels: &[Bytes]) -> Self {
        Self {
            shape: growth.shape,
            bytes_per_run: growth.bytes_per_run,
            interval: growth.interval,
            total: growth.total,
            sparkline: levels.iter().map(|level| level.as_f64()).collect(),
        }
    }
}

/// How the runs of a cell, or the steps in one, grow.
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
    /// The loop whose iterations it counts as steps, if you have not marked them: `line 3`.
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
    /// How long these take; known of iterations and steps only.
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
    /// Hooks keep it, which are added again and again.
    RemoveHooks {
        /// The Python expression of what has them.
        object: String,
    },
    /// Look for what the loop accumulates.
    FindWhatLoopCollects,
    /// Look for a name that grows with every run, or for displayed results.
    FindWhatOutlives,
    /// Look at what libraries keep outside of Python.
    LookAtLibraries,
    /// Break the cycle of a tensor and its own graph.
    BreakGraphCycle {
        /// What kind of cycle it is.
        kind: RootKind,
    },
    /// Compute without a graph.
    NoGrad {
        /// The module that has `no_grad`.
        framework: &'static str,
    },
}
