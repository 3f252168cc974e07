//! Statistics of a trend in a short, noisy series.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF, Normal};

/// Series longer than this are judged on the minima of equal blocks: pairwise
/// statistics cost the square of it.
pub(super) const MAX_POINTS: usize = 256;

/// How far every interval reaches, in standard deviations: its two-sided confidence is 95 %.
const REACH: f64 = 1.959_963_984_540_054;

/// Kendall's S of a series against time with its variance, and Sen's slope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trend {
    /// z of the Mann-Kendall test, variance corrected for autocorrelation
    /// (Hamed & Rao 1998, J. Hydrology 204).
    pub(super) z: f64,
    /// Median of the slopes between all pairs (Theil 1950, Sen 1968), per point.
    pub(super) slope: f64,
}

/// The trend of `values`, none of which is NaN; `None` for fewer than three.
pub(super) fn trend(values: &[f64]) -> Option<Trend> {
    let found = TrendStatistics::from_values(values)?;
    Some(Trend {
        z: found.z(),
        slope: found.slope,
    })
}

/// Sen's slope with its interval (Sen 1968, J. Am. Stat. Assoc. 63); `None` for fewer than three.
pub(super) fn slope(values: &[f64]) -> Option<(f64, (f64, f64))> {
    let found = TrendStatistics::from_values(values)?;
    Some((found.slope, found.interval()))
}

/// What both rest on.
struct TrendStatistics {
    slopes: Slopes,
    s: f64,
    slope: f64,
    /// Of S.
    variance: f64,
}

impl TrendStatistics {
    fn from_values(values: &[f64]) -> Option<Self> {
        let first = *values.first().filter(|_| values.len() >= 3)?;
        // Most series are flat: all of their slopes are zero, and there is nothing to be sorted.
        if values.iter().all(|value| value.total_cmp(&first).is_eq()) {
            return Some(Self {
                slopes: Slopes::default(),
                s: 0.0,
                slope: 0.0,
                variance: 0.0,
            });
        }
        let (mut slopes, s) = Slopes::between_pairs(values);
        let slope = slopes.median();
        Some(Self {
            slopes,
            s,
            slope,
            variance: kendall_variance(values) * autocorrelation_factor(values, slope),
        })
    }

    /// z of S, corrected for continuity.
    fn z(&self) -> f64 {
        if self.variance <= 0.0 || self.s == 0.0 {
            return 0.0;
        }
        (self.s - self.s.signum()) / self.variance.sqrt()
    }

    fn interval(mut self) -> (f64, f64) {
        let reach = REACH * self.variance.max(0.0).sqrt();
        let n = self.slopes.len() as f64;
        let rank = |rank: f64| rank.max(0.0) as usize;
        let low = rank(((n - reach) / 2.0).floor());
        let high = rank(f64::midpoint(n, reach).ceil());
        (self.slopes.at(low), self.slopes.at(high))
    }
}

/// The slopes between all pairs of points.
#[derive(Debug, Default)]
struct Slopes {
    all: Vec<f64>,
    /// All before this place are no higher than the one there, all behind it no lower.
    split: usize,
}

