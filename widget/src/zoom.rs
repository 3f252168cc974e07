//! Zooming into a part of the time.
//!
//! Positions are on the scale of the whole session. There a zoom has the same effect everywhere,
//! although pauses are folded.

use gpumem_charts::TimeScale;
use gpumem_model::units::Nanos;

use crate::state::TimeRange;

/// The shortest time in view.
const SHORTEST: u64 = 10_000;

/// The whole session, and the part of it that is in view.
pub(crate) struct ZoomWindow<'a> {
    /// All of it, on a line.
    pub(crate) whole: &'a TimeScale,
    /// What is in view, on a line of the same length.
    pub(crate) shown: &'a TimeScale,
    /// What is in view.
    pub(crate) span: Option<TimeRange>,
}

impl ZoomWindow<'_> {
    /// The part in view, on the whole scale.
    pub(crate) fn places(&self) -> (f64, f64) {
        match self.span {
            None => self.ends(),
            Some((from, to)) => (self.whole.x(from), self.whole.x(to)),
        }
    }

    /// Where the whole begins and ends.
    pub(crate) fn ends(&self) -> (f64, f64) {
        let (left, right) = self.whole.edges();
        let end = |x| self.whole.x(self.whole.instant(x));
        (end(left), end(right))
    }

    /// A view of `factor` times the time, in which the instant at `x` keeps its position.
    pub(crate) fn zoomed(&self, x: f64, factor: f64) -> Option<TimeRange> {
        let fixed = self.whole.x(self.shown.instant(x));
        let (left, right) = self.places();
        self.between(
            fixed - (fixed - left) * factor,
            fixed + (right - fixed) * factor,
        )
    }

    /// The view moved by a share of its own length, within the session.
    pub(crate) fn panned(&self, share: f64) -> Option<TimeRange> {
        let (left, right) = self.places();
        self.moved(share * (right - left))
    }

    /// The view moved by a distance on the whole scale, within the session.
    pub(crate) fn moved(&self, by: f64) -> Option<TimeRange> {
        let (left, right) = self.places();
        let (first, last) = self.ends();
        let by = by.min(last - right).max(first - left);
        self.between(left + by, right + by)
    }

    /// The time between two positions of the view.
    pub(crate) fn cut(&self, from: f64, to: f64) -> Option<TimeRange> {
        let (from, to) = (
            self.shown.instant(from.min(to)),
            self.shown.instant(from.max(to)),
        );
        (to.since(from).get() >= SHORTEST).then_some((from, to))
    }

    /// What is between two places of the whole; `None` for all of it.
    pub(crate) fn between(&self, left: f64, right: f64) -> Option<TimeRange> {
        let (first, last) = self.ends();
        let (left, right) = (left.min(right), left.max(right));
        if left <= first && right >= last {
            return None;
        }
        let (from, to) = (self.whole.instant(left), self.whole.instant(right));
        let shortest = from + Nanos::new(SHORTEST);
        Some((from, to.max(shortest)))
    }
}

#[cfg(test)]
mod tests {
    use gpumem_charts::{ChartView, time_scale};

    use super::*;
    use crate::fixture::recording_of_runs;

    /// Three runs of a second, from 1, 4 and 7 s on.
    #[track_caller]
    fn check(
        span: Option<(u64, u64)>,
        act: impl Fn(&ZoomWindow<'_>) -> Option<TimeRange>,
        expected: Option<(u64, u64)>,
    ) {
        let recording = recording_of_runs(&[0, 0, 0]);
        let span = span.map(|(from, to)| (Nanos::millis(from), Nanos::millis(to)));
        let view = |span| ChartView {
            width: 900.0,
            span,
            ..ChartView::default()
        };
        let window = ZoomWindow {
            whole: &time_scale(&recording, &view(None)),
            shown: &time_scale(&recording, &view(span)),
            span,
        };
        // To the nearest 10 ms.
        let millis = |at: Nanos| (at.get() + 5_000_000) / 10_000_000 * 10;
        let found = act(&window).map(|(from, to)| (millis(from), millis(to)));
        assert_eq!(found, expected);
    }

    #[test]
    fn closer_and_farther_again_is_where_one_was() {
        let middle = f64::midpoint(66.0, 888.0);
        check(
            None,
            |window| window.zoomed(middle, 0.3268),
            Some((4000, 5000)),
        );
        check(
            Some((4000, 5000)),
            |window| window.zoomed(middle, 3.5),
            None,
        );
    }

    #[test]
    fn a_pan_stops_at_the_ends() {
        check(
            Some((1000, 2000)),
            |window| window.panned(-0.5),
            Some((1000, 2000)),
        );
        check(
            Some((7000, 8000)),
            |window| window.panned(9.0),
            Some((7000, 8000)),
        );
    }

    #[test]
    fn a_cut_is_what_lies_between_two_places() {
        check(None, |window| window.cut(900.0, 0.0), Some((1000, 8000)));
        check(None, |window| window.cut(400.0, 400.0), None);
    }
}
