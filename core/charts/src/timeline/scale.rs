//! Time on a line on which every run can be seen.
//!
//! A session is mostly thinking: drawn to scale, its runs would be hairlines
//! between pauses. So pauses are folded to a gap, each run gets an equal share
//! of a part of the width, and the rest goes by duration. Inside a run, and
//! between two runs, time is linear. By the clock, on demand, all of it is.

use std::cell::LazyCell;

use super::super::Pace;
use gpumem_model::recording::{Recording, Run, RunIdx};
use gpumem_model::units::Nanos;

/// The width of a pause where there is room, in logical pixels.
const PAUSE: f64 = 8.0;
/// The share of the width that all pauses together may take.
const PAUSES_SHARE: f64 = 0.25;
/// The share of the rest that is dealt out equally.
const EQUAL_SHARE: f64 = 0.4;

/// The part of a run that is in view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    pub(super) run: RunIdx,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) left: f64,
    pub(super) right: f64,
}

impl Stretch {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    /// Where an instant of the stretch is.
    pub(super) fn x(&self, at: Nanos) -> f64 {
        between(at, (self.from, self.to), (self.left, self.right))
    }
}

/// Maps instants to positions and back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeScale {
    stretches: Vec<Stretch>,
    edges: (f64, f64),
}

impl TimeScale {
    /// The runs that are not nested in another, between two edges in logical
    /// pixels; of `span` only, where it is given.
    pub(super) fn new(
        recording: &Recording,
        span: Option<(Nanos, Nanos)>,
        pace: Pace,
        (left, right): (f64, f64),
    ) -> Self {
        let stretches = visible(recording, span);
        let stretches = match pace {
            Pace::Runs => folded(stretches, left, right),
            Pace::Clock => by_the_clock(stretches, span, left, right),
        };
        Self {
            stretches,
            edges: (left, right),
        }
    }

    /// The first and the last position, in logical pixels.
    pub fn edges(&self) -> (f64, f64) {
        self.edges
    }

    pub(super) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The position of an instant, in logical pixels; instants out of view are at the edges.
    pub fn x(&self, at: Nanos) -> f64 {
        let next = self.stretches.partition_point(|stretch| stretch.to < at);
        let before = next.checked_sub(1).and_then(|idx| self.stretches.get(idx));
        match (before, self.stretches.get(next)) {
            (_, Some(stretch)) if stretch.from <= at => stretch.x(at),
            (Some(a), Some(b)) => between(at, (a.to, b.from), (a.right, b.left)),
            (None, Some(first)) => first.left,
            (Some(last), None) => last.right,
            (None, None) => 0.0,
        }
    }

    /// The instant at a position in logical pixels; positions beyond the runs are at their ends.
    pub fn instant(&self, x: f64) -> Nanos {
        let next = self.stretches.partition_point(|stretch| stretch.right < x);
        let before = next.checked_sub(1).and_then(|idx| self.stretches.get(idx));
        match (before, self.stretches.get(next)) {
            (_, Some(s)) if s.left <= x => unfold(x, (s.left, s.right), (s.from, s.to)),
            (Some(a), Some(b)) => unfold(x, (a.right, b.left), (a.to, b.from)),
            (None, Some(first)) => first.from,
            (Some(last), None) => last.to,
            (None, None) => Nanos::ZERO,
        }
    }
}

fn by_the_clock(
    mut stretches: Vec<Stretch>,
    span: Option<(Nanos, Nanos)>,
    left: f64,
    right: f64,
) -> Vec<Stretch> {
    let first = stretches.first().map_or(Nanos::ZERO, |first| first.from);
    let last = stretches.last().map_or(Nanos::ZERO, |last| last.to);
    let shown = span.unwrap_or((first, last));
    for stretch in &mut stretches {
        stretch.left = between(stretch.from, shown, (left, right));
        stretch.right = between(stretch.to, shown, (left, right));
    }
    stretches
}

fn folded(mut stretches: Vec<Stretch>, left: f64, right: f64) -> Vec<Stretch> {
    let n = stretches.len() as f64;
    let width = right - left;
    let pause = PAUSE.min(PAUSES_SHARE * width / n.max(1.0));
    let room = width - pause * n;
    let total: f64 = stretches.iter().map(|s| s.to.since(s.from).as_f64()).sum();
    let mut x = left + pause / 2.0;
    for stretch in &mut stretches {
        let equal = room / n;
        let share = stretch.to.since(stretch.from).as_f64() / total;
        let fair = if total > 0.0 { room * share } else { equal };
        stretch.left = x;
        stretch.right = x + EQUAL_SHARE * equal + (1.0 - EQUAL_SHARE) * fair;
        x = stretch.right + pause;
    }
    stretches
}

