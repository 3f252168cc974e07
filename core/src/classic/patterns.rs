//! Patterns of the classic rules, in their order.

use super::statistics::{mean, quantile};
use super::{Calls, Figure, Figures, Severity, Thresholds};

/// The classic megabyte: 2^20 bytes.
const MB: f64 = 1_048_576.0;
const LEAK: f64 = 100.0 * MB;
const CRITICAL_LEAK: f64 = 1024.0 * MB;
const CRITICAL_FRAGMENTATION: f64 = 0.5;
const MIN_INEFFICIENT_CALLS: usize = 3;
const MIN_SPIKE_CALLS: usize = 3;
const CRITICAL_SPIKES: usize = 5;
const MIN_REPEATS: usize = 10;
const SMALL: f64 = 50.0 * MB;
const N_NAMED: usize = 5;

/// A pattern of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// `memory_leak`, `fragmentation`, `inefficient_allocation`, `memory_spikes`
    /// or `repeated_allocations`.
    pub kind: &'static str,
    /// One sentence.
    pub description: String,
    /// How bad it is.
    pub severity: Severity,
    /// Which functions show it.
    pub functions: Vec<String>,
    /// What it rests on.
    pub metrics: Figures,
    /// What to do about it.
    pub suggestions: Vec<String>,
}

/// Every pattern of the calls.
pub fn patterns(calls: &Calls, thresholds: &Thresholds) -> Vec<Pattern> {
    let by_function = by_function(calls);
    let mut patterns = leaks(calls, &by_function, thresholds);
    patterns.extend(fragmentation(calls, thresholds));
    patterns.extend(inefficient(calls, thresholds));
    patterns.extend(spikes(calls));
    patterns.extend(repeated(calls, &by_function));
    patterns
}

/// Sums over one function's calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) n_calls: usize,
    n_grown: usize,
    diff: f64,
    allocated: f64,
}

pub(super) fn by_function(calls: &Calls) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); calls.functions().len()];
    for call in calls.calls() {
        let sums = &mut sums[call.function as usize];
        let diff = call.diff();
        sums.n_calls += 1;
        sums.n_grown += usize::from(diff > 0.0);
        sums.diff += diff;
        sums.allocated += call.allocated;
    }
    sums
}

fn leaks(calls: &Calls, by_function: &[Sums], thresholds: &Thresholds) -> Vec<Pattern> {
    by_function
        .iter()
        .enumerate()
        .filter_map(|(function, sums)| {
            let n = sums.n_calls as f64;
            let ratio = sums.n_grown as f64 / n;
            let leaks = n >= thresholds.min_calls_for_analysis
                && ratio > thresholds.memory_leak_ratio
                && sums.diff > LEAK;
            leaks.then(|| leak(calls.name(function), sums, ratio))
        })
        .collect()
}

fn leak(name: String, sums: &Sums, ratio: f64) -> Pattern {
    let mib = sums.diff / MB;
    Pattern {
        kind: "memory_leak",
        description: format!(
            "{name} ended {mib:.0} MiB higher over {} calls",
            sums.n_calls
        ),
        severity: if sums.diff > CRITICAL_LEAK {
            Severity::Critical
        } else {
            Severity::Warning
        },
        suggestions: vec![
            format!("find what keeps the results of {name}: a list, a cache, a closure"),
            "keep numbers (`.item()` of a scalar) or detached tensors, not tensors with graphs"
                .to_owned(),
            "check it with gpumem's own verdict: `gpumem.report().findings`".to_owned(),
        ],
        functions: vec![name],
        metrics: vec![
            ("total_memory_growth", Figure::Whole(sums.diff)),
            (
                "average_growth_per_call",
                Figure::Real(sums.diff / sums.n_calls as f64),
            ),
            ("positive_growth_ratio", Figure::Real(ratio)),
            ("call_count", Figure::Whole(sums.n_calls as f64)),
        ],
    }
}

fn fragmentation(calls: &Calls, thresholds: &Thresholds) -> Option<Pattern> {
    let mut ratios = Vec::new();
    let mut is_high = vec![false; calls.functions().len()];
    for call in calls
        .calls()
        .iter()
        .filter(|call| call.reserved_after > 0.0)
    {
        let ratio = (call.reserved_after - call.after) / call.reserved_after;
        is_high[call.function as usize] |= ratio > thresholds.fragmentation_ratio;
        ratios.push(ratio);
    }
    let average = mean(&ratios);
    if ratios.is_empty() || average <= thresholds.fragmentation_ratio {
        return None;
    }
    let functions: Vec<String> = (0..is_high.len())
        .filter(|function| is_high[*function])
        .map(|function| calls.name(function))
        .collect();
    Some(Pattern {
        kind: "fragmentation",
        description: format!("{:.0} % of reserved was not allocated", 100.0 * average),
        severity: if average > CRITICAL_FRAGMENTATION {
            Severity::Critical
        } else {
            Severity::Warning
        },
        metrics: vec![
            ("average_fragmentation", Figure::Real(average)),
            (
                "max_fragmentation",
                Figure::Real(ratios.into_iter().fold(f64::NEG_INFINITY, f64::max)),
            ),
            (
                "high_fragmentation_functions",
                Figure::Whole(functions.len() as f64),
            ),
        ],
        functions,
        suggestions: vec![
            "most of it may be cache: `empty_cache()` shows how much can be given back".to_owned(),
            "keep the sizes of tensors alike from call to call, so that freed blocks fit again"
                .to_owned(),
        ],
    })
}

