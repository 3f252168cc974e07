//! What one cell kept, run by run.

use super::super::device_view::DeviceView;
use super::super::long_run::n_turns;
use super::{Slots, marks, name};
use gpumem_analyzer::{Finding, FindingKind, Overlap, Peak};
use gpumem_model::recording::{CellIdx, Run, RunIdx, Status};
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Bytes};
use gpumem_scene::Role;
use gpumem_wording::{Sign, cell_state};

/// A cell with what it kept.
#[derive(Debug, Clone)]
pub struct CellRow {
    /// Which cell.
    pub cell: CellIdx,
    /// Its most telling line.
    pub name: String,
    /// Jupyter's number of its latest run.
    pub execution_count: Option<u32>,
    /// The sign of the worst finding, and how much that matters.
    pub sign: Option<(Sign, Severity)>,
    /// The id of that finding.
    pub finding: Option<String>,
    /// It leaks: its colour is that of leaks.
    pub is_leak: bool,
    /// The sum over its runs.
    pub total: ByteDelta,
    /// What the latest run kept; `None` if that is not known.
    pub last: Option<ByteDelta>,
    /// `16 runs`, `out of memory`.
    pub state: String,
    /// Its runs, in order.
    pub runs: Vec<RunIdx>,
    /// What is known of each of them.
    pub(super) marks: Vec<RunMark>,
}

/// One run of a cell. Sizes are bytes, places are shares of the axis.
#[derive(Debug, Clone)]
pub(super) struct RunMark {
    pub(super) middle: f64,
    pub(super) extent: (f64, f64),
    pub(super) status: Status,
    /// What it alone kept; `None` if unknown.
    pub(super) kept: Option<f64>,
    /// What it kept together with other runs.
    pub(super) overlap: Option<Overlap>,
    /// What the cell had kept before it, and with it.
    pub(super) before: f64,
    pub(super) so_far: f64,
    /// Its transient memory: its peak above the higher of its ends.
    pub(super) back: f64,
    /// What it had kept after each step, at places of the axis.
    pub(super) steps: Vec<(f64, f64)>,
}

impl RunMark {
    /// The run goes on, and what it held since it began is not known.
    pub(super) fn is_hatched(&self) -> bool {
        self.status == Status::Running && self.steps.is_empty()
    }
}

impl CellRow {
    pub(super) fn new(
        session: &DeviceView<'_>,
        slots: &Slots,
        runs: &[&Run],
        finding: Option<&Finding>,
    ) -> Self {
        let latest = runs.last().expect("a cell with a row has runs");
        let mut so_far = 0.0;
        let mut marks = Vec::new();
        for run in runs {
            let mark = mark(session, slots, run, so_far);
            so_far = mark.so_far;
            marks.push(mark);
        }
        let bytes = ByteDelta::from_f64;
        let n_turns = finding.and_then(|it| n_turns(session, it));
        Self {
            cell: latest.cell,
            name: name::row_name(session, runs, finding),
            execution_count: latest.execution_count,
            sign: finding.map(|finding| (Sign::from(finding), finding.severity)),
            finding: finding.map(|finding| finding.id.clone()),
            is_leak: finding.is_some_and(|finding| finding.kind == FindingKind::Leak),
            total: bytes(so_far),
            last: marks.last().and_then(|mark| mark.kept).map(bytes),
            state: cell_state(runs, finding, n_turns),
            runs: runs.iter().map(|run| run.idx).collect(),
            marks,
        }
    }

    /// The colour of its lines.
    pub(super) const fn line(&self) -> Role {
        if self.is_leak { Role::Leak } else { Role::Kept }
    }

    /// The colour below its line.
    pub(super) const fn area(&self) -> Role {
        if self.is_leak {
            Role::LeakFill
        } else {
            Role::KeptFill
        }
    }

    /// What it had kept so far, where that changed: places of the axis, and bytes.
    pub(super) fn kept_so_far(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        for mark in &self.marks {
            let steps = mark.steps.iter();
            points.extend(steps.map(|(at, kept)| (*at, mark.before + kept)));
            let end = if mark.steps.is_empty() {
                mark.middle
            } else {
                mark.extent.1
            };
            points.push((end, mark.so_far));
        }
        points
    }
}

fn mark(session: &DeviceView<'_>, slots: &Slots, run: &Run, so_far: f64) -> RunMark {
    let row = session.row(run.idx);
    let before = row.and_then(|row| row.before);
    let after = row.and_then(|row| row.after.or(row.so_far));
    let kept = before.zip(after).map(|(before, after)| after.since(before));
    let overlap = row.and_then(|row| row.overlap);
    let kept = match overlap {
        Some(overlap) => kept.zip(overlap.moved).map(|(kept, moved)| kept + -moved),
        None => kept,
    };
    let kept = kept.map(ByteDelta::as_f64);
    let peak = row.and_then(|row| row.peak).map(Peak::low);
    let higher = before.max(after);
    let back = peak
        .zip(higher)
        .map(|(peak, higher)| peak.saturating_sub(higher));
    let (left, right) = slots.extent(run.idx);
    let steps = marks::steps(session, run.idx);
    let from = before.unwrap_or_default();
    let steps = steps.into_iter().map(|(share, level)| {
        let at = left + share * (right - left);
        (at, level.since(from).as_f64())
    });
    RunMark {
        middle: f64::midpoint(left, right),
        extent: (left, right),
        status: run.status,
        kept,
        overlap,
        before: so_far,
        so_far: so_far + kept.unwrap_or_default(),
        back: back.map_or(0.0, Bytes::as_f64),
        steps: before.map_or_else(Vec::new, |_| steps.collect()),
    }
}