/// What is in view, one after the other, not yet placed.
fn visible(recording: &Recording, span: Option<(Nanos, Nanos)>) -> Vec<Stretch> {
    let end = LazyCell::new(|| recording.last_instant());
    let (first, last) = span.unwrap_or((Nanos::ZERO, Nanos::new(u64::MAX)));
    let outermost = recording.runs().iter().filter(|run| run.parent.is_none());
    let mut runs: Vec<&Run> = outermost.collect();
    runs.sort_by_key(|run| run.started);
    let mut free_from = first;
    let mut stretches = Vec::new();
    for run in runs {
        let from = run.started.max(free_from);
        let to = run.ended.unwrap_or_else(|| *end).min(last);
        let is_whole = run.started >= first && run.started <= last;
        if to > from || (is_whole && to >= from) {
            free_from = to;
            let (left, right) = (0.0, 0.0);
            stretches.push(Stretch {
                run: run.idx,
                from,
                to,
                left,
                right,
            });
        }
    }
    stretches
}

fn between(at: Nanos, (from, to): (Nanos, Nanos), (left, right): (f64, f64)) -> f64 {
    let length = to.since(from).as_f64();
    let share = if length > 0.0 {
        at.since(from).as_f64() / length
    } else {
        0.5
    };
    left + share.min(1.0) * (right - left)
}

fn unfold(x: f64, (left, right): (f64, f64), (from, to): (Nanos, Nanos)) -> Nanos {
    let share = if right > left {
        (x - left) / (right - left)
    } else {
        0.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length of time"
    )]
    let way = (share.clamp(0.0, 1.0) * to.since(from).as_f64()) as u64;
    from + Nanos::new(way)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use gpumem_analyzer::testing::{run, session};
    use gpumem_model::recording::Frame;

    #[test]
    fn a_short_run_is_seen_beside_a_long_one() {
        let (recording, _) = session(&[("a", &[run(0).seconds(3600), run(0)])]);
        let scale = TimeScale::new(&recording, None, Pace::Runs, (0.0, 500.0));
        let widths: Vec<f64> = scale.stretches().iter().map(|s| s.right - s.left).collect();
        assert!(
            widths[1] > 80.0 && widths[0] > 3.0 * widths[1],
            "{widths:?}"
        );
    }

    #[test]
    fn by_the_clock_a_pause_is_as_long_as_it_was() {
        let (recording, _) = session(&[("a", &[run(0), run(0).seconds(3)])]);
        let scale = TimeScale::new(&recording, None, Pace::Clock, (0.0, 600.0));
        let places = scale.stretches().iter().map(|s| (s.left, s.right));
        let places: Vec<_> = places.collect();
        assert_eq!(places, [(0.0, 100.0), (300.0, 600.0)]);
        let span = Some((Nanos::millis(1500), Nanos::millis(3500)));
        let scale = TimeScale::new(&recording, span, Pace::Clock, (0.0, 200.0));
        assert_eq!(scale.instant(25.0), Nanos::millis(1750));
    }

    #[test]
    fn a_span_shows_only_its_runs() {
        let (recording, _) = session(&[("a", &[run(0), run(0), run(0)])]);
        let span = Some((Nanos::millis(4500), Nanos::millis(7000)));
        let scale = TimeScale::new(&recording, span, Pace::Runs, (0.0, 500.0));
        let shown: Vec<_> = scale.stretches().iter().map(|s| (s.run, s.from)).collect();
        assert_eq!(
            shown,
            [
                (RunIdx(1), Nanos::millis(4500)),
                (RunIdx(2), Nanos::millis(7000))
            ]
        );
    }

    #[test]
    fn runs_that_overlap_stand_one_after_the_other() {
        let (mut recording, _) = session(&[("a", &[run(0).seconds(9), run(0)])]);
        let mut late = recording.run(RunIdx(1)).clone();
        late.started = Nanos::millis(5000);
        recording
            .apply(Frame::Run(late))
            .expect("a run that is known");
        let scale = TimeScale::new(&recording, None, Pace::Runs, (0.0, 500.0));
        let [first, second] = scale.stretches() else {
            panic!("two runs are two stretches");
        };
        assert_eq!(first.to, second.from);
        assert!(first.right < second.left);
    }

    proptest! {
        #[test]
        fn there_and_back(seconds in prop::collection::vec(1_u64..100, 1..40), at in 0.0..1.0_f64) {
            let plays: Vec<_> = seconds.iter().map(|n| run(0).seconds(*n)).collect();
            let (recording, _) = session(&[("a", &plays)]);
            for pace in [Pace::Runs, Pace::Clock] {
                let scale = TimeScale::new(&recording, None, pace, (66.0, 868.0));
                let stretches = scale.stretches();
                prop_assert!(stretches.windows(2).all(|pair| pair[0].right < pair[1].left));
                let (first, last) = (stretches[0].left, stretches[stretches.len() - 1].right);
                prop_assert!(first >= 66.0 && last <= 868.0);
                let x = first + at * (last - first);
                prop_assert!((scale.x(scale.instant(x)) - x).abs() < 1e-3);
            }
        }
    }
}
