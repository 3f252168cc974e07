//! The levels of the device after each run: the leaks' part, and the cache above.

use super::super::device_view::DeviceView;
use super::{CellRow, Slots, marks};
use gpumem_analyzer::{Metric, Peak};
use gpumem_model::recording::Run;
use gpumem_model::units::Bytes;

/// From a place of the axis on. Sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CellPoint {
    pub(super) at: f64,
    /// Bytes in use; `None` if unknown.
    pub(super) level: Option<f64>,
    /// The part that leaks keep.
    pub(super) leaks: f64,
    /// Above it: free in the allocator.
    pub(super) cache: f64,
}

impl CellPoint {
    pub(super) fn in_use(&self) -> f64 {
        self.level.unwrap_or_default()
    }

    pub(super) fn with_cache(&self) -> f64 {
        self.in_use() + self.cache
    }
}

/// A run's transient memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransientUse {
    pub(super) at: f64,
    pub(super) extent: (f64, f64),
    /// The higher of the run's ends, and its peak.
    pub(super) from: f64,
    pub(super) to: f64,
}

/// The levels of the device, from left to right.
pub(super) fn levels(session: &DeviceView<'_>, slots: &Slots, rows: &[CellRow]) -> Vec<CellPoint> {
    let leaks = leaks(rows);
    let mut points: Vec<CellPoint> = Vec::new();
    for run in session.runs() {
        let (left, right) = slots.extent(run.idx);
        if points.is_empty() {
            // The level before the first run.
            let before = session.row(run.idx).and_then(|row| row.before);
            points.extend(before.map(|level| CellPoint {
                at: left,
                level: Some(level.as_f64()),
                leaks: 0.0,
                cache: cache(session, run, true),
            }));
        }
        let steps = marks::steps(session, run.idx);
        let cache = cache(session, run, false);
        let end = if steps.is_empty() {
            f64::midpoint(left, right)
        } else {
            right
        };
        for (share, level) in steps {
            points.push(CellPoint {
                at: left + share * (right - left),
                level: Some(level.as_f64()),
                leaks: 0.0,
                cache,
            });
        }
        let row = session.row(run.idx);
        let after = row.and_then(|row| row.after.or(row.so_far).or(row.before));
        points.push(CellPoint {
            at: end,
            level: after.map(Bytes::as_f64),
            leaks: 0.0,
            cache,
        });
    }
    let mut leaks = leaks.into_iter().peekable();
    let mut held = 0.0;
    for point in &mut points {
        while let Some((_, n_bytes)) = leaks.next_if(|(at, _)| *at <= point.at) {
            held = n_bytes;
        }
        point.leaks = point.level.map_or(0.0, |level| held.max(0.0).min(level));
    }
    points
}

/// What all leaks together kept so far, where that changed.
fn leaks(rows: &[CellRow]) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_leak) {
        let mut before = 0.0;
        for (at, kept) in row.kept_so_far() {
            changes.push((at, kept - before));
            before = kept;
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    for (_, change) in &mut changes {
        sum += *change;
        *change = sum;
    }
    changes
}

/// Free in the allocator before or after a run; none where that is not what is judged.
fn cache(session: &DeviceView<'_>, run: &Run, is_before: bool) -> f64 {
    let row = session
        .row(run.idx)
        .filter(|row| row.metric == Metric::Allocated);
    let levels = row.map(|row| {
        let ends = |(before, after): (Option<Bytes>, Option<Bytes>)| {
            if is_before { before } else { after.or(before) }
        };
        (ends(row.allocated), ends(row.reserved))
    });
    let Some((Some(allocated), Some(reserved))) = levels else {
        return 0.0;
    };
    reserved.saturating_sub(allocated).as_f64()
}

/// Each run's peak above both of its ends.
pub(super) fn given_back(session: &DeviceView<'_>, slots: &Slots) -> Vec<TransientUse> {
    let of_run = |run: &Run| {
        let row = session.row(run.idx)?;
        let peak = row.peak.map(Peak::low)?;
        let from = row.before.max(row.after.or(row.so_far))?;
        let extent = slots.extent(run.idx);
        (peak > from).then(|| TransientUse {
            at: f64::midpoint(extent.0, extent.1),
            extent,
            from: from.as_f64(),
            to: peak.as_f64(),
        })
    };
    session.runs().filter_map(of_run).collect()
}
