//! Levels inside a run: what it kept after each step, or each iteration of a loop.

use super::super::device_view::DeviceView;
use super::super::long_run::{axis_loop, judged_loop};
use gpumem_analyzer::of_points;
use gpumem_model::recording::{Points, RunIdx, Series};
use gpumem_model::units::Bytes;

/// More steps than this are indistinguishable in a slot.
const MOST: usize = 64;

/// The longest series that the user's code marked in a run; else the loop in which it grew or is.
fn points<'a>(session: &DeviceView<'a>, run: RunIdx) -> Option<&'a Points> {
    let series = session.recording.samples_of(run, session.device);
    let marked = series.filter(|(series, _)| matches!(series, Series::Marked(_)));
    let longest = marked.map(|(_, points)| points).max_by_key(|it| it.len());
    let of_loop = || {
        let goes_on = session.recording.run(run).ended.is_none();
        let shown = if goes_on { axis_loop } else { judged_loop };
        let series = Series::Loop(shown(session, run)?.idx);
        Some(session.recording.samples(run, session.device, &series))
    };
    longest.or_else(of_loop).filter(|points| points.len() > 1)
}

/// The run has steps, which take more room.
pub(super) fn has_steps(session: &DeviceView<'_>, run: RunIdx) -> bool {
    points(session, run).is_some()
}

/// The levels after the steps of a run, each at a share of the run's slot.
pub(super) fn steps(session: &DeviceView<'_>, run: RunIdx) -> Vec<(f64, Bytes)> {
    let Some(points) = points(session, run) else {
        return Vec::new();
    };
    let column = of_points(points, session.metric());
    let n = points.len();
    let n_shown = n.min(MOST);
    let shown = (1..=n_shown).filter_map(|place| {
        let (from, to) = ((place - 1) * n / n_shown, place * n / n_shown);
        let level = column.highest(from..to)?;
        Some((place as f64 / n_shown as f64, level))
    });
    shown.collect()
}
