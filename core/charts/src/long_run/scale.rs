//! Where iterations and times stand on the axes of one run.

use gpumem_model::units::Nanos;

/// More ticks than this are too many.
const MAX_TICKS: f64 = 8.0;

/// Iterations from left to right, from none on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(super) left: f64,
    pub(super) right: f64,
    /// Iterations at the right edge.
    pub(super) end: f64,
}

impl Scale {
    pub(crate) fn x(self, iteration: f64) -> f64 {
        self.left + (self.right - self.left) * iteration / self.end.max(1.0)
    }

    pub(crate) fn iteration(self, x: f64) -> f64 {
        (x - self.left) / (self.right - self.left) * self.end
    }

    /// Multiples of 1, 2 or 5 times a power of ten, from zero on.
    pub(super) fn ticks(self) -> Vec<f64> {
        let powers = std::iter::successors(Some(1.0), |power| Some(power * 10.0));
        let mut steps = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * power));
        let step = steps
            .find(|step| self.end / step <= MAX_TICKS)
            .unwrap_or(self.end);
        multiples(step, self.end)
    }
}

/// Times since the run began, up to that one, with what stands at them.
pub(super) fn time_ticks(until: Nanos) -> Vec<(Nanos, String)> {
    const MILLI: f64 = 1e6;
    const SECOND: f64 = 1e9;
    const MINUTE: f64 = 60.0 * SECOND;
    const HOUR: f64 = 60.0 * MINUTE;
    let small =
        [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0].map(|n| (n * MILLI, MILLI, "ms"));
    let clock = [(SECOND, "s"), (MINUTE, "min")]
        .map(|(unit, name)| [1.0, 2.0, 5.0, 10.0, 15.0, 30.0].map(|n| (n * unit, unit, name)));
    let hours =
        std::iter::successors(Some(HOUR), |step| Some(step * 2.0)).map(|it| (it, HOUR, "h"));
    let steps = small
        .into_iter()
        .chain(clock.into_iter().flatten())
        .chain(hours);
    let until = until.as_f64();
    let mut wide_enough = steps.filter(|(step, ..)| until / step <= MAX_TICKS);
    let (step, unit, name) = wide_enough.next().unwrap_or((HOUR, HOUR, "h"));
    let tick = |at: f64| {
        let label = if at > 0.0 {
            // Of a second, not a thousand parts of it.
            let (unit, name) = if until >= SECOND && unit < SECOND {
                (SECOND, "s")
            } else {
                (unit, name)
            };
            format!("{} {name}", at / unit)
        } else {
            "0".to_owned()
        };
        (Nanos::new(at as u64), label)
    };
    multiples(step, until).into_iter().map(tick).collect()
}

fn multiples(step: f64, until: f64) -> Vec<f64> {
    let all = std::iter::successors(Some(0.0), |n| Some(n + 1.0)).map(|n| n * step);
    all.take_while(|at| *at <= until).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(end: f64, expected: &[f64]) {
        let scale = Scale {
            left: 0.0,
            right: 100.0,
            end,
        };
        assert_eq!(scale.ticks(), expected);
    }

    #[test]
    fn iterations_have_round_ticks() {
        check(3.0, &[0.0, 1.0, 2.0, 3.0]);
        check(122.0, &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]);
        check(
            400.0,
            &[0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0],
        );
        check(41_000.0, &[0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0]);
    }

    #[test]
    fn times_have_the_ticks_of_a_clock() {
        let shown = |millis: u64| {
            let ticks = time_ticks(Nanos::millis(millis)).into_iter();
            ticks.map(|(_, label)| label).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(94_000), "0, 15 s, 30 s, 45 s, 60 s, 75 s, 90 s");
        assert_eq!(shown(300_000), "0, 1 min, 2 min, 3 min, 4 min, 5 min");
        assert_eq!(
            shown(700),
            "0, 100 ms, 200 ms, 300 ms, 400 ms, 500 ms, 600 ms, 700 ms"
        );
        assert_eq!(shown(2_600), "0, 0.5 s, 1 s, 1.5 s, 2 s, 2.5 s");
        assert_eq!(shown(40_000_000), "0, 2 h, 4 h, 6 h, 8 h, 10 h");
    }
}