impl Slopes {
    /// With Kendall's S: how many rise less how many fall.
    ///
    /// Of 256 points there are 32,640 pairs, and several series for each cell: plain loops, over
    /// all pairs of one distance at a time.
    fn between_pairs(values: &[f64]) -> (Self, f64) {
        let n = values.len();
        let mut all = Vec::with_capacity(n * (n - 1) / 2);
        let mut s = 0;
        for apart in 1..n {
            let distance = apart as f64;
            let rises = values[apart..].iter().zip(values).map(|(b, a)| b - a);
            s += rises
                .clone()
                .map(|rise| i32::from(rise > 0.0) - i32::from(rise < 0.0))
                .sum::<i32>();
            all.extend(rises.map(|rise| rise / distance));
        }
        (Self { all, split: 0 }, f64::from(s))
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    /// The value between the lower and the higher half.
    fn median(&mut self) -> f64 {
        let n = self.all.len();
        self.split = n / 2;
        let upper = nth(&mut self.all, self.split);
        let lower = &self.all[..self.split];
        if !n.is_multiple_of(2) {
            return upper;
        }
        let below = lower
            .iter()
            .copied()
            .max_by(f64::total_cmp)
            .unwrap_or(upper);
        f64::midpoint(below, upper)
    }

    /// The one at this rank, or the highest; zero where there is none.
    fn at(&mut self, rank: usize) -> f64 {
        let Some(rank) = self.all.len().checked_sub(1).map(|last| rank.min(last)) else {
            return 0.0;
        };
        let (half, rank) = if rank < self.split {
            (&mut self.all[..self.split], rank)
        } else {
            (&mut self.all[self.split..], rank - self.split)
        };
        nth(half, rank)
    }
}

/// One-sided p of a standard normal z.
pub(super) fn p_above(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// The largest p that still counts when `p_values`, in order, are looked at together, so
/// that at most a twentieth of what is called growth is chance (Benjamini &
/// Hochberg 1995, J. R. Stat. Soc. B 57).
pub(super) fn p_bound(p_values: &[f64]) -> f64 {
    const FALSE_DISCOVERIES: f64 = 0.05;
    let n = p_values.len() as f64;
    let allowed = |rank: usize| FALSE_DISCOVERIES * (rank + 1) as f64 / n;
    (0..p_values.len())
        .rev()
        .find(|&rank| p_values[rank] <= allowed(rank))
        .map_or(FALSE_DISCOVERIES / n.max(1.0), allowed)
}

/// t-statistic of the increments between the minima of at most six blocks: a
/// level that keeps rising raises every block's minimum, however ragged it is
/// above. `None` where fewer than three blocks can be made.
pub(super) fn block_t(values: &[f64]) -> Option<f64> {
    let minima = block_minima(values, 6.min(values.len() / 2));
    if minima.len() < 3 {
        return None;
    }
    let increments: Vec<f64> = minima.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = mean(&increments);
    let sum_of_squares: f64 = increments.iter().map(|d| (d - mean).powi(2)).sum();
    let n = increments.len() as f64;
    let deviation = (sum_of_squares / (n - 1.0)).sqrt();
    Some(ratio(mean * n.sqrt(), deviation))
}

/// The least level from each point on: what is never given back.
pub(super) fn envelope(values: &[f64]) -> Vec<f64> {
    let mut least = f64::INFINITY;
    let mut envelope: Vec<f64> = values
        .iter()
        .rev()
        .map(|&value| {
            least = least.min(value);
            least
        })
        .collect();
    envelope.reverse();
    envelope
}

/// The share of a non-decreasing series' growth that each of its quarters
/// carries; zeros where it does not grow.
pub(super) fn quarter_shares(envelope: &[f64]) -> [f64; 4] {
    let at = |quarter: usize| envelope[(envelope.len() - 1) * quarter / 4];
    let total = at(4) - at(0);
    [0, 1, 2, 3].map(|quarter| {
        if total > 0.0 {
            (at(quarter + 1) - at(quarter)) / total
        } else {
            0.0
        }
    })
}

/// How many times a non-decreasing series rises.
pub(super) fn n_rises(envelope: &[f64]) -> usize {
    envelope.windows(2).filter(|pair| pair[1] > pair[0]).count()
}

/// Minima of `n_blocks` blocks of nearly equal length.
pub(super) fn block_minima(values: &[f64], n_blocks: usize) -> Vec<f64> {
    let bound = |block: usize| values.len() * block / n_blocks;
    (0..n_blocks)
        .map(|block| &values[bound(block)..bound(block + 1)])
        .map(|block| block.iter().copied().fold(f64::INFINITY, f64::min))
        .collect()
}

/// The value at `share` of the sorted series, the lower of two; 0 where there is none.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    nth(&mut values.to_vec(), (share * last as f64) as usize)
}

/// The lowest and the highest value; zeros where there is none.
pub(super) fn extremes(values: &[f64]) -> (f64, f64) {
    let first = values.first().copied().unwrap_or_default();
    let wider = |(least, most): (f64, f64), value: &f64| (least.min(*value), most.max(*value));
    values.iter().fold((first, first), wider)
}

/// Sen's slope over the whole series, in standard deviations: √12 for a straight line.
pub(super) fn relative_rise(values: &[f64], slope: f64) -> f64 {
    slope * values.len() as f64 / deviation(values).max(1.0)
}

/// What the slope of the last third is of the whole series' slope; 1 where that is no slope.
pub(super) fn late_share(values: &[f64], of_whole: f64) -> f64 {
    let late = slope(&values[values.len() - values.len() / 3..]);
    late.filter(|_| of_whole > 0.0)
        .map_or(1.0, |(late, _)| late / of_whole)
}

/// t-statistic of the quadratic term of a least-squares parabola (Draper & Smith, *Applied Regression
/// Analysis*, 1998): below zero, the rise slows down. The quadratic regressor is orthogonal to the others.
pub(super) fn curvature_t(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let times = || (0..values.len()).map(|idx| idx as f64 - middle);
    let square = (n * n - 1.0) / 12.0;
    let mean = mean(values);
    let (mut line, mut parabola, mut lines, mut parabolas) = (0.0, 0.0, 0.0, 0.0);
    for (t, y) in times().zip(values) {
        let bend = t * t - square;
        line += t * (y - mean);
        parabola += bend * (y - mean);
        lines += t * t;
        parabolas += bend * bend;
    }
    let (rate, bend) = (line / lines, parabola / parabolas);
    let left = times().zip(values).map(|(t, y)| {
        let fitted = mean + rate * t + bend * (t * t - square);
        (y - fitted).powi(2)
    });
    let deviation = (left.sum::<f64>() / (n - 3.0)).max(0.0).sqrt();
    ratio(bend, deviation / parabolas.sqrt())
}

/// Standard deviation over the series (n).
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let sum_of_squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (sum_of_squares / values.len() as f64).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn ratio(value: f64, scale: f64) -> f64 {
    match value.total_cmp(&0.0) {
        _ if scale > 0.0 => value / scale,
        Ordering::Greater => f64::INFINITY,
        Ordering::Less => f64::NEG_INFINITY,
        Ordering::Equal => 0.0,
    }
}

/// Variance of S where the series has no trend, corrected for ties.
fn kendall_variance(values: &[f64]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let of_ties: f64 = in_order(values)
        .chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq())
        .map(|tied| term(tied.len() as f64))
        .sum();
    (term(values.len() as f64) - of_ties) / 18.0
}

