//! Patterns of the classic rules, in their order.

use super::calls::is_usable;
use super::statistics::{mean, quantile};
use super::{Calls, ClassicFigure, ClassicThresholds, Figures, MB, Severity};

const LEAK: f64 = 100.0 * MB;
const CRITICAL_LEAK: f64 = 1024.0 * MB;
const CRITICAL_FRAGMENTATION: f64 = 0.5;
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
    /// The functions that show it.
    pub functions: Vec<String>,
    /// The figures behind it.
    pub metrics: Figures,
    /// What to do.
    pub suggestions: Vec<String>,
}

/// Every pattern of the calls, in the original's order: leaks, fragmentation, inefficient allocation,
/// spikes, repeated allocations.
pub fn patterns(calls: &Calls, thresholds: &ClassicThresholds) -> Vec<Pattern> {
    let mut patterns = leaks(calls, thresholds);
    patterns.extend(fragmentation(calls, thresholds));
    patterns.extend(inefficient(calls, thresholds));
    patterns.extend(spikes(calls));
    patterns.extend(repeated(calls));
    patterns
}

/// What one function's calls did to the level.
#[derive(Clone, Copy, Default)]
struct GrowthPattern {
    n_calls: usize,
    n_grown: usize,
    diff: f64,
}

fn leaks(calls: &Calls, thresholds: &ClassicThresholds) -> Vec<Pattern> {
    let mut growths = vec![GrowthPattern::default(); calls.n_functions()];
    for (function, diff) in calls.usable(&calls.diff) {
        let growth = &mut growths[function];
        growth.n_calls += 1;
        growth.n_grown += usize::from(diff > 0.0);
        growth.diff += diff;
    }
    let leaks = growths.iter().enumerate().filter_map(|(function, growth)| {
        let n = growth.n_calls as f64;
        let ratio = growth.n_grown as f64 / n;
        let leaks = n >= thresholds.min_calls_for_analysis
            && ratio > thresholds.memory_leak_ratio
            && growth.diff > LEAK;
        leaks.then(|| leak(calls.name(function), growth, ratio))
    });
    leaks.collect()
}

fn leak(name: String, growth: &GrowthPattern, ratio: f64) -> Pattern {
    let mib = growth.diff / MB;
    Pattern {
        kind: "memory_leak",
        description: format!(
            "{name} ended {mib:.0} MiB higher over {} calls",
            growth.n_calls
        ),
        severity: if growth.diff > CRITICAL_LEAK {
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
            ("total_memory_growth", ClassicFigure::Whole(growth.diff)),
            (
                "average_growth_per_call",
                ClassicFigure::Real(growth.diff / growth.n_calls as f64),
            ),
            ("positive_growth_ratio", ClassicFigure::Real(ratio)),
            ("call_count", ClassicFigure::Whole(growth.n_calls as f64)),
        ],
    }
}

