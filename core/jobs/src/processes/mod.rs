//! The child processes of a session: the level of each, its growth and its end.
//!
//! Each child has its own recording, on its parent's clock. The store reports the processes' states; [`processes`]
//! draws the conclusions.
//!
//! ```
//! use gpumem_jobs::processes::{ChildProcess, ChildEnding, processes};
//! use gpumem_model::recording::{Header, Recording};
//! use gpumem_model::rules::Rules;
//!
//! let process = vec![("pid".to_owned(), "4123".to_owned()), ("name".to_owned(), "Process-1".to_owned())];
//! let child = ChildProcess {
//!     recording: Recording::new(Header { process, ..Header::default() }),
//!     ..ChildProcess::default()
//! };
//! let found = processes(&Recording::default(), &[child], &Rules::default());
//! assert_eq!((found.rows[0].pid, found.rows[0].ending), (4123, ChildEnding::Lost));
//! ```

mod ending;
mod steps;

pub use ending::{ChildEnding, Exit};
pub use steps::Per;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::fact;
use gpumem_analyzer::{Growth, GrowthVerdict, classify_growth};
use gpumem_model::downsample::{LevelPoint, few_levels};
use gpumem_model::recording::{Column, DeviceIdx, Points, Recording, Run, RunIdx, Series};
use gpumem_model::rules::Rules;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// A child as it was found.
#[derive(Debug, Clone, Default)]
pub struct ChildProcess {
    /// Its recording; the header's `process` has its `pid` and its `name`.
    pub recording: Recording,
    /// Whether the process is alive.
    pub is_running: bool,
    /// The system says that it killed the process because memory ran out.
    pub was_killed: bool,
    /// How it exited, as its parent saw it.
    pub exit: Option<Exit>,
    /// Its GPU memory by the driver, read by its parent at these instants.
    pub device_used: Vec<(Nanos, Bytes)>,
}

/// One child. Sizes are from its own recording: the memory that it shares with no other process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessRow {
    /// Its number.
    pub pid: u32,
    /// The number of the process that started it; 0 if it is not known.
    #[serde(rename = "parent_pid", serialize_with = "unless_zero")]
    pub parent: u32,
    /// `DataLoader worker 3`, `ForkPoolWorker-2`.
    pub name: String,
    /// When it began to record, since the parent's recording began.
    #[serde(rename = "started_nanos")]
    pub started: Nanos,
    /// When it ended, or the last instant that is known of it.
    #[serde(rename = "until_nanos")]
    pub until: Nanos,
    /// How it ended.
    #[serde(flatten)]
    pub ending: ChildEnding,
    /// The parent's run that was under way when it ended.
    #[serde(rename = "ended_in_run")]
    pub ended_in: Option<RunIdx>,
    /// Its first level.
    #[serde(rename = "first_bytes")]
    pub first: Option<Bytes>,
    /// Its latest level.
    #[serde(rename = "latest_bytes")]
    pub latest: Option<Bytes>,
    /// Its highest level.
    #[serde(rename = "peak_bytes")]
    pub peak: Option<Bytes>,
    /// The rise of its level without allocations: its parent's memory that it no longer shares, because one of the
    /// two wrote it. `None` if the system does not report it.
    #[serde(rename = "copied_bytes")]
    pub copied: Option<Bytes>,
    /// What it used of GPUs at the last run of its parent that ended while it was there; `None` if the driver
    /// did not list it then.
    #[serde(rename = "device_used_bytes")]
    pub device_used: Option<Bytes>,
    /// Its highest GPU memory at such an instant.
    #[serde(rename = "device_peak_bytes")]
    pub device_peak: Option<Bytes>,
    /// The verdict on its levels; `None` if there are too few.
    pub growth: Option<Growing>,
    /// Its level over time, since the parent's recording began: few points, with the extremes.
    #[serde(skip)]
    pub levels: Vec<LevelPoint>,
}