/// n / n* of Hamed & Rao: how much autocorrelated ranks inflate the variance of S.
fn autocorrelation_factor(values: &[f64], slope: f64) -> f64 {
    let n = values.len();
    let detrended: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(idx, value)| value - slope * idx as f64)
        .collect();
    let ranks = ranks(&detrended);
    let centre = mean(&ranks);
    let centred: Vec<f64> = ranks.iter().map(|rank| rank - centre).collect();
    let power: f64 = centred.iter().map(|rank| rank * rank).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let bound = 1.96 / (n as f64).sqrt();
    let mut weighted = 0.0;
    for lag in 1..n {
        let rho = product(&centred[lag..], &centred) / power;
        if rho.abs() > bound {
            let left = (n - lag) as f64;
            weighted += left * (left - 1.0) * (left - 2.0) * rho;
        }
    }
    let n = n as f64;
    // Negative autocorrelation may not make the test surer than independence does.
    (1.0 + 2.0 * weighted / (n * (n - 1.0) * (n - 2.0))).max(1.0)
}

/// The sum of the products of those at the same places, in four sums side by side: one alone would
/// wait for each addition.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a, a_rest) = a[..n].as_chunks::<4>();
    let (b, b_rest) = b[..n].as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.into_iter().sum::<f64>() + rest
}

