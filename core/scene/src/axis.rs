//! Axes with ticks where people who think in memory and in time expect them.
//!
//! plotters' `Ranged` maps to whole pixels of a backend; these map to the
//! fractions of logical pixels that a scene is made of.

use std::ops::RangeInclusive;

use gpumem_model::units::{ByteDelta, Nanos, Units};

/// Bytes, with ticks at multiples of a power of two: 4, 8, 12 GiB and not 3.7; where sizes
/// are shown in powers of ten, at multiples of 1, 2 and 5 of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ByteAxis {
    /// Bytes at the bottom and at the top.
    range: (f64, f64),
    /// Logical pixels at the bottom and at the top.
    pixels: (f64, f64),
    units: Units,
}

impl ByteAxis {
    /// From `low` to `high` and over zero, in bytes, between two heights of the picture.
    pub fn new(range: RangeInclusive<f64>, bottom: f64, top: f64, units: Units) -> Self {
        let low = range.start().min(0.0);
        // An axis of no length has no scale.
        let high = range.end().max(low + 1.0).max(0.0);
        Self {
            range: (low, high),
            pixels: (bottom, top),
            units,
        }
    }

    /// The height of a number of bytes.
    pub fn y(&self, n_bytes: f64) -> f64 {
        let share = (n_bytes - self.range.0) / (self.range.1 - self.range.0);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// At most `max_ticks` values in bytes, zero among them.
    pub fn ticks(&self, max_ticks: usize) -> Vec<f64> {
        // 1, 2, 4, 8, … or 1, 2, 5, 10, …
        let factors = match self.units {
            Units::Binary => [2.0, 2.0, 2.0],
            Units::Decimal | Units::Bytes => [2.0, 2.5, 2.0],
        };
        let mut factors = factors.into_iter().cycle();
        let mut step = 1.0;
        while self.last_multiple(step) - self.first_multiple(step) >= max_ticks.max(1) as f64 {
            step *= factors.next().unwrap_or(2.0);
        }
        let first = self.first_multiple(step);
        std::iter::successors(Some(first), |n| Some(n + 1.0))
            .take_while(|n| *n <= self.last_multiple(step))
            .map(|n| n * step)
            .collect()
    }

    /// What stands at a tick.
    pub fn label(&self, tick: f64) -> String {
        match ByteDelta::from_f64(tick) {
            ByteDelta::ZERO => "0".to_owned(),
            level => self.units.size(level.magnitude()),
        }
    }

    fn first_multiple(&self, step: f64) -> f64 {
        (self.range.0 / step).ceil()
    }

    fn last_multiple(&self, step: f64) -> f64 {
        (self.range.1 / step).floor()
    }
}

/// What stands at an instant of the recording: `12 s`, `3:20`, `1:02:05`.
pub fn instant_label(at: Nanos) -> String {
    let seconds = at.get() / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match seconds {
        0 if at >= Nanos::millis(1) => format!("{} ms", at.get() / 1_000_000),
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes}:{:02}", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::axis::*;

    const MIB: f64 = 1_048_576.0;
    const GIB: f64 = 1024.0 * MIB;

    #[track_caller]
    fn check(units: Units, range: RangeInclusive<f64>, max_ticks: usize, labels: &[&str]) {
        let axis = ByteAxis::new(range, 100.0, 0.0, units);
        let shown: Vec<String> = axis
            .ticks(max_ticks)
            .iter()
            .map(|tick| axis.label(*tick))
            .collect();
        assert_eq!(shown, labels);
    }

    #[test]
    fn ticks_are_multiples_of_a_power_of_two() {
        let check = |range, max_ticks, labels| check(Units::Binary, range, max_ticks, labels);
        check(
            0.0..=17.0 * GIB,
            5,
            &["0", "4 GiB", "8 GiB", "12 GiB", "16 GiB"],
        );
        check(0.0..=3.0 * MIB, 5, &["0", "1 MiB", "2 MiB", "3 MiB"]);
        check(0.0..=0.0, 5, &["0", "1 B"]);
        check(3.0 * GIB..=3.5 * GIB, 5, &["0", "1 GiB", "2 GiB", "3 GiB"]);
    }

    #[test]
    fn ticks_are_round_in_the_units_that_are_shown() {
        let check = |range, labels| check(Units::Decimal, range, 5, labels);
        check(0.0..=17e9, &["0", "5 GB", "10 GB", "15 GB"]);
        check(0.0..=1.7e6, &["0", "500 kB", "1 MB", "1.5 MB"]);
    }

    #[test]
    fn an_instant_is_shown_as_on_a_clock() {
        let seconds = |n: u64| instant_label(Nanos::millis(1000 * n));
        assert_eq!(seconds(0), "0 s");
        assert_eq!(instant_label(Nanos::millis(250)), "250 ms");
        assert_eq!(seconds(12), "12 s");
        assert_eq!(seconds(200), "3:20");
        assert_eq!(seconds(3725), "1:02:05");
    }

    proptest! {
        #[test]
        fn ticks_are_few_and_inside(low in -1e13..1e13_f64, high in -1e13..1e13_f64, n in 1_usize..12) {
            let axis = ByteAxis::new(low..=high, 100.0, 0.0, Units::Binary);
            let ticks = axis.ticks(n);
            prop_assert!((1..=n).contains(&ticks.len()), "{} ticks", ticks.len());
            prop_assert!(ticks.contains(&0.0));
            prop_assert!(ticks.iter().all(|tick| (-1e-9..=100.0 + 1e-9).contains(&axis.y(*tick))));
        }
    }
}
