//! Where the runs stand, and the bars that they are drawn as.

use super::super::device_view::{DeviceView, by_cell, role_of};
use super::super::plot::Plot;
use super::super::scene::Role;
use super::super::{Measure, View};
use crate::analyze::{Peak, cell_label};
use crate::recording::{CellIdx, Run, RunIdx, Status};
use crate::units::{ByteDelta, Bytes};
use crate::wording::count;

/// Between two groups, in slots.
const GAP: f64 = 0.5;
/// A few runs do not fill the whole width.
const MAX_SLOT: f64 = 64.0;
/// The share of its slot that a bar covers, where slots are wide enough for space between them.
const BAR_SHARE: f64 = 0.6;
const MIN_SLOT_WITH_SPACE: f64 = 4.0;

/// The place of one run.
pub(super) struct Slot {
    pub(super) run: RunIdx,
    pub(super) status: Status,
    /// After − before, and what it is so far while the run goes on; `None` is not known.
    pub(super) kept: Option<ByteDelta>,
    /// The end of the ghost, in bytes; 0 where the peak is not known.
    pub(super) peak: f64,
    /// The ends of the bar: what was kept, or the level after the run.
    bar: Option<f64>,
    /// What was there before, where the bar is a level.
    base: f64,
    role: Role,
}

impl Slot {
    /// The highest of what is drawn, in bytes.
    pub(super) fn top(&self) -> f64 {
        self.bar.unwrap_or_default().max(self.peak)
    }

    /// The lowest of what is drawn, in bytes.
    pub(super) fn low(&self) -> f64 {
        self.bar.unwrap_or_default()
    }

    pub(super) fn runs_still(&self) -> bool {
        self.status == Status::Running
    }
}

/// The runs of one cell.
pub(super) struct Group {
    pub(super) cell: CellIdx,
    /// The latest name of the cell.
    pub(super) name: String,
    execution_count: Option<u32>,
    pub(super) left: f64,
    pub(super) slot_width: f64,
    pub(super) slots: Vec<Slot>,
    /// Of the finding about it.
    pub(super) role: Option<Role>,
    /// What each run keeps, where the bars show that.
    pub(super) mean: Option<Mean>,
}

/// What each run of a series keeps.
pub(super) struct Mean {
    pub(super) value: ByteDelta,
    /// Its confidence interval of 95 %.
    pub(super) interval: Option<(ByteDelta, ByteDelta)>,
}

impl Group {
    pub(super) fn right(&self) -> f64 {
        self.slot_left(self.slots.len())
    }

    pub(super) fn slot_left(&self, idx: usize) -> f64 {
        self.left + self.slot_width * idx as f64
    }

    /// What stands under the name, from the longest to the shortest way to say it.
    pub(super) fn counts(&self) -> Vec<String> {
        let number = self.execution_count.map(|count| format!("In [{count}]"));
        let runs = (self.slots.len() > 1).then(|| count(self.slots.len(), "run"));
        let n_of = |status| {
            self.slots
                .iter()
                .filter(|slot| slot.status == status)
                .count()
        };
        let ends = [
            (Status::OutOfMemory, "out of memory"),
            (Status::Error, "failed"),
            (Status::Interrupted, "interrupted"),
            (Status::Running, "running"),
        ];
        let ends = ends
            .into_iter()
            .filter_map(|(status, word)| match n_of(status) {
                0 => None,
                1 if self.slots.len() == 1 => Some(word.to_owned()),
                n => Some(format!("{n} {word}")),
            });
        let short: Vec<String> = number.into_iter().chain(runs).collect();
        let long: Vec<String> = short.iter().cloned().chain(ends).collect();
        let bare = self.execution_count.map(|count| format!("[{count}]"));
        let mut ways = vec![long.join(" · "), short.join(" · ")];
        ways.extend(short.first().cloned());
        ways.extend(bare);
        ways
    }
}

/// The groups from left to right, fitted into the plot.
pub(super) fn grouped(session: &DeviceView<'_>, plot: &Plot, view: &View) -> Vec<Group> {
    let is_in_view = |run: &&Run| {
        view.span
            .is_none_or(|(from, to)| run.started <= to && run.ended.is_none_or(|end| end >= from))
    };
    let n_cells = session.recording.cells().len();
    let groups = by_cell(n_cells, session.runs().filter(is_in_view));
    let n_runs: usize = groups.iter().map(|(_, runs)| runs.len()).sum();
    // Half a gap before the first, half a gap after the last.
    let n_slots = n_runs as f64 + GAP * groups.len() as f64;
    let slot_width = (plot.width() / n_slots).min(MAX_SLOT);
    let mut left = plot.left + slot_width * GAP / 2.0;
    groups
        .into_iter()
        .map(|(cell, runs)| {
            let group = group(session, (cell, &runs), (left, slot_width), view.measure);
            left = group.right() + slot_width * GAP;
            group
        })
        .collect()
}

