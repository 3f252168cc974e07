//! The levels of a loop, by iteration and by time.

use gpumem_model::recording::{Column, Loop, Points};
use gpumem_model::units::{Bytes, Nanos};

/// What is known where an iteration ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct IterationLevel {
    /// How many iterations had ended.
    pub(super) iteration: f64,
    pub(super) level: Bytes,
}

/// The levels of a loop in one run.
#[derive(Debug, Clone)]
pub(super) struct IterationLevels {
    pub(super) points: Vec<IterationLevel>,
    /// How many iterations ended.
    pub(super) n_all: u64,
    /// The level before the first of them.
    pub(super) start: Bytes,
    /// The instants at which iterations ended, from the first to the last.
    paces: Vec<(f64, Nanos)>,
}

impl IterationLevels {
    /// `None` if no level is known.
    pub(super) fn new(
        counted: &Loop,
        (points, levels): (&Points, &Column),
        before: Option<Bytes>,
    ) -> Option<Self> {
        let mut paces = vec![(0.0, counted.counted_from)];
        let mut known = Vec::new();
        for (idx, point) in points.iter().enumerate() {
            let iteration = point.ordinal as f64;
            if paces
                .last()
                .is_some_and(|(n, at)| *n < iteration && *at < point.at)
            {
                paces.push((iteration, point.at));
            }
            known.extend(
                levels
                    .get(idx)
                    .map(|level| IterationLevel { iteration, level }),
            );
        }
        let last = known.last()?.iteration;
        let n_all = counted.n_iterations.max(last as u64);
        let ends = (n_all as f64, counted.last_at);
        if paces
            .last()
            .is_some_and(|(n, at)| *n < ends.0 && *at < ends.1)
        {
            paces.push(ends);
        }
        Some(Self {
            start: before.unwrap_or(known.first()?.level),
            points: known,
            n_all,
            paces,
        })
    }

    pub(super) fn levels(&self) -> impl Iterator<Item = Bytes> {
        self.points.iter().map(|point| point.level)
    }

    pub(super) fn first_level(&self) -> Bytes {
        self.points.first().map_or(self.start, |point| point.level)
    }

    pub(super) fn last_level(&self) -> Bytes {
        self.points.last().map_or(Bytes::ZERO, |point| point.level)
    }

    /// The level after `iteration` iterations.
    pub(super) fn level(&self, iteration: f64) -> Bytes {
        let until = self
            .points
            .partition_point(|point| point.iteration <= iteration);
        let point = until.checked_sub(1).map(|idx| self.points[idx]);
        point.map_or(self.start, |point| point.level)
    }

    /// How many iterations had ended at an instant, with a share of the next; beyond the last at the pace of
    /// all.
    pub(super) fn iteration(&self, at: Nanos) -> f64 {
        let (before, after) = self.between(|(_, known)| *known <= at);
        let (from, to) = (before.1.as_f64(), after.1.as_f64());
        let share = if to > from {
            (at.as_f64() - from) / (to - from)
        } else {
            0.0
        };
        (before.0 + share * (after.0 - before.0)).max(0.0)
    }

    /// How many iterations had ended at an instant of the run.
    pub(super) fn iteration_in_run(&self, at: Nanos) -> f64 {
        self.iteration(at).min(self.n_all as f64)
    }

    /// The instant at which `iteration` iterations had ended.
    pub(super) fn instant(&self, iteration: f64) -> Nanos {
        let (before, after) = self.between(|(n, _)| *n <= iteration);
        let (from, to) = (before.1.as_f64(), after.1.as_f64());
        let n = after.0 - before.0;
        let share = if n > 0.0 {
            (iteration - before.0) / n
        } else {
            0.0
        };
        Nanos::new((from + share * (to - from)).max(0.0) as u64)
    }

    /// The two that lie around what `is_before` parts; after the last, the first and the last.
    fn between(&self, is_before: impl Fn(&(f64, Nanos)) -> bool) -> ((f64, Nanos), (f64, Nanos)) {
        let first = self.paces[0];
        let last = self.paces.last().copied().unwrap_or(first);
        let until = self.paces.partition_point(is_before).max(1);
        match self.paces.get(until) {
            Some(after) => (self.paces[until - 1], *after),
            None => (first, last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::recording::Sample;

    /// Iterations that end at these milliseconds; counting begins at 1000.
    fn course(ends: &[(u64, u64)]) -> IterationLevels {
        let points = ends.iter().map(|(n, at)| Sample {
            ordinal: *n,
            at: Nanos::millis(*at),
            allocated: Some(Bytes::mib(*n)),
            ..Sample::default()
        });
        let points: Points = points.collect();
        let counted = Loop {
            counted_from: Nanos::millis(1000),
            n_iterations: ends.last().map_or(0, |(n, _)| *n),
            last_at: Nanos::millis(ends.last().map_or(0, |(_, at)| *at)),
            ..Loop::default()
        };
        IterationLevels::new(&counted, (&points, points.allocated()), None).expect("levels")
    }

    #[track_caller]
    fn check(course: &IterationLevels, iteration: f64, millis: u64) {
        assert_eq!(course.instant(iteration), Nanos::millis(millis));
        assert!((course.iteration(Nanos::millis(millis)) - iteration).abs() < 1e-9);
    }

    #[test]
    fn time_follows_the_pace_of_the_iterations() {
        let slower = course(&[(10, 2000), (20, 5000)]);
        check(&slower, 0.0, 1000);
        check(&slower, 5.0, 1500);
        check(&slower, 15.0, 3500);
        check(&slower, 20.0, 5000);
        check(&slower, 25.0, 6000);
    }

    #[test]
    fn a_level_holds_until_the_next_is_known() {
        let sparse = course(&[(10, 2000), (20, 5000)]);
        let levels = [0.0, 10.0, 19.9, 20.0, 99.0].map(|n| sparse.level(n));
        assert_eq!(levels, [10, 10, 10, 20, 20].map(Bytes::mib));
    }
}
