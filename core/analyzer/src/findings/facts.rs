//! What the allocators' counters say beside a series of levels. They never make growth out of none; they
//! decide between *leak* and *growing*.

use super::decision::Allocations;
use crate::evidence::{Evidence, Statistic};
use crate::row::RunRow;
use crate::rules::Rules;
use crate::series::RunSeries;

/// In at least this share of the runs the live allocations must grow, to be nearly all.
const NEARLY_ALL: f64 = 0.8;

/// What the allocators' counters say: how many allocations are alive after each run.
///
/// **Raises** where they grew in nearly every run, and in the last quarter still: what is
/// collected adds allocations, while ragged sizes and caches of a fixed number of buffers
/// do not. Chance would do so with the p of the sign test (Dixon & Mood 1946, J. Am.
/// Stat. Assoc. 41), which is held against `p_bound`; a run in which they stayed counts
/// against it.
///
/// **Lowers** where they never grew after the first run: then the same few allocations are
/// replaced by larger ones (a concatenation, a cache that doubles), which is growth with an owner.
pub(super) fn of_counters(
    series: &RunSeries<'_>,
    p_bound: f64,
    rules: &Rules,
) -> Option<(Allocations, Evidence)> {
    let deltas: Option<Vec<i128>> = series.rows.iter().map(|row| delta(row)).collect();
    let deltas = deltas.filter(|deltas| deltas.len() >= rules.min_runs)?;
    let n = deltas.len();
    let n_grown = deltas.iter().filter(|delta| **delta > 0).count();
    let needed = n_needed(n, p_bound);
    let is_growing_still = deltas[n - n / 4..].iter().any(|delta| *delta > 0);
    let total: i128 = deltas.iter().sum();
    // The first run may have made what the later ones replace.
    let later = deltas.get(1..).unwrap_or_default();
    let is_replaced = later.iter().all(|delta| *delta <= 0);
    let allocations = if n_grown >= needed && is_growing_still && total > 0 {
        Allocations::Grew { n_grown, n_runs: n }
    } else if is_replaced {
        Allocations::Stayed { n_runs: n }
    } else {
        Allocations::Unclear
    };
    let figure = Evidence {
        holds: matches!(allocations, Allocations::Grew { .. }),
        ..Evidence::met(Statistic::LiveAllocations, n_grown as f64, needed as f64)
    };
    Some((allocations, figure))
}

/// How many allocations the run left alive, more than it found.
fn delta(row: &RunRow) -> Option<i128> {
    let (before, after) = row.n_blocks;
    Some(i128::from(after?) - i128::from(before?))
}

/// In how many of `n` runs a counter must grow: nearly all, and more than chance explains;
/// `n + 1` where not even all of them are.
fn n_needed(n: usize, p_bound: f64) -> usize {
    let nearly_all = (NEARLY_ALL * n as f64).ceil() as usize;
    let mut needed = n + 1;
    for p in sign_tests(n) {
        if p > p_bound || needed == nearly_all {
            break;
        }
        needed -= 1;
    }
    needed
}

/// How often at least `n`, at least `n − 1`, … of `n` fair coins show heads.
fn sign_tests(n: usize) -> impl Iterator<Item = f64> {
    // The probability of exactly k heads, from that of k + 1; as logarithms, which reach further.
    let mut log_p = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    (0..=n).rev().map(move |k| {
        if k < n {
            log_p += ((k + 1) as f64).ln() - ((n - k) as f64).ln();
        }
        tail += log_p.exp();
        tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_counts_coins() {
        let check = |n_grown: usize, n: usize, expected: f64| {
            let found = sign_tests(n)
                .nth(n - n_grown)
                .expect("no more than there are");
            assert!((found - expected).abs() < 1e-9, "{found}");
        };
        check(0, 5, 1.0);
        check(5, 5, 1.0 / 32.0);
        check(8, 9, 10.0 / 512.0);
        check(2000, 2000, 0.0);
    }

    #[test]
    fn many_series_need_more_runs_that_grow() {
        assert_eq!(n_needed(9, 0.05), 8);
        assert_eq!(n_needed(9, 0.01), 9);
        assert_eq!(n_needed(9, 0.001), 10);
        assert_eq!(n_needed(100, 0.001), 80);
    }
}
