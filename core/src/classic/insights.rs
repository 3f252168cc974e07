//! Insights of the classic rules, in their order.

use super::statistics::{correlation, mean, quantile, regression, sample_deviation};
use super::{Call, Calls, Figure, Figures, Thresholds};

const N_NAMED: usize = 5;
const MANY_SLOW: usize = 3;
const VARIABLE: f64 = 0.5;
const MIN_FOR_CORRELATION: usize = 10;
const STRONG: f64 = 0.7;
const MIN_FOR_TREND: usize = 5;
const TREND_R: f64 = 0.5;
const TREND_P: f64 = 0.05;
const FAST_GROWTH: f64 = 1e6;

/// How much an insight matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impact {
    /// Somewhat.
    Medium,
    /// Much.
    High,
}

impl Impact {
    /// The name in Python and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What the calls' times and sizes tell together.
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
    /// What it rests on.
    pub data: Figures,
    /// What to do about it.
    pub recommendations: Vec<String>,
}

/// Every insight into the calls, and what could not be told: one sentence each.
pub fn insights(calls: &Calls, thresholds: &Thresholds) -> (Vec<Insight>, Vec<String>) {
    let mut insights = Vec::new();
    let mut left_out = Vec::new();
    if calls.n_left_out() > 0 {
        left_out.push(format!(
            "{} calls are left out: a figure of theirs is not a finite number",
            calls.n_left_out()
        ));
    }
    let times = times_by_function(calls, thresholds);
    insights.extend(slow(calls, &times, thresholds));
    insights.extend(variable(calls, &times));
    insights.extend(intensive(calls, thresholds));
    insights.extend(correlated(calls));
    match trend(calls) {
        Ok(trend) => insights.extend(trend),
        Err(words) => left_out.push(words),
    }
    (insights, left_out)
}

/// The times of each function with enough calls.
fn times_by_function(calls: &Calls, thresholds: &Thresholds) -> Vec<(usize, Vec<f64>)> {
    let mut times = vec![Vec::new(); calls.functions().len()];
    for call in calls.calls() {
        times[call.function as usize].push(call.seconds);
    }
    let enough = |times: &[f64]| times.len() as f64 >= thresholds.min_calls_for_analysis;
    times
        .into_iter()
        .enumerate()
        .filter(|(_, times)| !times.is_empty() && enough(times))
        .collect()
}

fn slow(calls: &Calls, times: &[(usize, Vec<f64>)], thresholds: &Thresholds) -> Option<Insight> {
    let mut means: Vec<(usize, f64)> = times
        .iter()
        .map(|(function, times)| (*function, mean(times)))
        .collect();
    let mut values: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
    let threshold = quantile(&mut values, thresholds.slow_function_percentile);
    means.sort_by(|a, b| b.1.total_cmp(&a.1));
    let slow: Vec<String> = means
        .iter()
        .filter(|(_, mean)| *mean > threshold)
        .map(|(function, _)| calls.name(*function))
        .collect();
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
                Figure::Names(slow.into_iter().take(N_NAMED).collect()),
            ),
            ("slowest_function", Figure::Name(slowest)),
            ("slowest_time", Figure::Real(slowest_time)),
            ("threshold", Figure::Real(threshold)),
        ],
        recommendations: vec![
            "look for transfers between host and device, and for `.item()` in loops".to_owned(),
        ],
    })
}

fn variable(calls: &Calls, times: &[(usize, Vec<f64>)]) -> Option<Insight> {
    let variable: Vec<(usize, f64)> = times
        .iter()
        .filter(|(_, times)| times.len() > 1)
        .map(|(function, times)| (*function, sample_deviation(times) / mean(times)))
        .filter(|(_, coefficient)| *coefficient > VARIABLE)
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
                Figure::Names(
                    variable
                        .iter()
                        .map(|(function, _)| calls.name(*function))
                        .collect(),
                ),
            ),
            ("highest_variance", Figure::Named(name, most.1)),
        ],
        recommendations: vec![
            "time after a warm-up, and see whether the sizes of the inputs vary".to_owned(),
        ],
    })
}