fn group(
    session: &DeviceView<'_>,
    (cell, runs): (CellIdx, &[&Run]),
    (left, slot_width): (f64, f64),
    measure: Measure,
) -> Group {
    let finding = session.growing_in[cell.get()];
    let latest = runs.last().expect("a group has a run");
    let slots: Vec<Slot> = runs.iter().map(|run| slot(session, run, measure)).collect();
    Group {
        cell,
        name: cell_label(session.recording, latest),
        execution_count: latest.execution_count,
        left,
        slot_width,
        role: finding.map(role_of),
        mean: match finding {
            _ if measure == Measure::Level => None,
            Some(finding) if finding.counts_steps() => None,
            Some(finding) => finding.growth().map(|growth| Mean {
                value: growth.bytes_per_run,
                interval: Some(growth.interval),
            }),
            None => mean_kept(&slots),
        },
        slots,
    }
}

/// Of three runs and more, where all are known and the last one still keeps something.
fn mean_kept(slots: &[Slot]) -> Option<Mean> {
    let ended = slots.iter().filter(|slot| !slot.runs_still());
    let kept: Vec<f64> = ended
        .map(|slot| slot.kept.map(ByteDelta::as_f64))
        .collect::<Option<_>>()?;
    let n = kept.len() as f64;
    if kept.len() < 3 || kept.last() == Some(&0.0) {
        return None;
    }
    let mean = kept.iter().sum::<f64>() / n;
    let squares: f64 = kept.iter().map(|kept| (kept - mean).powi(2)).sum();
    let half = 1.96 * (squares / (n - 1.0) / n).sqrt();
    let bytes = ByteDelta::from_f64;
    Some(Mean {
        value: bytes(mean),
        interval: Some((bytes(mean - half), bytes(mean + half))),
    })
}

fn slot(session: &DeviceView<'_>, run: &Run, measure: Measure) -> Slot {
    let row = session.row(run.idx);
    let before = row.and_then(|row| row.before);
    let after = row.and_then(|row| row.after.or(row.so_far));
    let kept = before.zip(after).map(|(before, after)| after.since(before));
    let peak = row.and_then(|row| row.peak).map(Peak::low);
    let (bar, base, peak) = match measure {
        Measure::Kept => {
            let above = peak.zip(before).map(|(peak, before)| peak.since(before));
            (
                kept.map(ByteDelta::as_f64),
                0.0,
                above.map(ByteDelta::as_f64),
            )
        }
        Measure::Level => {
            let base = before.min(after).unwrap_or_default();
            (
                after.map(Bytes::as_f64),
                base.as_f64(),
                peak.map(Bytes::as_f64),
            )
        }
    };
    Slot {
        run: run.idx,
        status: run.status,
        kept,
        peak: peak.unwrap_or_default().max(0.0),
        bar,
        base,
        role: session.role(run.idx).unwrap_or(Role::Kept),
    }
}

/// One run, or several where they are narrower than a pixel: then their extremes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bar {
    pub(super) left: f64,
    pub(super) width: f64,
    /// The least that was kept, in bytes; not above 0.
    pub(super) low: f64,
    /// The most that was kept, or the highest level; not below 0.
    pub(super) high: f64,
    pub(super) peak: f64,
    /// What was there before, where the bar is a level.
    pub(super) base: f64,
    pub(super) role: Role,
    /// Its run goes on: it may still change.
    pub(super) is_open: bool,
    any_known: bool,
}

impl Bar {
    /// Of the corners, where there is room for round ones.
    pub(super) fn radius(&self) -> f64 {
        if self.width >= 6.0 { 2.0 } else { 0.0 }
    }

    /// It is known that nothing was kept.
    pub(super) fn is_zero(&self) -> bool {
        self.any_known && !self.is_open && self.low == 0.0 && self.high == 0.0
    }
}

/// The bars of a group, each at least a pixel wide.
pub(super) fn bars(group: &Group) -> impl Iterator<Item = Bar> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and few runs share a pixel"
    )]
    let n_merged = (1.0 / group.slot_width).ceil().max(1.0) as usize;
    let width = group.slot_width * n_merged as f64;
    let bar_width = if width >= MIN_SLOT_WITH_SPACE {
        width * BAR_SHARE
    } else {
        width
    };
    group
        .slots
        .chunks(n_merged)
        .enumerate()
        .map(move |(idx, slots)| {
            let kept = || slots.iter().filter_map(|slot| slot.bar);
            let most = slots.iter().max_by_key(|slot| slot.kept);
            Bar {
                left: group.left + width * idx as f64 + (width - bar_width) / 2.0,
                width: bar_width,
                low: kept().fold(0.0, f64::min),
                high: kept().fold(0.0, f64::max),
                peak: slots.iter().map(|slot| slot.peak).fold(0.0, f64::max),
                base: slots.iter().map(|slot| slot.base).fold(0.0, f64::max),
                role: most.map_or(Role::Kept, |slot| slot.role),
                is_open: slots.iter().any(Slot::runs_still),
                any_known: kept().next().is_some(),
            }
        })
}
