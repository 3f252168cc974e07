//! Insights of the classic rules, in their order.

use std::borrow::Cow;
use std::ops::Range;

use super::calls::is_usable;
use super::statistics::{correlation, mean, quantile, regression, sample_deviation};
use super::{Calls, ClassicFigure, ClassicThresholds, Figures, MB};

use gpumem_model::named;

const N_NAMED: usize = 5;
const MANY_SLOW: usize = 3;
const VARIABLE: f64 = 0.5;
const MIN_FOR_CORRELATION: usize = 10;
const STRONG: f64 = 0.7;
const MIN_FOR_TREND: usize = 5;
const TREND_R: f64 = 0.5;
const TREND_P: f64 = 0.05;
const FAST_GROWTH: f64 = 1e6;

named! {
    /// How much an [`Insight`] matters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Impact {
        /// Somewhat.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

/// What times and sizes of the calls show together.
#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    /// `execution_time`, `memory_efficiency`, `correlation` or `temporal`.
    pub category: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// One sentence.
    pub description: String,
    /// How much it matters.
    pub impact: Impact,
    /// From 0 to 1.
    pub confidence: f64,
    /// The figures behind it.
    pub data: Figures,
    /// What to do.
    pub recommendations: Vec<String>,
}

/// Every insight into the calls, and one sentence for each that could not be computed.
pub fn insights(calls: &Calls, thresholds: &ClassicThresholds) -> (Vec<Insight>, Vec<String>) {
    let times = Times::new(calls, thresholds);
    let found = [
        slow(calls, &times, thresholds),
        variable(calls, &times),
        intensive(calls, thresholds),
        correlated(calls),
    ];
    let mut insights: Vec<Insight> = found.into_iter().flatten().collect();
    let mut left_out = Vec::from_iter(times.unjudged());
    match trend(calls) {
        Ok(trend) => insights.extend(trend),
        Err(words) => left_out.push(words),
    }
    (insights, left_out)
}

/// The times of each function with enough calls.
struct Times {
    /// Of all functions, one after the other.
    seconds: Vec<f64>,
    functions: Vec<FunctionTimes>,
}

struct FunctionTimes {
    function: usize,
    /// Where its times are.
    range: Range<usize>,
    mean: f64,
}

impl Times {
    fn new(calls: &Calls, thresholds: &ClassicThresholds) -> Self {
        let mut ends = vec![0; calls.n_functions()];
        for (function, _) in calls.usable(&calls.seconds) {
            ends[function] += 1;
        }
        let mut n = 0;
        for end in &mut ends {
            // Where its times begin now, where they end once all are placed.
            n += std::mem::replace(end, n);
        }
        let mut seconds = vec![0.0; n];
        for (function, time) in calls.usable(&calls.seconds) {
            seconds[ends[function]] = time;
            ends[function] += 1;
        }
        let mut begin = 0;
        let ranges = ends
            .into_iter()
            .map(|end| std::mem::replace(&mut begin, end)..end);
        let functions = ranges
            .enumerate()
            .filter(|(_, range)| !range.is_empty())
            .filter(|(_, range)| range.len() as f64 >= thresholds.min_calls_for_analysis)
            .map(|(function, range)| FunctionTimes {
                function,
                mean: mean(&seconds[range.clone()]),
                range,
            });
        Self {
            functions: functions.collect(),
            seconds,
        }
    }

    fn durations(&self, times: &FunctionTimes) -> &[f64] {
        &self.seconds[times.range.clone()]
    }

    /// Scatter is given as a share of the mean.
    fn unjudged(&self) -> Option<String> {
        let n = self.functions.iter().filter(|it| it.mean == 0.0).count();
        (n > 0).then(|| {
            format!("times of {n} functions: zero on average, so they scatter by no share of it")
        })
    }
}

fn slow(calls: &Calls, times: &Times, thresholds: &ClassicThresholds) -> Option<Insight> {
    let means = times.functions.iter().map(|it| (it.function, it.mean));
    let mut means: Vec<(usize, f64)> = means.collect();
    let mut values: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
    let threshold = quantile(&mut values, thresholds.slow_function_percentile);
    means.sort_by(|one, other| other.1.total_cmp(&one.1));
    let slow = means.iter().take_while(|(_, mean)| *mean > threshold);
    let slow = calls.names(slow.map(|(function, _)| *function));
    let (slowest, slowest_time) = *means.first().filter(|_| !slow.is_empty())?;
    let slowest = calls.name(slowest);
    Some(Insight {
        category: "execution_time",
        title: "Slow functions",
        description: format!("{slowest} takes {slowest_time:.4} s on average, the longest"),
        impact: if slow.len() > MANY_SLOW {
            Impact::High
        } else {
            Impact::Medium
        },
        confidence: 0.8,
        data: vec![
            (
                "slow_functions",
                ClassicFigure::Names(slow.into_iter().take(N_NAMED).collect()),
            ),
            ("slowest_function", ClassicFigure::Name(slowest)),
            ("slowest_time", ClassicFigure::Real(slowest_time)),
            ("threshold", ClassicFigure::Real(threshold)),
        ],
        recommendations: vec![
            "look for transfers between host and device, and for `.item()` in loops".to_owned(),
        ],
    })
}

