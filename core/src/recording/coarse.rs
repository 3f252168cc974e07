//! Fewer points of a series, for a look from afar.

use super::Points;
use super::points::Column;
use crate::sort;

impl Points {
    /// At most ten of every `stride` points: the ends, and the lowest and the highest of
    /// each level. No extreme is lost.
    #[must_use]
    pub fn coarse(&self, stride: usize) -> Self {
        let stride = stride.max(1);
        let mut kept = Vec::with_capacity(4 * self.len().div_ceil(stride));
        for from in (0..self.len()).step_by(stride) {
            let to = self.len().min(from + stride);
            let n_before = kept.len();
            kept.extend([from, to - 1]);
            for column in self.levels() {
                let levels = column.as_slice().get(from..to).unwrap_or_default();
                let extremes = extremes(levels).into_iter().flatten();
                kept.extend(extremes.map(|idx| from + idx));
            }
            sort::sort_indices(&mut kept[n_before..], &|a, b| a.cmp(&b));
        }
        kept.dedup();
        self.picked(&kept)
    }
}

/// Where the first lowest and the last highest level is.
fn extremes(levels: &[u64]) -> Option<[usize; 2]> {
    let mut least = (Column::UNKNOWN, 0);
    let mut most = (0, 0);
    for (idx, level) in levels.iter().copied().enumerate() {
        if level < least.0 {
            least = (level, idx);
        }
        if level >= most.0 && level != Column::UNKNOWN {
            most = (level, idx);
        }
    }
    (least.0 != Column::UNKNOWN).then_some([least.1, most.1])
}

#[cfg(test)]
mod tests {
    use crate::recording::{DeviceIdx, Points, RunIdx, Series};
    use crate::testing::{run, session};

    #[test]
    fn from_afar_the_extremes_are_where_they_were() {
        let (recording, _) = session(&[("a()", &[run(0).peak(4000).sampled(10_001)])]);
        let points = recording.samples(RunIdx(0), DeviceIdx(0), &Series::Sampled);
        let of = |points: &Points| {
            let highest = points.iter().max_by_key(|point| point.device_used);
            (points.first(), points.last(), highest)
        };
        let coarse = points.coarse(64);
        assert_eq!(of(&coarse), of(points));
        assert!(10 * coarse.len() < points.len());
    }
}