/// Ranks from 1, ties sharing their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let order = in_order(values);
    let mut ranks = vec![0.0; values.len()];
    let mut n_before = 0;
    for tied in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        let shared = n_before as f64 + f64::midpoint(tied.len() as f64, 1.0);
        for &idx in tied {
            ranks[idx] = shared;
        }
        n_before += tied.len();
    }
    ranks
}

/// Where the values are, from the lowest to the highest.
fn in_order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    order
}

/// The value that is at `idx` when all are in order.
fn nth(values: &mut [f64], idx: usize) -> f64 {
    *values.select_nth_unstable_by(idx, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize, slope: f64) -> Vec<f64> {
        (0..n).map(|idx| slope * idx as f64).collect()
    }

    #[test]
    fn a_rise_that_slows_down_bends_below_zero() {
        let of =
            |level: fn(f64) -> f64| -> Vec<f64> { (0..30).map(|n| level(f64::from(n))).collect() };
        let ends = of(|n| 10.0 - 10.0 * (-n / 9.0).exp());
        assert!(curvature_t(&ends) < -10.0, "{}", curvature_t(&ends));
        assert!(curvature_t(&of(|n| n * n + n.sin())) > 10.0);
        assert!(curvature_t(&of(|n| n + (7.0 * n).sin())).abs() < 2.0);
        let slope = trend(&ends).expect("long enough").slope;
        assert!(
            late_share(&ends, slope) < 0.4,
            "{}",
            late_share(&ends, slope)
        );
        let straight = of(|n| 3.0 * n);
        assert!((late_share(&straight, 3.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_reach_is_that_of_the_normal_distribution() {
        let reach = Normal::standard().inverse_cdf(0.975);
        assert!((REACH - reach).abs() < 1e-9, "{reach}");
    }

    #[test]
    fn a_straight_line_has_its_own_slope_beyond_doubt() {
        let found = trend(&line(20, 3.0)).expect("enough points");
        assert!((found.slope - 3.0).abs() < 1e-12);
        assert_eq!(slope(&line(20, 3.0)), Some((3.0, (3.0, 3.0))));
        // S = 190, its variance 950: (190 − 1) / √950.
        assert!((found.z - 189.0 / 950_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_constant_has_no_trend() {
        let found = trend(&[5.0; 12]).expect("enough points");
        assert_eq!((found.z, found.slope), (0.0, 0.0));
        assert_eq!(block_t(&[5.0; 12]), Some(0.0));
    }

    #[test]
    fn the_more_series_the_surer_each_must_be() {
        let check = |p_values: &[f64], bound: f64| {
            assert!((p_bound(p_values) - bound).abs() < 1e-12);
        };
        check(&[0.04], 0.05);
        check(&[0.04, 0.9, 0.9, 0.9, 0.9], 0.01);
        check(&[0.001, 0.002, 0.9, 0.9, 0.9], 0.02);
    }

    #[test]
    fn ties_share_their_rank() {
        assert_eq!(ranks(&[10.0, 20.0, 10.0]), [1.5, 3.0, 1.5]);
    }

    #[test]
    fn block_minima_see_below_a_ragged_top() {
        let rising: Vec<f64> = (0..24)
            .map(|idx| f64::from(idx) + if idx % 3 == 0 { 50.0 } else { 0.0 })
            .collect();
        assert!(block_t(&rising).expect("enough points") > 5.0);
        let sawtooth: Vec<f64> = (0..24).map(|idx| f64::from(idx % 4)).collect();
        assert!(block_t(&sawtooth).expect("enough points") < 1.0);
    }

    #[test]
    fn the_envelope_is_what_is_never_given_back() {
        assert_eq!(envelope(&[1.0, 5.0, 2.0, 3.0]), [1.0, 2.0, 2.0, 3.0]);
        assert_eq!(n_rises(&[1.0, 2.0, 2.0, 3.0]), 2);
        assert!(
            quarter_shares(&line(9, 1.0))
                .into_iter()
                .all(|share| (share - 0.25).abs() < 1e-12)
        );
    }
}
