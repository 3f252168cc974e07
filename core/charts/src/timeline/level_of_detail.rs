//! Samples reduced for zooming out.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::scale::Stretch;
use gpumem_model::recording::{DeviceIdx, Points, Recording, RunIdx, Series};

/// Points per bucket in the first level, and buckets per bucket in each next one.
const STRIDE: usize = 16;
/// The buckets of the last one have 65,536 points.
const N_LEVELS: usize = 4;

/// The samples of a recording at several levels of detail: about as many points as there are pixels draw
/// the same picture as a million.
///
/// A level of a series is computed when it is first drawn. An empty value draws every sample.
#[derive(Debug, Default)]
pub struct LevelsOfDetail(HashMap<(RunIdx, DeviceIdx, Series), [OnceCell<Points>; N_LEVELS]>);

impl LevelsOfDetail {
    /// The levels of detail of a recording, none of them computed yet.
    pub fn new(recording: &Recording) -> Self {
        let series = recording.all_samples();
        let long = series.filter(|(.., points)| points.len() > STRIDE);
        let empty = long.map(|(run, device, series, _)| {
            let levels = [const { OnceCell::new() }; N_LEVELS];
            ((run, device, series.clone()), levels)
        });
        Self(empty.collect())
    }

    /// As many points of a run's series as a picture of what is in view needs: no bucket is wider
    /// than a pixel.
    pub(super) fn get<'a>(
        &'a self,
        all: &'a Points,
        series: &Series,
        device: DeviceIdx,
        stretch: &Stretch,
    ) -> &'a Points {
        let in_view = all.between(stretch.from, stretch.to).len();
        let points_a_pixel = in_view as f64 / stretch.width().max(1.0);
        if points_a_pixel < STRIDE as f64 {
            return all;
        }
        let Some(levels) = self.0.get(&(stretch.run, device, series.clone())) else {
            return all;
        };
        let (mut stride, mut level) = (STRIDE, 0);
        while level + 1 < N_LEVELS && points_a_pixel >= (stride * STRIDE) as f64 {
            stride *= STRIDE;
            level += 1;
        }
        levels[level].get_or_init(|| all.downsampled(stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::testing::{run, session};
    use gpumem_model::units::Nanos;

    /// How many of 4,096 samples of a second are drawn at this width.
    #[track_caller]
    fn check(millis: (u64, u64), width: f64, n_drawn: std::ops::Range<usize>) {
        let (recording, _) = session(&[("a()", &[run(0).peak(4000).sampled(4096).seconds(1)])]);
        let (idx, device, series, points) = recording.all_samples().next().expect("one series");
        let started = recording.run(idx).started;
        let stretch = Stretch {
            run: idx,
            from: started + Nanos::millis(millis.0),
            to: started + Nanos::millis(millis.1),
            left: 0.0,
            right: width,
        };
        let levels = LevelsOfDetail::new(&recording);
        let drawn = levels.get(points, series, device, &stretch);
        let n = drawn.between(stretch.from, stretch.to).len();
        assert!(n_drawn.contains(&n), "{n} points are drawn");
        let none = LevelsOfDetail::default();
        assert_eq!(none.get(points, series, device, &stretch), points);
    }

    #[test]
    fn the_closer_the_zoom_the_more_is_drawn() {
        check((0, 1000), 400.0, 4096..4097);
        check((0, 1000), 100.0, 500..1200);
        check((0, 1000), 1.0, 2..7);
        check((500, 520), 100.0, 80..84);
    }
}
