//! The ranks of a job, each with a recording of its own: which ran out of memory, grew or differs first.
//! The workers of a cluster are ranks that have names, come and go.
//!
//! Each process of a job records itself; [`ranks`] joins the recordings. It compares ranks step by step, by the
//! number of the step; ranks without a marked loop, run by run. If the job has several machines, the ends of the
//! steps correct their clocks.
//!
//! ```
//! use gpumem_analyzer::Analysis;
//! use gpumem_jobs::history::SessionEnding;
//! use gpumem_jobs::ranks::{Rank, ranks};
//! use gpumem_model::recording::{Header, Recording};
//!
//! let of = |number: u32| {
//!     let process = vec![("rank".to_owned(), number.to_string())];
//!     let recording = Recording::new(Header { process, ..Header::default() });
//!     Rank::new(&number.to_string(), recording, Analysis::default(), SessionEnding::InOrder)
//! };
//! let job = [of(1), of(0)];
//! let found = ranks(&job);
//! assert_eq!(found.rows.iter().map(|row| row.number).collect::<Vec<_>>(), [0, 1]);
//! assert!(found.findings.is_empty());
//! ```

mod clock;
mod findings;
mod levels;
mod steps;
mod workers;

pub use findings::{RankCause, RankFinding};

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::fact;
use crate::history::{LastRun, SessionEnding};
use gpumem_analyzer::{Analysis, DeviceSummary, Finding, FindingKind, GrowthVerdict, Metric};
use gpumem_model::downsample::LevelPoint;
use gpumem_model::named;
use gpumem_model::recording::{Recording, Status};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

use steps::RankSteps;

/// One process of a job, as it was found.
#[derive(Debug, Clone)]
pub struct Rank {
    /// The name that opens its report: a session's id or a file's name.
    pub id: String,
    /// Its recording.
    pub recording: Recording,
    /// Its analysis.
    pub analysis: Analysis,
    /// How it ended.
    pub ending: SessionEnding,
    /// Its last run, which holds the last instant that is known of it.
    last: Option<LastRun>,
}

/// How a rank's memory grows: the worst growth that is found in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankGrowth {
    /// Whether it is certain or nearly so.
    pub state: GrowthVerdict,
    /// What each step, run or task keeps.
    #[serde(rename = "bytes_per_step")]
    pub per_step: ByteDelta,
    /// Whether it counts steps inside a run, not runs.
    #[serde(skip)]
    pub counts_steps: bool,
    /// Of a worker: the tasks that keep it, by the prefix of their keys. It then counts those tasks.
    pub task: Option<String>,
    /// The name that holds most of it.
    pub holder: Option<String>,
    /// The step by which it kept a tenth of all that it kept; `None` without steps.
    #[serde(rename = "since_step")]
    pub since: Option<u64>,
}

/// One rank. Sizes are those of its device: what its framework allocated, else what the process uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankRow {
    /// Which of the ranks given.
    #[serde(skip)]
    pub rank: usize,
    /// Its number; of a worker, its place among those of its cluster.
    #[serde(rename = "rank")]
    pub number: u32,
    /// What a worker is called; `None` of a rank.
    pub name: Option<String>,
    /// Its machine; empty if that is not known.
    #[serde(rename = "machine")]
    pub node: String,
    /// The label of its device; `None` if it has none.
    pub device: Option<String>,
    /// Its latest level.
    #[serde(rename = "latest_bytes")]
    pub latest: Option<Bytes>,
    /// Its highest level.
    #[serde(rename = "peak_bytes")]
    pub peak: Option<Bytes>,
    /// What the process uses beside what its frameworks reserved: the driver's context, NCCL, libraries.
    #[serde(rename = "outside_bytes")]
    pub outside: Option<Bytes>,
    /// How many steps it ended.
    pub n_steps: u64,
    /// Whether its steps are runs of cells, because no loop was marked in it.
    pub steps_are_runs: bool,
    /// Its growth.
    #[serde(skip)]
    pub growth: Option<RankGrowth>,
    /// How it ended.
    pub ending: RankEnding,
    /// The last instant that is known of it, since the job's first rank began, by the corrected clock.
    #[serde(rename = "until_nanos")]
    pub until: Nanos,
    /// Its level over time, by the same clock: few points, with the extremes.
    #[serde(skip)]
    pub levels: Vec<LevelPoint>,
    /// Its level at the end of each step, whose number stands for the instant: few points, with the extremes.
    /// None if its steps are runs.
    #[serde(skip)]
    pub step_levels: Vec<LevelPoint>,
}