fn inefficient(calls: &Calls, thresholds: &Thresholds) -> Option<Pattern> {
    let mut ratios: Vec<(f64, usize)> = vec![(0.0, 0); calls.functions().len()];
    for call in calls.calls() {
        let used = call.peak - call.before;
        let ratio = used / call.allocated;
        let counts =
            call.allocated > 0.0 && used > 0.0 && ratio < thresholds.inefficient_allocation_ratio;
        if counts {
            let (sum, n) = &mut ratios[call.function as usize];
            *sum += ratio;
            *n += 1;
        }
    }
    let means: Vec<(usize, f64)> = ratios
        .into_iter()
        .enumerate()
        .filter(|(_, (_, n))| *n >= MIN_INEFFICIENT_CALLS)
        .map(|(function, (sum, n))| (function, sum / n as f64))
        .collect();
    if means.is_empty() {
        return None;
    }
    let efficiencies: Vec<f64> = means.iter().map(|(_, ratio)| *ratio).collect();
    let functions: Vec<String> = means
        .iter()
        .map(|(function, _)| calls.name(*function))
        .collect();
    Some(Pattern {
        kind: "inefficient_allocation",
        description: format!("{} allocate more than they use", functions.join(", ")),
        severity: Severity::Warning,
        metrics: vec![
            (
                "inefficient_function_count",
                Figure::Whole(functions.len() as f64),
            ),
            ("average_efficiency", Figure::Real(mean(&efficiencies))),
        ],
        functions,
        suggestions: vec![
            "allocate once and write into it (`out=`), or allocate what is needed".to_owned(),
        ],
    })
}

fn spikes(calls: &Calls) -> Option<Pattern> {
    let positive = || calls.calls().iter().filter(|call| call.allocated > 0.0);
    let mut values: Vec<f64> = positive().map(|call| call.allocated).collect();
    if values.len() < MIN_SPIKE_CALLS {
        return None;
    }
    let lower = quantile(&mut values, 0.25);
    let upper = quantile(&mut values, 0.75);
    let threshold = upper + 1.5 * (upper - lower);
    let mut spikes_of = vec![0_usize; calls.functions().len()];
    for call in positive().filter(|call| call.allocated > threshold) {
        spikes_of[call.function as usize] += 1;
    }
    let n_spikes: usize = spikes_of.iter().sum();
    if n_spikes == 0 {
        return None;
    }
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Pattern {
        kind: "memory_spikes",
        description: format!("{n_spikes} calls allocated far more than the rest"),
        severity: if n_spikes < CRITICAL_SPIKES {
            Severity::Warning
        } else {
            Severity::Critical
        },
        functions: (0..spikes_of.len())
            .filter(|function| spikes_of[*function] > 0)
            .map(|function| calls.name(function))
            .collect(),
        metrics: vec![
            ("spike_count", Figure::Whole(n_spikes as f64)),
            ("spike_threshold", Figure::Real(threshold)),
            ("max_allocation", Figure::Whole(most)),
            (
                "median_allocation",
                Figure::Real(quantile(&mut values, 0.5)),
            ),
        ],
        suggestions: vec![
            "split what those calls do into smaller batches".to_owned(),
            "free large temporaries before the next large step".to_owned(),
        ],
    })
}

fn repeated(calls: &Calls, by_function: &[Sums]) -> Option<Pattern> {
    let mut repeated: Vec<(usize, f64)> = by_function
        .iter()
        .enumerate()
        .filter(|(_, sums)| sums.n_calls >= MIN_REPEATS)
        .filter(|(_, sums)| sums.allocated / (sums.n_calls as f64) < SMALL)
        .map(|(function, sums)| (function, sums.allocated))
        .collect();
    if repeated.is_empty() {
        return None;
    }
    repeated.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named: Vec<String> = repeated
        .iter()
        .take(N_NAMED)
        .map(|(function, _)| calls.name(*function))
        .collect();
    let total: f64 = repeated.iter().map(|(_, allocated)| allocated).sum();
    Some(Pattern {
        kind: "repeated_allocations",
        description: format!("{} functions allocate little and often", repeated.len()),
        severity: Severity::Info,
        functions: named.clone(),
        metrics: vec![
            ("function_count", Figure::Whole(repeated.len() as f64)),
            ("total_impact_functions", Figure::Names(named)),
            ("total_memory_from_repeated", Figure::Whole(total)),
        ],
        suggestions: vec!["reuse a buffer, or do several of these calls in one batch".to_owned()],
    })
}