fn intensive(calls: &Calls, thresholds: &Thresholds) -> Option<Insight> {
    let rates = || {
        calls
            .calls()
            .iter()
            .filter(|call| call.seconds > 0.0)
            .map(|call| (call.function as usize, call.allocated / call.seconds))
    };
    let mut values: Vec<f64> = rates().map(|(_, rate)| rate).collect();
    let threshold = quantile(&mut values, thresholds.high_memory_percentile);
    let mut is_intensive = vec![false; calls.functions().len()];
    for (function, _) in rates().filter(|(_, rate)| *rate > threshold) {
        is_intensive[function] = true;
    }
    let functions: Vec<String> = (0..is_intensive.len())
        .filter(|function| is_intensive[*function])
        .map(|function| calls.name(function))
        .take(N_NAMED)
        .collect();
    (!functions.is_empty()).then(|| Insight {
        category: "memory_efficiency",
        title: "Memory-intensive functions",
        description: format!("{} allocate the most per second", functions.join(", ")),
        impact: Impact::Medium,
        confidence: 0.75,
        data: vec![
            ("memory_intensive_functions", Figure::Names(functions)),
            ("threshold_ratio", Figure::Real(threshold)),
        ],
        recommendations: vec![
            "smaller batches, gradient accumulation or a smaller data type lower the peak"
                .to_owned(),
        ],
    })
}

fn correlated(calls: &Calls) -> Option<Insight> {
    let calls = calls.calls();
    if calls.len() < MIN_FOR_CORRELATION {
        return None;
    }
    let times: Vec<f64> = calls.iter().map(|call| call.seconds).collect();
    let sizes: Vec<f64> = calls.iter().map(|call| call.allocated).collect();
    let r = correlation(&times, &sizes).filter(|r| r.abs() > STRONG)?;
    let sign = if r > 0.0 { "positive" } else { "negative" };
    Some(Insight {
        category: "correlation",
        title: "Time follows memory",
        description: format!("time and allocated memory correlate by {r:.2}"),
        impact: Impact::Medium,
        confidence: 0.8,
        data: vec![
            ("correlation_coefficient", Figure::Real(r)),
            ("interpretation", Figure::Name(sign.to_owned())),
        ],
        recommendations: vec!["allocate once outside what is called often".to_owned()],
    })
}

fn trend(calls: &Calls) -> Result<Option<Insight>, String> {
    let mut calls: Vec<&Call> = calls.calls().iter().collect();
    if calls.len() < MIN_FOR_TREND {
        return Ok(None);
    }
    calls.sort_by(|a, b| a.began_at.total_cmp(&b.began_at));
    let start = calls[0].began_at;
    let times: Vec<f64> = calls.iter().map(|call| call.began_at - start).collect();
    let levels: Vec<f64> = calls.iter().map(|call| call.after).collect();
    let Some(line) = regression(&times, &levels) else {
        return Err(format!(
            "no trend over time: all {} calls began at {start} s, time does not advance",
            calls.len()
        ));
    };
    if line.slope <= 0.0 || line.r.abs() <= TREND_R || line.p >= TREND_P {
        return Ok(None);
    }
    Ok(Some(Insight {
        category: "temporal",
        title: "Growing memory",
        description: format!("allocated grows by {:.2} MiB/s", line.slope / 1_048_576.0),
        impact: if line.slope > FAST_GROWTH {
            Impact::High
        } else {
            Impact::Medium
        },
        confidence: line.r.abs(),
        data: vec![
            ("growth_rate", Figure::Real(line.slope)),
            ("correlation", Figure::Real(line.r)),
            ("p_value", Figure::Real(line.p)),
            ("time_span", Figure::Real(times[times.len() - 1])),
        ],
        recommendations: vec!["see which function's calls end higher than they begin".to_owned()],
    }))
}
