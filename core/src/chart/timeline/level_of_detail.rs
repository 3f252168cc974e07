//! Samples reduced for zooming out.

use std::cell::OnceCell;

use super::scale::Stretch;
use crate::recording::{DeviceIdx, Points, Recording, RunIdx, Series};
use crate::vec_map::VecMap;

/// How many times more points in a row are seen as one from the next distance.
const STRIDE: usize = 16;
/// From the last of them 65,536 points are seen as one.
const N_DISTANCES: usize = 4;

/// The samples of a recording at several levels of detail: about as many points as there are pixels draw
/// the same picture as a million.
///
/// A level of a series is computed when it is first drawn. An empty value draws every sample. Example:
/// [`timeline_from`](super::timeline_from).
#[derive(Debug, Default)]
pub struct LevelsOfDetail(VecMap<(RunIdx, DeviceIdx, Series), [OnceCell<Points>; N_DISTANCES]>);

impl LevelsOfDetail {
    /// The levels of detail of a recording, none of them computed yet.
    pub fn of(recording: &Recording) -> Self {
        let series = recording.all_samples();
        let long = series.filter(|(.., points)| points.len() > STRIDE);
        let unseen = long.map(|(run, device, series, _)| {
            let distances = [const { OnceCell::new() }; N_DISTANCES];
            ((run, device, series.clone()), distances)
        });
        Self(unseen.collect())
    }

    /// Of a run's series as many points as a picture of what is in view needs: what is seen as
    /// one point is no wider than a pixel.
    pub(super) fn seen<'a>(
        &'a self,
        near: &'a Points,
        series: &Series,
        device: DeviceIdx,
        stretch: &Stretch,
    ) -> &'a Points {
        let in_view = near.between(stretch.from, stretch.to).len();
        let points_a_pixel = in_view as f64 / stretch.width().max(1.0);
        if points_a_pixel < STRIDE as f64 {
            return near;
        }
        let Some(distances) = self.0.get(&(stretch.run, device, series.clone())) else {
            return near;
        };
        let (mut stride, mut distance) = (STRIDE, 0);
        while distance + 1 < N_DISTANCES && points_a_pixel >= (stride * STRIDE) as f64 {
            stride *= STRIDE;
            distance += 1;
        }
        distances[distance].get_or_init(|| near.coarse(stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, session};
    use crate::units::Nanos;

    /// How many of 4,096 samples of a second are seen on so many pixels.
    #[track_caller]
    fn check(millis: (u64, u64), width: f64, n_seen: std::ops::Range<usize>) {
        let (recording, _) = session(&[("a()", &[run(0).peak(4000).sampled(4096).seconds(1)])]);
        let (idx, device, series, near) = recording.all_samples().next().expect("one series");
        let started = recording.run(idx).started;
        let stretch = Stretch {
            run: idx,
            from: started + Nanos::millis(millis.0),
            to: started + Nanos::millis(millis.1),
            left: 0.0,
            right: width,
        };
        let afar = LevelsOfDetail::of(&recording);
        let seen = afar.seen(near, series, device, &stretch);
        let n = seen.between(stretch.from, stretch.to).len();
        assert!(n_seen.contains(&n), "{n} points are seen");
        let all = LevelsOfDetail::default();
        assert_eq!(all.seen(near, series, device, &stretch), near);
    }

    #[test]
    fn the_nearer_the_more_is_seen() {
        check((0, 1000), 400.0, 4096..4097);
        check((0, 1000), 100.0, 500..1200);
        check((0, 1000), 1.0, 2..7);
        check((500, 520), 100.0, 80..84);
    }
}
