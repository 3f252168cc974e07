//! The evidence rule against labels: on series made here, on the labelled set of `tests/data/leaks`,
//! and on those of the folder that `GPUMEM_LEAKS` names (files `*.jsonl.gz`).

#[path = "../../examples/samples.rs"]
mod samples;

use std::io::Read;

use flate2::read::GzDecoder;
use gpumem_analyzer::{GrowthVerdict, Rules, classify_growth};
use gpumem_model::units::Bytes;

/// How often a verdict and a label met.
#[derive(Debug, Default)]
struct Confusion {
    true_alarms: f64,
    false_alarms: f64,
    missed: f64,
    quiet: f64,
}

impl Confusion {
    fn count(&mut self, is_leak: bool, alarm: bool) {
        *match (is_leak, alarm) {
            (true, true) => &mut self.true_alarms,
            (false, true) => &mut self.false_alarms,
            (true, false) => &mut self.missed,
            (false, false) => &mut self.quiet,
        } += 1.0;
    }

    fn precision(&self) -> f64 {
        self.true_alarms / (self.true_alarms + self.false_alarms)
    }

    fn recall(&self) -> f64 {
        self.true_alarms / (self.true_alarms + self.missed)
    }
}

fn verdict(levels: &[f64]) -> GrowthVerdict {
    let levels: Vec<Bytes> = levels
        .iter()
        .map(|&level| Bytes::new(level as u64))
        .collect();
    let rules = Rules::default();
    classify_growth(&levels, rules.min_growth, &rules).state
}

/// xorshift64*: the same series on every machine.
struct Noise(u64);

impl Noise {
    /// Uniform in [0, 1).
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const MIB: f64 = 1_048_576.0;

/// 60 levels of `level` (MiB by run, with noise from 0 to 1), 40 times over;
/// how many of them are called a leak.
fn n_leaks_of(level: impl Fn(f64, f64) -> f64) -> usize {
    let series = |seed: u64| -> Vec<f64> {
        let mut noise = Noise(0x9E37_79B9_7F4A_7C15 ^ (seed + 1));
        (0..60)
            .map(|run| MIB * level(f64::from(run), noise.next()))
            .collect()
    };
    (0..40)
        .filter(|&seed| verdict(&series(seed)) == GrowthVerdict::Leak)
        .count()
}

#[test]
fn healthy_series_raise_no_alarm() {
    let check = |name: &str, n_leaks: usize| assert!(n_leaks <= 1, "{name}: {n_leaks} of 40");
    check("noise", n_leaks_of(|_, noise| 900.0 + 30.0 * noise));
    check(
        "warm-up",
        n_leaks_of(|run, noise| 900.0 - 600.0 * (-run / 4.0).exp() + 8.0 * noise),
    );
    check(
        "step",
        n_leaks_of(|run, noise| if run < 30.0 { 300.0 } else { 800.0 } + 8.0 * noise),
    );
    check(
        "ragged sawtooth",
        n_leaks_of(|run, noise| 300.0 + 90.0 * (run % 7.0) * (0.5 + noise)),
    );
    check(
        "spikes",
        n_leaks_of(|_, noise| if noise > 0.95 { 4000.0 } else { 300.0 + noise }),
    );
}

#[test]
fn leaks_are_named() {
    let check = |name: &str, n_leaks: usize| assert!(n_leaks >= 38, "{name}: {n_leaks} of 40");
    check(
        "line",
        n_leaks_of(|run, noise| 300.0 + 4.0 * run + 8.0 * noise),
    );
    check("slow", n_leaks_of(|run, noise| 300.0 + 0.5 * run + noise));
    check(
        "saw",
        n_leaks_of(|run, noise| 300.0 + 9.0 * run + 30.0 * (run % 5.0) * noise),
    );
    check(
        "behind a warm-up",
        n_leaks_of(|run, noise| 900.0 - 600.0 * (-run / 3.0).exp() + 2.0 * run + 4.0 * noise),
    );
    check(
        "in some runs",
        n_leaks_of(|run, _| 300.0 + 20.0 * (run / 3.0).floor()),
    );
}

#[test]
fn labelled_sets_reach_their_figures() {
    let mut leak = Confusion::default();
    let mut leak_or_suspected = Confusion::default();
    for path in samples::files("leaks", "GPUMEM_LEAKS", "gz") {
        let mut text = String::new();
        let file = std::fs::File::open(&path).expect("a readable set");
        GzDecoder::new(file)
            .read_to_string(&mut text)
            .expect("a gzipped set");
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("one object a line");
            let levels: Vec<f64> = row["allocated"]
                .as_array()
                .expect("a list of levels")
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .collect();
            if levels.len() < Rules::default().min_runs {
                continue;
            }
            let is_leak = row["leak"].as_bool().expect("a label");
            let state = verdict(&levels);
            leak.count(is_leak, state == GrowthVerdict::Leak);
            leak_or_suspected.count(
                is_leak,
                matches!(state, GrowthVerdict::Leak | GrowthVerdict::Suspected),
            );
        }
    }
    for (name, found) in [("leak", &leak), ("leak or suspected", &leak_or_suspected)] {
        eprintln!(
            "{name}: precision {:.3}, recall {:.3}",
            found.precision(),
            found.recall()
        );
    }
    assert!(
        leak.precision() >= 0.98 && leak.recall() >= 0.86,
        "{leak:?}"
    );
    assert!(
        leak_or_suspected.precision() >= 0.96 && leak_or_suspected.recall() >= 0.91,
        "{leak_or_suspected:?}"
    );
}
