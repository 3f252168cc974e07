//! The shape of a series.

use gpumem_model::units::Bytes;

use super::GrowthShape;
use crate::trend;

/// The shape of levels that do not keep growing, and how many of their first
/// steps moved, where they stay since.
pub(crate) fn settling(levels: &[Bytes], min_growth: Bytes) -> (GrowthShape, Option<usize>) {
    let values: Vec<f64> = levels.iter().map(|level| level.as_f64()).collect();
    (shape(&values, min_growth, false), n_moving(&values))
}

/// After how many steps the level stays within a twentieth of the range around
/// its end; `None` where it still moves in the last third.
fn n_moving(values: &[f64]) -> Option<usize> {
    let last = *values.last()?;
    let (least, most) = trend::extremes(values);
    let range = most - least;
    let n_moving = values
        .iter()
        .rposition(|value| (value - last).abs() > 0.05 * range)
        .map_or(0, |idx| idx + 1);
    (n_moving * 3 < values.len() * 2).then_some(n_moving)
}

pub(super) fn shape(values: &[f64], min_growth: Bytes, grows: bool) -> GrowthShape {
    let n = values.len();
    let (least, most) = trend::extremes(values);
    let range = most - least;
    if n < 2 || range < min_growth.as_f64().max(1.0) {
        return GrowthShape::Flat;
    }
    // Of the floor: what lies above it comes and goes.
    let (start, _) = trend::extremes(&values[..n.div_ceil(10)]);
    let (end, _) = trend::extremes(&values[n - n.div_ceil(4)..]);
    let rise = end - start;
    if grows {
        let half = trend::quantile(&values[n * 2 / 5..n.div_ceil(2)], 0.5);
        return if half - start < 0.15 * rise {
            GrowthShape::LateGrowth
        } else {
            GrowthShape::Growth
        };
    }
    if rise < 0.25 * range {
        let n_high = values.iter().filter(|&&value| value > least + 0.5 * range);
        return if n_high.count() * 6 < n {
            GrowthShape::Spikes
        } else {
            GrowthShape::Sawtooth
        };
    }
    let jumps = values.windows(2).map(|pair| (pair[1] - pair[0]) / rise);
    let n_jumps = jumps.clone().filter(|&jump| jump > 0.15).count();
    let is_one_jump = n_jumps == 1 && jumps.fold(0.0, f64::max) > 0.5;
    let settled = values.iter().position(|&value| value >= end - 0.1 * rise);
    match settled {
        Some(idx) if idx * 3 <= n && idx <= n_jumps => GrowthShape::WarmUp,
        _ if is_one_jump => GrowthShape::Step,
        Some(idx) if idx * 3 <= n => GrowthShape::WarmUp,
        _ if n_jumps > 1 => GrowthShape::Staircase,
        Some(idx) if idx * 3 <= n * 2 => GrowthShape::WarmUp,
        _ => GrowthShape::Growth,
    }
}
