//! The statistics of the classic rules, as numpy and scipy define them.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Arithmetic mean, rounded once: equal values have that value as their mean, so
/// that they exceed no threshold which they equal. NaN of nothing.
///
/// Sum and rest as in Knuth's `TwoSum` (The Art of Computer Programming 2, 4.2.2).
pub(super) fn mean(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (mut sum, mut rest) = (0.0_f64, 0.0_f64);
    for &value in values {
        let next = sum + value;
        let from_value = next - sum;
        rest += (sum - (next - from_value)) + (value - from_value);
        sum = next;
    }
    let mean = sum / n;
    let correction = (-mean).mul_add(n, sum) + rest;
    if correction.is_finite() {
        mean + correction / n
    } else {
        mean
    }
}

/// Arithmetic mean, added pairwise; NaN of nothing.
fn pairwise_mean(values: &[f64]) -> f64 {
    pairwise_sum(values) / values.len() as f64
}

/// A sum whose error grows with the logarithm of the length: halves above 128
/// values, eight interleaved sums below. numpy adds in this order, and near a
/// perfect line the last bit of a correlation decides over the digits of its p.
fn pairwise_sum(values: &[f64]) -> f64 {
    match values.len() {
        0..8 => values.iter().fold(0.0, |sum, value| sum + value),
        8..=128 => {
            let rows = values.chunks_exact(8);
            let rest = rows.remainder();
            let mut sums = [0.0; 8];
            for row in rows {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
            let sum = ((sums[0] + sums[1]) + (sums[2] + sums[3]))
                + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
            rest.iter().fold(sum, |sum, value| sum + value)
        }
        n => {
            let half = n / 2;
            let (head, tail) = values.split_at(half - half % 8);
            pairwise_sum(head) + pairwise_sum(tail)
        }
    }
}

/// Sample standard deviation (n − 1).
pub(super) fn sample_deviation(values: &[f64]) -> f64 {
    (squares(values) / (values.len() as f64 - 1.0)).sqrt()
}

fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

/// Quantile with linear interpolation (type 7 of Hyndman & Fan 1996, Am. Stat. 50).
///
/// Reorders `values`; NaN of nothing.
pub(super) fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let position = share.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let idx = (position as usize).min(values.len() - 1);
    let (_, below, above) = values.select_nth_unstable_by(idx, f64::total_cmp);
    let below = *below;
    let above = above.iter().copied().fold(f64::INFINITY, f64::min);
    let fraction = position - idx as f64;
    if fraction > 0.0 && above.is_finite() {
        below + (above - below) * fraction
    } else {
        below
    }
}

/// A least-squares line through points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FittedLine {
    pub(super) slope: f64,
    /// Pearson's correlation.
    pub(super) r: f64,
    /// Two-sided p of a slope of zero: t with n − 2 degrees of freedom.
    pub(super) p: f64,
}

/// Pearson's correlation; `None` where one side does not vary.
pub(super) fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let [xx, yy, xy] = moments(x, y);
    let scale = (xx * yy).sqrt();
    (scale > 0.0).then(|| (xy / scale).clamp(-1.0, 1.0))
}

/// The line through the points; `None` where `x` does not vary.
pub(super) fn regression(x: &[f64], y: &[f64]) -> Option<FittedLine> {
    let [xx, _, xy] = moments(x, y);
    if x.len() < 3 || xx <= 0.0 {
        return None;
    }
    let r = correlation(x, y).unwrap_or(0.0);
    Some(FittedLine {
        slope: xy / xx,
        r,
        p: p_of_correlation(r, x.len()),
    })
}

/// Means of squares and of products about the means: xx, yy, xy; fused
/// multiply-adds one after another, as numpy's matrix product has them.
fn moments(x: &[f64], y: &[f64]) -> [f64; 3] {
    let (mean_x, mean_y) = (pairwise_mean(x), pairwise_mean(y));
    let mut sums = [0.0; 3];
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        sums[0] = dx.mul_add(dx, sums[0]);
        sums[1] = dy.mul_add(dy, sums[1]);
        sums[2] = dx.mul_add(dy, sums[2]);
    }
    let share = 1.0 / x.len() as f64;
    sums.map(|sum| sum * share)
}

fn p_of_correlation(r: f64, n: usize) -> f64 {
    let freedom = n as f64 - 2.0;
    // As scipy guards the perfect line: t stays finite.
    let tiny = 1e-20;
    let t = r * (freedom / ((1.0 - r + tiny) * (1.0 + r + tiny))).sqrt();
    let distribution = StudentsT::new(0.0, 1.0, freedom).expect("n is at least 3");
    2.0 * distribution.sf(t.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64) {
        let error = (found - expected).abs() / expected.abs().max(1e-300);
        assert!(error < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn equal_values_are_their_own_mean() {
        for n in 1..200 {
            for value in [0.1, 0.3, 1e-9, 1.0 / 3.0] {
                assert_eq!(mean(&vec![value; n]).to_bits(), f64::to_bits(value), "{n}");
            }
        }
        assert!(mean(&[]).is_nan());
        assert!(mean(&[f64::MAX, f64::MAX]).is_infinite());
    }

    #[test]
    fn quantiles_interpolate() {
        close(quantile(&mut [4.0, 1.0, 3.0, 2.0], 0.75), 3.25);
        close(quantile(&mut [7.0], 0.9), 7.0);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    #[test]
    fn a_line_has_its_slope_and_its_p() {
        let line = regression(&[0.0, 1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 2.0, 4.0, 5.0]);
        let line = line.expect("x varies");
        close(line.slope, 1.0);
        close(line.r, 0.962_250_448_649_376_3);
        close(line.p, 0.008_754_412_359_024_433);
        assert_eq!(regression(&[1.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]), None);
    }
}