fn fragmentation(calls: &Calls, thresholds: &ClassicThresholds) -> Option<Pattern> {
    let mut ratios = Vec::with_capacity(calls.len());
    let mut is_high = vec![false; calls.n_functions()];
    let levels = calls.both(&calls.reserved, &calls.after);
    for (function, reserved, after) in levels.filter(|(_, reserved, _)| *reserved > 0.0) {
        let ratio = (reserved - after) / reserved;
        if !is_usable(ratio) {
            continue;
        }
        is_high[function] |= ratio > thresholds.fragmentation_ratio;
        ratios.push(ratio);
    }
    let average = mean(&ratios);
    if ratios.is_empty() || average <= thresholds.fragmentation_ratio {
        return None;
    }
    let functions = calls.names((0..is_high.len()).filter(|function| is_high[*function]));
    Some(Pattern {
        kind: "fragmentation",
        description: format!("{:.0} % of reserved was not allocated", 100.0 * average),
        severity: if average > CRITICAL_FRAGMENTATION {
            Severity::Critical
        } else {
            Severity::Warning
        },
        metrics: vec![
            ("average_fragmentation", ClassicFigure::Real(average)),
            (
                "max_fragmentation",
                ClassicFigure::Real(ratios.into_iter().fold(f64::NEG_INFINITY, f64::max)),
            ),
            (
                "high_fragmentation_functions",
                ClassicFigure::Whole(functions.len() as f64),
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

fn inefficient(calls: &Calls, thresholds: &ClassicThresholds) -> Option<Pattern> {
    let mut ratios: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut known = vec![None; calls.n_functions()];
    let figures = calls.both(&calls.rise, &calls.allocated);
    for (function, rise, allocated) in figures.filter(|(_, rise, size)| *rise > 0.0 && *size > 0.0)
    {
        let ratio = rise / allocated;
        if ratio < thresholds.inefficient_allocation_ratio {
            let idx = *known[function].get_or_insert_with(|| {
                ratios.push((function, Vec::new()));
                ratios.len() - 1
            });
            ratios[idx].1.push(ratio);
        }
    }
    let means: Vec<(usize, f64)> = ratios
        .into_iter()
        .filter(|(_, ratios)| ratios.len() as f64 >= thresholds.min_calls_for_analysis)
        .map(|(function, ratios)| (function, mean(&ratios)))
        .collect();
    if means.is_empty() {
        return None;
    }
    let efficiencies: Vec<f64> = means.iter().map(|(_, ratio)| *ratio).collect();
    let functions = calls.names(means.iter().map(|(function, _)| *function));
    Some(Pattern {
        kind: "inefficient_allocation",
        description: format!("{} allocate more than they use", functions.join(", ")),
        severity: Severity::Warning,
        metrics: vec![
            (
                "inefficient_function_count",
                ClassicFigure::Whole(functions.len() as f64),
            ),
            (
                "average_efficiency",
                ClassicFigure::Real(mean(&efficiencies)),
            ),
        ],
        functions,
        suggestions: vec![
            "allocate once and write into it (`out=`), or allocate what is needed".to_owned(),
        ],
    })
}

fn spikes(calls: &Calls) -> Option<Pattern> {
    let sizes = calls.usable(&calls.allocated);
    let positive = sizes.filter(|(_, size)| *size > 0.0);
    let mut values: Vec<f64> = positive.clone().map(|(_, size)| size).collect();
    if values.len() < MIN_SPIKE_CALLS {
        return None;
    }
    let lower = quantile(&mut values, 0.25);
    let upper = quantile(&mut values, 0.75);
    let threshold = upper + 1.5 * (upper - lower);
    let mut spikes_of = vec![0_usize; calls.n_functions()];
    for (function, _) in positive.filter(|(_, size)| *size > threshold) {
        spikes_of[function] += 1;
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
        functions: calls.names((0..spikes_of.len()).filter(|function| spikes_of[*function] > 0)),
        metrics: vec![
            ("spike_count", ClassicFigure::Whole(n_spikes as f64)),
            ("spike_threshold", ClassicFigure::Real(threshold)),
            ("max_allocation", ClassicFigure::Whole(most)),
            (
                "median_allocation",
                ClassicFigure::Real(quantile(&mut values, 0.5)),
            ),
        ],
        suggestions: vec![
            "split what those calls do into smaller batches".to_owned(),
            "free large temporaries before the next large step".to_owned(),
        ],
    })
}

fn repeated(calls: &Calls) -> Option<Pattern> {
    let mut sums = vec![(0_usize, 0.0); calls.n_functions()];
    for (function, size) in calls.usable(&calls.allocated) {
        let (n_calls, allocated) = &mut sums[function];
        *n_calls += 1;
        *allocated += size;
    }
    let mut repeated: Vec<(usize, f64)> = sums
        .into_iter()
        .enumerate()
        .filter(|(_, (n_calls, _))| *n_calls >= MIN_REPEATS)
        .filter(|(_, (n_calls, allocated))| allocated / (*n_calls as f64) < SMALL)
        .map(|(function, (_, allocated))| (function, allocated))
        .collect();
    if repeated.is_empty() {
        return None;
    }
    repeated.sort_by(|a, b| b.1.total_cmp(&a.1));
    let largest = repeated.iter().map(|(function, _)| *function);
    let named = calls.names(largest.take(N_NAMED));
    let total: f64 = repeated.iter().map(|(_, allocated)| allocated).sum();
    Some(Pattern {
        kind: "repeated_allocations",
        description: format!("{} functions allocate little and often", repeated.len()),
        severity: Severity::Info,
        functions: named.clone(),
        metrics: vec![
            (
                "function_count",
                ClassicFigure::Whole(repeated.len() as f64),
            ),
            ("total_impact_functions", ClassicFigure::Names(named)),
            ("total_memory_from_repeated", ClassicFigure::Whole(total)),
        ],
        suggestions: vec!["reuse a buffer, or do several of these calls in one batch".to_owned()],
    })
}