named! {
    /// How a rank ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RankEnding {
        /// It is alive.
        Running = "running",
        /// It ran to its end.
        InOrder = "in_order",
        /// Its memory ran out.
        OutOfMemory = "out_of_memory",
        /// An exception other than out of memory ended it.
        Failed = "failed",
        /// The system ran out of memory and killed it.
        KilledBySystem = "killed_by_system",
        /// It ended without an error: most likely it was killed.
        Lost = "lost",
    }
}

impl RankEnding {
    /// Whether it is neither in order nor alive.
    pub const fn is_bad(self) -> bool {
        !matches!(self, Self::Running | Self::InOrder)
    }

    /// The rank itself reported it, so the instant is exact.
    pub const fn is_reported(self) -> bool {
        matches!(self, Self::InOrder | Self::OutOfMemory | Self::Failed)
    }

    fn for_rank(rank: &Rank) -> Self {
        let ran_out = rank.last.as_ref().is_some_and(|last| last.ran_out);
        let mut runs = rank.recording.runs().iter().rev();
        let last = runs.find(|run| run.parent.is_none());
        match rank.ending {
            _ if ran_out => Self::OutOfMemory,
            SessionEnding::Running => Self::Running,
            SessionEnding::OutOfMemory => Self::OutOfMemory,
            SessionEnding::KilledBySystem => Self::KilledBySystem,
            _ if last.is_some_and(|it| it.status == Status::Error) => Self::Failed,
            _ if last.is_some_and(|it| it.status == Status::Interrupted) => Self::Failed,
            SessionEnding::InOrder => Self::InOrder,
            SessionEnding::Lost => Self::Lost,
        }
    }
}

/// The ranks of a job, and what is found in them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranks {
    /// By number.
    pub rows: Vec<RankRow>,
    /// The most important finding comes first.
    pub findings: Vec<RankFinding>,
    /// Number of ranks by the job's environment; or number of workers, restarts not counted.
    pub n_expected: usize,
    /// Ranks that left nothing.
    pub missing: Vec<u32>,
    /// The median over the steps of the time from the first rank's end of a step to the last's.
    pub skew: Option<Nanos>,
    /// The largest correction of a machine's clock.
    pub correction: Option<Nanos>,
}

impl Ranks {
    /// Whether they are workers of a cluster, not ranks of a job.
    pub fn are_workers(&self) -> bool {
        self.rows.iter().any(|row| row.name.is_some())
    }

    /// The noun for them: `rank` or `worker`.
    pub fn noun(&self) -> &'static str {
        if self.are_workers() { "worker" } else { "rank" }
    }
}

impl RankRow {
    /// Its name, or its number.
    pub fn called(&self) -> String {
        let number = || self.number.to_string();
        self.name.clone().unwrap_or_else(number)
    }
}

impl Rank {
    /// A rank with what is found in it.
    pub fn new(id: &str, recording: Recording, analysis: Analysis, ending: SessionEnding) -> Self {
        let last = LastRun::judged(&recording, &analysis);
        Self {
            id: id.to_owned(),
            recording,
            analysis,
            ending,
            last,
        }
    }

    /// The process's fact with this name: `rank`, `host`, `slurm_job`.
    pub fn fact(&self, name: &str) -> Option<&str> {
        fact(&self.recording, name)
    }