fn variable(calls: &Calls, times: &Times) -> Option<Insight> {
    let variable: Vec<(usize, f64)> = times
        .functions
        .iter()
        .filter(|it| it.range.len() > 1 && it.mean > 0.0)
        .map(|it| (it.function, sample_deviation(times.durations(it)) / it.mean))
        .filter(|(_, coefficient)| *coefficient > VARIABLE && is_usable(*coefficient))
        .collect();
    // The first of equals, as a maximum over a list takes it.
    let most = variable
        .iter()
        .copied()
        .reduce(|most, next| if next.1 > most.1 { next } else { most })?;
    let name = calls.name(most.0);
    Some(Insight {
        category: "execution_time",
        title: "Inconsistent execution times",
        description: format!(
            "the times of {name} scatter by {:.0} % of their mean",
            100.0 * most.1
        ),
        impact: Impact::Medium,
        confidence: 0.7,
        data: vec![
            (
                "variable_functions",
                ClassicFigure::Names(calls.names(variable.iter().map(|(function, _)| *function))),
            ),
            ("highest_variance", ClassicFigure::Named(name, most.1)),
        ],
        recommendations: vec![
            "time after a warm-up, and see whether the sizes of the inputs vary".to_owned(),
        ],
    })
}

fn intensive(calls: &Calls, thresholds: &ClassicThresholds) -> Option<Insight> {
    let rates = calls
        .both(&calls.seconds, &calls.allocated)
        .filter(|(_, seconds, _)| *seconds > 0.0)
        .map(|(function, seconds, size)| (function, size / seconds))
        .filter(|(_, rate)| is_usable(*rate));
    let mut values: Vec<f64> = rates.clone().map(|(_, rate)| rate).collect();
    let threshold = quantile(&mut values, thresholds.high_memory_percentile);
    let mut is_intensive = vec![false; calls.n_functions()];
    for (function, _) in rates.filter(|(_, rate)| *rate > threshold) {
        is_intensive[function] = true;
    }
    let intensive = (0..is_intensive.len()).filter(|function| is_intensive[*function]);
    let functions = calls.names(intensive.take(N_NAMED));
    (!functions.is_empty()).then(|| Insight {
        category: "memory_efficiency",
        title: "Memory-intensive functions",
        description: format!("{} allocate the most per second", functions.join(", ")),
        impact: Impact::Medium,
        confidence: 0.75,
        data: vec![
            (
                "memory_intensive_functions",
                ClassicFigure::Names(functions),
            ),
            ("threshold_ratio", ClassicFigure::Real(threshold)),
        ],
        recommendations: vec![
            "smaller batches, gradient accumulation or a smaller data type lower the peak"
                .to_owned(),
        ],
    })
}

fn correlated(calls: &Calls) -> Option<Insight> {
    let (times, sizes) = usable_pairs(&calls.seconds, &calls.allocated);
    if times.len() < MIN_FOR_CORRELATION {
        return None;
    }
    let r = correlation(&times, &sizes).filter(|r| r.abs() > STRONG)?;
    let sign = if r > 0.0 { "positive" } else { "negative" };
    Some(Insight {
        category: "correlation",
        title: "Time follows memory",
        description: format!("time and allocated memory correlate by {r:.2}"),
        impact: Impact::Medium,
        confidence: 0.8,
        data: vec![
            ("correlation_coefficient", ClassicFigure::Real(r)),
            ("interpretation", ClassicFigure::Name(sign.to_owned())),
        ],
        recommendations: vec!["allocate once outside what is called often".to_owned()],
    })
}

fn trend(calls: &Calls) -> Result<Option<Insight>, String> {
    let (times, levels) = usable_pairs(&calls.began_at, &calls.after);
    let n = times.len();
    if n < MIN_FOR_TREND {
        return Ok(None);
    }
    let (mut times, levels) = by_time(times, levels);
    let start = times[0];
    for time in times.to_mut() {
        *time -= start;
    }
    let Some(line) = regression(&times, &levels) else {
        return Err(format!(
            "trend over time: all {n} calls began at {start} s, time does not advance"
        ));
    };
    if line.slope <= 0.0 || line.r.abs() <= TREND_R || line.p >= TREND_P {
        return Ok(None);
    }
    Ok(Some(Insight {
        category: "temporal",
        title: "Growing memory",
        description: format!("allocated grows by {:.2} MiB/s", line.slope / MB),
        impact: if line.slope > FAST_GROWTH {
            Impact::High
        } else {
            Impact::Medium
        },
        confidence: line.r.abs(),
        data: vec![
            ("growth_rate", ClassicFigure::Real(line.slope)),
            ("correlation", ClassicFigure::Real(line.r)),
            ("p_value", ClassicFigure::Real(line.p)),
            ("time_span", ClassicFigure::Real(times[times.len() - 1])),
        ],
        recommendations: vec!["see which function's calls end higher than they begin".to_owned()],
    }))
}

/// Two columns without the rows in which one of them is not usable.
fn usable_pairs<'a>(x: &'a [f64], y: &'a [f64]) -> (Cow<'a, [f64]>, Cow<'a, [f64]>) {
    if x.iter().chain(y).all(|figure| is_usable(*figure)) {
        return (x.into(), y.into());
    }
    let rows = x.iter().copied().zip(y.iter().copied());
    let (x, y): (Vec<f64>, Vec<f64>) = rows.filter(|(x, y)| is_usable(*x) && is_usable(*y)).unzip();
    (x.into(), y.into())
}

/// Two columns in the order of the first; calls are mostly made in it already.
fn by_time<'a>(times: Cow<'a, [f64]>, levels: Cow<'a, [f64]>) -> (Cow<'a, [f64]>, Cow<'a, [f64]>) {
    if times.is_sorted() {
        return (times, levels);
    }
    let rows = times.iter().copied().zip(levels.iter().copied());
    let mut rows: Vec<(f64, f64)> = rows.collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (times, levels): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
    (times.into(), levels.into())
}
