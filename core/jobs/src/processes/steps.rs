//! A child's levels at the steps of a loop.

use gpumem_model::recording::{Column, Points, Recording, RunIdx, Series};
use gpumem_model::units::{Bytes, Nanos};

/// With fewer steps, a loop's steps are not used.
const MIN_STEPS: usize = 4;

/// What a step of a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// A step of a loop: the child's own, else one of its parent's.
    Step,
    /// A run of a cell in the parent.
    Run,
    /// The time between two readings: there are no steps.
    Span(Nanos),
}

/// The ends of a child's steps, in time order; `None` if it has no two levels.
pub(super) fn step_ends(
    parent: &Recording,
    child: &Recording,
    points: &Points,
) -> Option<(Vec<Nanos>, Per)> {
    let (first, last) = (*points.at().first()?, *points.at().last()?);
    let inside = |at: &Nanos| first <= *at && *at <= last;
    let own = marks_of(child, RunIdx(0));
    let of_parent = parent.runs().iter().map(|run| marks_of(parent, run.idx));
    let of_parent = of_parent.map(|marks| marks.into_iter().filter(inside).collect::<Vec<_>>());
    let longest = of_parent.max_by_key(Vec::len).unwrap_or_default();
    for steps in [own, longest] {
        if steps.len() >= MIN_STEPS {
            return Some((steps, Per::Step));
        }
    }
    let runs = parent.runs().iter().filter(|run| run.parent.is_none());
    let runs: Vec<Nanos> = runs.filter_map(|run| run.ended).filter(inside).collect();
    if runs.len() >= MIN_STEPS {
        return Some((runs, Per::Run));
    }
    let n_spans = points.len() as u64 - 1;
    let span = last.since(first).get().checked_div(n_spans)?;
    (span > 0).then(|| (points.at().to_vec(), Per::Span(Nanos::new(span))))
}

/// Memory that a child allocated and did not free. Its unshared memory also grows when it copies its parent's
/// memory, so it counts only if nothing else is known.
pub(super) fn held(points: &Points) -> &Column {
    let allocated = points.allocated();
    match allocated.get(0) {
        Some(_) => allocated,
        None => points.process_used(),
    }
}

/// The longest series of marks in a run: devices are marked together.
fn marks_of(recording: &Recording, run: RunIdx) -> Vec<Nanos> {
    let marked = recording
        .series_of(run)
        .filter(|(_, series, _)| matches!(series, Series::Marked(_)));
    let longest =
        marked.max_by_key(|(device, _, points)| (points.len(), std::cmp::Reverse(*device)));
    longest.map_or_else(Vec::new, |(_, _, points)| points.at().to_vec())
}

/// The level at the end of each step. Where there are fewer readings than steps, each reading's level:
/// none is taken twice. Then also what a step keeps, since the first quarter.
pub(super) fn laid(points: &Points, steps: &[Nanos]) -> (Vec<Bytes>, Option<f64>) {
    let (at, used) = (points.at(), held(points));
    let n_before = |end: &Nanos| at.partition_point(|at| at <= end).max(1);
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return (Vec::new(), None);
    };
    let readings = n_before(first) - 1..n_before(last);
    if readings.len() >= steps.len() {
        let ends = steps.iter();
        let levels = ends.filter_map(|end| used.get(n_before(end) - 1));
        return (levels.collect(), None);
    }
    let (quarter, end) = (readings.start + readings.len() / 4, readings.end - 1);
    let n_steps = |idx: usize| steps.partition_point(|end| *end <= at[idx]);
    let n_later = n_steps(end).saturating_sub(n_steps(quarter)).max(1);
    let ends = used.get(end).zip(used.get(quarter));
    let per_step = ends.map(|(end, quarter)| end.since(quarter).as_f64() / n_later as f64);
    (readings.filter_map(|idx| used.get(idx)).collect(), per_step)
}
