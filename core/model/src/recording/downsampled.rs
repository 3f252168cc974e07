//! Fewer points of a series, for one level of detail.

use super::Points;
use super::points::Column;
use crate::extremes::Extremes;

impl Points {
    /// At most ten of every `stride` points: the ends, and the lowest and the highest of
    /// each level. No extreme is lost.
    #[must_use]
    pub fn downsampled(&self, stride: usize) -> Self {
        let stride = stride.max(1);
        let mut kept = Vec::with_capacity(4 * self.len().div_ceil(stride));
        for from in (0..self.len()).step_by(stride) {
            let to = self.len().min(from + stride);
            let n_before = kept.len();
            kept.extend_from_slice(&[from, to - 1]);
            for column in self.levels() {
                let levels = column.as_slice().get(from..to).unwrap_or_default();
                let known = levels.iter().copied().zip(from..);
                let known = known.filter(|(level, _)| *level != Column::UNKNOWN);
                if let Some(extremes) = Extremes::from_points(known) {
                    kept.extend_from_slice(&extremes.places());
                }
            }
            kept[n_before..].sort_unstable();
        }
        kept.dedup();
        self.picked(&kept)
    }
}

#[cfg(test)]
mod tests {
    use crate::recording::{DeviceIdx, Points, RunIdx, Series};
    use crate::testing::{recorded, run};

    #[test]
    fn downsampled_the_extremes_are_where_they_were() {
        let recording = recorded(&[("a()", &[run(0).peak(4000).sampled(10_001)])]);
        let points = recording.samples(RunIdx(0), DeviceIdx(0), &Series::Sampled);
        let of = |points: &Points| {
            let highest = points.iter().max_by_key(|point| point.device_used);
            (points.first(), points.last(), highest)
        };
        let downsampled = points.downsampled(64);
        assert_eq!(of(&downsampled), of(points));
        assert!(10 * downsampled.len() < points.len());
    }
}