/// A child's growth by step.
#[derive(Debug, Clone, PartialEq)]
pub struct Growing {
    /// What a step is.
    pub per: Per,
    /// How many steps it is judged by.
    pub n_steps: usize,
    /// What a step keeps.
    pub bytes_per_step: ByteDelta,
    /// The verdict of the rules that judge every series.
    pub growth: Growth,
}

impl Serialize for Growing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (per, step) = match self.per {
            Per::Step => ("step", None),
            Per::Run => ("run", None),
            Per::Span(span) => ("span", Some(span)),
        };
        let mut fields = serializer.serialize_struct("Growing", 7)?;
        fields.serialize_field("state", &self.growth.state)?;
        fields.serialize_field("shape", &self.growth.shape)?;
        fields.serialize_field("per", per)?;
        fields.serialize_field("n_steps", &self.n_steps)?;
        fields.serialize_field("bytes_per_step", &self.bytes_per_step)?;
        fields.serialize_field("total_bytes", &self.growth.total)?;
        fields.serialize_field("step_nanos", &step)?;
        fields.end()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
fn unless_zero<S: Serializer>(pid: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    (*pid > 0).then_some(pid).serialize(serializer)
}

/// One cause: children of one kind that grow.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessFinding {
    /// The kind of process: its name without the number.
    pub kind: String,
    /// `Leak` if at least one of them grows beyond doubt, else `Suspected`.
    pub state: GrowthVerdict,
    /// The rows, the fastest first.
    pub rows: Vec<usize>,
    /// How many of them have names of their own; workers of the next epoch have the same.
    pub n_named: usize,
    /// How many processes of that kind have names of their own.
    pub n_of_kind: usize,
}

/// The children of a session, and what is found in them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChildProcesses {
    /// Growing children first, then dead ones, then the largest.
    pub rows: Vec<ProcessRow>,
    /// One for each cause.
    pub findings: Vec<ProcessFinding>,
}

/// Judges the children of a session by its rules.
///
/// Levels are from the child's own recording: the memory that it shares with no other process.
pub fn processes(parent: &Recording, children: &[ChildProcess], rules: &Rules) -> ChildProcesses {
    let mut rows: Vec<ProcessRow> = children.iter().map(|it| row(parent, it, rules)).collect();
    rows.sort_by_key(|row| {
        (
            !row.grows(),
            !row.ending.is_bad(),
            std::cmp::Reverse(row.peak),
            row.started,
            row.pid,
        )
    });
    let findings = findings(&rows);
    ChildProcesses { rows, findings }
}

impl ChildProcesses {
    /// Whether there are no children.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl ProcessRow {
    /// Whether it is certain or nearly so.
    pub fn grows(&self) -> bool {
        let state = self.growth.as_ref().map(|it| it.growth.state);
        matches!(state, Some(GrowthVerdict::Leak | GrowthVerdict::Suspected))
    }

    /// Its latest level less its first.
    pub fn grew(&self) -> Option<ByteDelta> {
        Some(self.latest?.since(self.first?))
    }

    /// Its name without the number: `DataLoader worker`.
    pub fn kind(&self) -> &str {
        kind(&self.name)
    }
}

fn kind(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    stem.trim_end_matches(['-', ' ', '_'])
}

/// Maximum delay of noting a child's end on a busy machine.
const LATE: Nanos = Nanos::millis(500);