    /// Its number, if it has one.
    pub fn number(&self) -> Option<u32> {
        let of = |name| self.fact(name)?.parse().ok();
        of("rank").or_else(|| of("slurm_rank"))
    }

    /// Its name in the cluster, if it is a worker.
    pub fn worker(&self) -> Option<&str> {
        self.fact("worker")
    }

    /// When it began and the last instant that is known of it, by its machine's clock, since 1970.
    pub fn span(&self) -> (Nanos, Nanos) {
        let began = self.recording.header().wall_anchor;
        let last = self.last.as_ref().map_or(Nanos::new(0), |last| last.at);
        (began, Nanos::new(began.get().saturating_add(last.get())))
    }

    fn node(&self) -> &str {
        let node = self.fact("slurm_node").or_else(|| self.fact("host"));
        node.unwrap_or_default()
    }

    fn is_accelerator(&self, summary: &DeviceSummary) -> bool {
        self.recording.device(summary.device).kind.is_accelerator()
    }

    /// Whether it used an accelerator.
    fn uses_accelerator(&self) -> bool {
        let mut devices = self.analysis.devices.iter();
        devices.any(|it| self.is_accelerator(it) && it.peak.is_some_and(|peak| peak > Bytes::ZERO))
    }

    /// The device that it uses most: an accelerator if there is one, where the job uses them.
    pub fn device(&self, of_accelerators: bool) -> Option<&DeviceSummary> {
        let devices = self.analysis.devices.iter();
        devices.max_by_key(|it| (of_accelerators == self.is_accelerator(it), it.peak))
    }

    fn growth(&self, steps: &RankSteps) -> Option<(&Finding, RankGrowth)> {
        let grows = |it: &&Finding| {
            let grows = matches!(it.kind, FindingKind::Leak | FindingKind::Growing);
            grows && it.withdrawn.is_none()
        };
        let finding = self.analysis.findings.iter().find(grows)?;
        let series = finding.growth()?;
        let state = finding.state?;
        let growth = RankGrowth {
            state,
            per_step: series.bytes_per_run,
            counts_steps: finding.counts_steps(),
            task: self.task_of(finding),
            holder: finding.holders.first().map(|it| it.name.clone()),
            since: steps.grown_since(),
        };
        matches!(state, GrowthVerdict::Leak | GrowthVerdict::Suspected).then_some((finding, growth))
    }

    /// On a worker a block is a task, unless the user's code records it inside of one.
    fn task_of(&self, finding: &Finding) -> Option<String> {
        let is_of_blocks = self.worker().is_some() && !finding.counts_steps();
        finding.path.last().filter(|_| is_of_blocks).cloned()
    }
}

/// Joins the ranks of a job, given in any order.
pub fn ranks(job: &[Rank]) -> Ranks {
    let of_accelerators = job.iter().any(Rank::uses_accelerator);
    let devices = job.iter().map(|rank| rank.device(of_accelerators));
    let devices: Vec<Option<&DeviceSummary>> = devices.collect();
    let steps = job.iter().zip(&devices);
    let steps: Vec<RankSteps> = steps.map(|(rank, it)| RankSteps::new(rank, *it)).collect();
    let nodes: Vec<&str> = job.iter().map(Rank::node).collect();
    let clocks = clock::aligned(&nodes, &steps);
    let began = job
        .iter()
        .zip(&clocks.ahead)
        .map(|(rank, ahead)| clock::corrected(rank.span().0, *ahead))
        .min()
        .unwrap_or_default();
    let mut rows: Vec<RankRow> = (0..job.len())
        .map(|idx| {
            let ahead = clocks.ahead[idx];
            let instant = |at: Nanos| clock::corrected(at, ahead).since(began);
            let (anchor, until) = job[idx].span();
            let levels = levels::levels(&job[idx], devices[idx], |at| {
                instant(Nanos::new(anchor.get().saturating_add(at.get())))
            });
            RankRow {
                levels,
                ..row(job, idx, (devices[idx], &steps[idx]), instant(until))
            }
        })
        .collect();
    workers::name(&mut rows, job);
    rows.sort_by_key(|row| (row.number, row.rank));
    let n_expected = job.iter().filter_map(|rank| {
        let n = rank.fact("world_size").or_else(|| rank.fact("slurm_ranks"));
        n?.parse().ok()
    });
    let n_expected = workers::count(job).or(n_expected.max());
    let n_expected = n_expected.unwrap_or(job.len());
    let known = |number: &u32| rows.iter().any(|row| row.number == *number);
    let all = 0..u32::try_from(n_expected.min(MAX_RANKS)).unwrap_or_default();
    let missing = all.filter(|number| !known(number)).collect();
    Ranks {
        findings: findings::findings(job, &rows, &steps),
        rows,
        n_expected,
        missing,
        skew: clocks.skew,
        correction: clocks.correction,
    }
}

