//! Re-runs that hold two copies: a name is bound to the old one until the new one is ready.

use serde::Serialize;

use super::{Finding, FindingDetails, FindingKind};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::row::{Peak, RunRow};
use crate::series::RunSeries;
use gpumem_heap as heap;
use gpumem_model::holders::{Holder, RootKind};
use gpumem_model::recording::Recording;
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Bytes};

/// The two copies that a cell held at once when it was last run again.
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

/// A re-run must rise by this share of what it builds.
const COPY: f64 = 0.9;

/// Maximum share that a run may keep besides the copy: more means that it adds instead of replacing.
const REPLACES: f64 = 0.5;

/// It must rise as far as the first run did, less this share of a copy: it does the same again. One
/// that only uses what the first run made needs less.
const LESS_THAN_FIRST: f64 = 0.1;

/// A name is reported if it has at least this share of a copy.
const MOST: f64 = 0.5;

/// One re-run that built a whole new copy beside the old one.
struct Copied<'a> {
    row: &'a RunRow,
    old: Bytes,
    new: Bytes,
    rose: Bytes,
}

/// The cell's re-runs that held two copies; `least` is what a copy must be, in bytes.
pub(super) fn finding(context: Context<'_>, series: &RunSeries<'_>, least: f64) -> Option<Finding> {
    let recording = context.recording;
    let copied = copied(series);
    let last = copied.last().filter(|last| last.old.as_f64() >= least)?;
    let (first, later) = series.rows.split_first()?;
    let run = recording.run(last.row.run);
    let text = recording.text(run);
    let holder = text.and_then(|text| holder(recording, first, last.old, text));
    // That something as large came and went says nothing of the old one.
    let is_looked_at = recording.holders(recording.outermost(first.run), first.device);
    if text.is_some()
        && is_looked_at.is_some()
        && !holder
            .as_ref()
            .is_some_and(|it| is_new(recording, last, it))
    {
        return None;
    }
    let fix = text
        .zip(holder.as_ref())
        .and_then(|(text, holder)| heap::fix_of_rerun(&holder.name, text));
    let Copied { old, new, rose, .. } = *last;
    let details = DoublingDetails {
        old,
        new,
        rose,
        n_reruns: later.len(),
    };
    Some(Finding {
        severity: Severity::Warning,
        cell: Some(CellRef::for_run(recording, run)),
        runs: copied.iter().map(|it| it.row.run).collect(),
        n_runs: copied.len(),
        fix,
        holders: holder.into_iter().collect(),
        evidence: vec![
            Evidence::met(Statistic::Old, old.as_f64(), least),
            Evidence::met(Statistic::Rose, rose.as_f64(), COPY * new.as_f64()),
        ],
        ..Finding::about(
            FindingKind::Doubling,
            &series.key.id(recording),
            series.key.device,
            last.row.metric,
            FindingDetails::Doubling(details),
        )
    })
}

fn copied<'a>(series: &RunSeries<'a>) -> Vec<Copied<'a>> {
    let Some((first, later)) = series.rows.split_first() else {
        return Vec::new();
    };
    let mut left = first.kept.unwrap_or_default();
    let of_row = |row: &&'a RunRow| {
        let old = left;
        left += row.kept?;
        copy(first, row, old)
    };
    later.iter().filter_map(of_row).collect()
}

fn copy<'a>(first: &RunRow, row: &'a RunRow, old: ByteDelta) -> Option<Copied<'a>> {
    let kept = row.kept?;
    let replaces = kept.as_f64().abs() <= REPLACES * old.as_f64();
    let new = (old + kept).as_f64();
    let rose = row.peak?.low().saturating_sub(row.before?);
    let of_first = highest(first.peak?).saturating_sub(first.before?);
    let as_first = of_first.as_f64() + kept.as_f64().min(0.0);
    let is_whole =
        rose.as_f64() >= COPY * new && rose.as_f64() >= as_first - LESS_THAN_FIRST * old.as_f64();
    (old > ByteDelta::ZERO && replaces && is_whole).then(|| Copied {
        row,
        old: old.magnitude(),
        new: (old + kept).magnitude(),
        rose,
    })
}

/// Its storages are others than before the re-run, or nobody looked: where the new ones lie in the place
/// of the old, these were gone.
fn is_new(recording: &Recording, copied: &Copied<'_>, holder: &Holder) -> bool {
    let run = recording.outermost(copied.row.run);
    let look = recording.holders(run, copied.row.device);
    let fresh = look.and_then(|look| look.roots.iter().find(|it| it.name == holder.name)?.fresh);
    fresh.is_none_or(|fresh| fresh.as_f64() >= MOST * copied.new.as_f64())
}

/// The most that it can have been, where that is bounded.
fn highest(peak: Peak) -> Bytes {
    match peak {
        Peak::Exact(level) | Peak::Between { high: level, .. } | Peak::AtLeast(level) => level,
    }
}

/// The variable that the cell binds anew and that had most of what its first run left.
fn holder(recording: &Recording, first: &RunRow, copy: Bytes, text: &str) -> Option<Holder> {
    let look = recording.holders(recording.outermost(first.run), first.device)?;
    look.roots
        .iter()
        .filter(|it| it.kind == RootKind::Variable && it.retained.as_f64() >= MOST * copy.as_f64())
        .find(|it| heap::fix_of_rerun(&it.name, text).is_some())
        .cloned()
}