fn row(parent: &Recording, child: &ChildProcess, rules: &Rules) -> ProcessRow {
    let fact = |name: &str| fact(&child.recording, name);
    let number = |name: &str| fact(name).and_then(|it| it.parse().ok()).unwrap_or(0);
    let points = levels(&child.recording);
    let started = child.recording.runs().first().map(|run| run.started);
    let started = started.unwrap_or_default();
    let known = points.at().last().copied().unwrap_or(started);
    let finish = child.recording.finish().map(|it| it.at);
    let until = child.exit.map(|it| it.at).or(finish).unwrap_or(known);
    let ending = ChildEnding::for_child(child);
    // A parent that waits for a child may go on before the end of the child is noted.
    let was_under_way = |run: &&Run| {
        let ended = run.ended.unwrap_or(until);
        run.parent.is_none()
            && run.started <= until
            && (until <= ended || known <= ended && until.since(ended) <= LATE)
    };
    let mut runs = parent.runs().iter().rev();
    let run = runs.find(was_under_way);
    let run = run.filter(|_| ending != ChildEnding::Running);
    let until = run
        .and_then(|run| run.ended)
        .map_or(until, |ended| until.min(ended));
    let used = points.process_used();
    let pid = number("pid");
    ProcessRow {
        pid,
        parent: number("parent"),
        name: fact("name").map_or_else(|| format!("process {pid}"), str::to_owned),
        started,
        until,
        ending,
        ended_in: run.map(|run| run.idx),
        first: used.get(0),
        latest: points.last().and_then(|point| point.process_used),
        peak: used.highest(0..points.len()),
        copied: copied(points),
        device_used: child.device_used.last().map(|(_, used)| *used),
        device_peak: child.device_used.iter().map(|(_, used)| *used).max(),
        growth: growing(parent, &child.recording, points, rules),
        levels: over_time(points),
    }
}

fn over_time(points: &Points) -> Vec<LevelPoint> {
    let levels = points.iter().filter_map(|sample| {
        let level = sample.process_used?;
        Some(LevelPoint {
            at: sample.at,
            level,
        })
    });
    few_levels(levels.collect())
}

fn copied(points: &Points) -> Option<Bytes> {
    let grew = |levels: &Column| {
        let last = levels.get(points.len().checked_sub(1)?)?;
        Some(last.since(levels.get(0)?).get())
    };
    let copied = grew(points.process_used())?.saturating_sub(grew(points.allocated())?);
    Some(Bytes::new(u64::try_from(copied).unwrap_or_default()))
}

/// What the child's sampler read.
fn levels(child: &Recording) -> &Points {
    child.samples(RunIdx(0), DeviceIdx(0), &Series::Sampled)
}

fn growing(
    parent: &Recording,
    child: &Recording,
    points: &Points,
    rules: &Rules,
) -> Option<Growing> {
    let (steps, per) = steps::step_ends(parent, child, points)?;
    let (levels, per_step) = steps::laid(points, &steps);
    let growth = classify_growth(&levels, rules.min_host_growth, rules);
    let per_step = per_step.map_or(growth.bytes_per_run, ByteDelta::from_f64);
    let n_steps = match per {
        Per::Span(_) => steps.len() - 1,
        Per::Step | Per::Run => steps.len(),
    };
    Some(Growing {
        per,
        n_steps,
        bytes_per_step: per_step,
        growth,
    })
}

fn findings(rows: &[ProcessRow]) -> Vec<ProcessFinding> {
    let mut findings: Vec<ProcessFinding> = Vec::new();
    let grown = rows.iter().enumerate().filter(|(_, row)| row.grows());
    for (idx, row) in grown {
        match findings.iter_mut().find(|it| it.kind == row.kind()) {
            Some(finding) => finding.rows.push(idx),
            None => findings.push(ProcessFinding {
                kind: row.kind().to_owned(),
                state: GrowthVerdict::Suspected,
                rows: vec![idx],
                n_named: 0,
                n_of_kind: 0,
            }),
        }
    }
    for finding in &mut findings {
        let speed = |idx: &usize| {
            let growth = rows[*idx].growth.as_ref();
            std::cmp::Reverse(growth.map(|it| it.bytes_per_step))
        };
        finding.rows.sort_by_key(speed);
        let states = finding
            .rows
            .iter()
            .filter_map(|idx| rows[*idx].growth.as_ref());
        finding.state = states
            .map(|it| it.growth.state)
            .min()
            .unwrap_or(GrowthVerdict::Suspected);
        finding.n_named = n_names(finding.rows.iter().map(|idx| &*rows[*idx].name));
        let of_kind = rows.iter().filter(|row| row.kind() == finding.kind);
        finding.n_of_kind = n_names(of_kind.map(|row| &*row.name));
    }
    findings.sort_by_key(|it| it.state);
    findings
}

fn n_names<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.collect::<std::collections::BTreeSet<_>>().len()
}