/// The ranks of the latest job: the newest recording of each number, and the number of other recordings. Recordings
/// without a number are left out if others have one.
pub fn of_last_job(mut found: Vec<Rank>) -> (Vec<Rank>, usize) {
    let n_found = found.len();
    if found.iter().any(|rank| rank.number().is_some()) {
        found.retain(|rank| rank.number().is_some());
    }
    found.sort_by_key(|rank| Reverse(rank.span().0));
    let Some(newest) = found.first() else {
        return (found, n_found);
    };
    let (began, _) = newest.span();
    let own = SAME.map(|name| newest.fact(name).map(str::to_owned));
    let is_same = |rank: &Rank| {
        let facts = SAME.map(|name| rank.fact(name));
        let knows_job = facts.iter().skip(1).any(Option::is_some);
        // If nothing names the job, its ranks are those that ran together.
        let overlaps = rank.span().1.get().saturating_add(SLACK.get()) >= began.get();
        facts
            .iter()
            .zip(&own)
            .all(|(fact, own)| *fact == own.as_deref())
            && (knows_job || overlaps)
    };
    found.retain(is_same);
    let mut numbers = BTreeSet::new();
    found.retain(|rank| rank.number().is_none_or(|number| numbers.insert(number)));
    let n_others = n_found - found.len();
    (found, n_others)
}

/// The facts that all ranks of one job share.
const SAME: [&str; 5] = [
    "world_size",
    "slurm_job",
    "slurm_step",
    "torchelastic_run",
    "cluster",
];
/// Clocks of machines differ by no more.
const SLACK: Nanos = Nanos::millis(60_000);

/// A header that says more is wrong.
const MAX_RANKS: usize = 1 << 16;

fn row(
    job: &[Rank],
    idx: usize,
    (summary, steps): (Option<&DeviceSummary>, &RankSteps),
    until: Nanos,
) -> RankRow {
    let rank = &job[idx];
    let level = |summary: &DeviceSummary| match summary.metric {
        Metric::Allocated => summary.allocated,
        Metric::ProcessUsed => summary.process_used,
        Metric::DeviceUsed => summary.device_used,
    };
    let outside = |summary: &DeviceSummary| {
        let device = rank.recording.device(summary.device);
        let used = summary
            .process_used
            .filter(|_| device.kind.is_accelerator())?;
        Some(used.saturating_sub(summary.reserved?))
    };
    RankRow {
        rank: idx,
        number: rank
            .number()
            .unwrap_or(u32::try_from(idx).unwrap_or(u32::MAX)),
        name: None,
        node: rank.node().to_owned(),
        device: summary.map(|it| rank.recording.device(it.device).label.clone()),
        latest: steps.last().or_else(|| summary.and_then(level)),
        peak: summary.and_then(|it| it.peak),
        outside: summary.and_then(outside),
        n_steps: steps.n_ended(),
        steps_are_runs: steps.are_runs,
        growth: rank.growth(steps).map(|(_, growth)| growth),
        ending: RankEnding::for_rank(rank),
        until,
        levels: Vec::new(),
        step_levels: steps.levels(),
    }
}
