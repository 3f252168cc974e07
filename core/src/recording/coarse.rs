//! A recording with fewer samples, for a look from afar.

use super::{Recording, Sample};
use crate::units::Bytes;

impl Recording {
    /// How many points there are in all its series.
    pub fn n_samples(&self) -> usize {
        self.samples.values().map(Vec::len).sum()
    }

    /// The same recording with at most ten of every `stride` points of a series:
    /// the ends, and the lowest and the highest of each level. No extreme is lost.
    #[must_use]
    pub fn coarse(&self, stride: usize) -> Self {
        let thinned = |points: &Vec<Sample>| {
            let chunks = points.chunks(stride.max(1));
            chunks.flat_map(extremes).collect()
        };
        let samples = self.samples.iter();
        Self {
            header: self.header.clone(),
            devices: self.devices.clone(),
            cells: self.cells.clone(),
            runs: self.runs.clone(),
            traces: self.traces.clone(),
            held: self.held.clone(),
            finish: self.finish,
            samples: samples
                .map(|(key, points)| (key.clone(), thinned(points)))
                .collect(),
        }
    }
}

/// The ends and the extremes of a few points, in their order.
fn extremes(points: &[Sample]) -> impl Iterator<Item = Sample> + use<> {
    let lanes: [fn(&Sample) -> Option<Bytes>; 4] = [
        |point| point.allocated,
        |point| point.reserved,
        |point| point.device_used,
        |point| point.process_used,
    ];
    let mut kept = vec![0, points.len().saturating_sub(1)];
    for lane in lanes {
        let known = || (0..points.len()).filter(|idx| lane(&points[*idx]).is_some());
        kept.extend(known().min_by_key(|idx| lane(&points[*idx])));
        kept.extend(known().max_by_key(|idx| lane(&points[*idx])));
    }
    kept.sort_unstable();
    kept.dedup();
    let kept: Vec<Sample> = kept
        .iter()
        .filter_map(|idx| points.get(*idx))
        .copied()
        .collect();
    kept.into_iter()
}

#[cfg(test)]
mod tests {
    use crate::recording::{DeviceIdx, RunIdx, Series};
    use crate::testing::{run, session};

    #[test]
    fn from_afar_the_extremes_are_where_they_were() {
        let (recording, _) = session(&[("a()", &[run(0).peak(4000).sampled(10_001)])]);
        let coarse = recording.coarse(64);
        let of = |recording: &super::Recording| {
            let points = recording.samples(RunIdx(0), DeviceIdx(0), &Series::Sampled);
            let highest = points.iter().max_by_key(|point| point.device_used);
            (
                points[0],
                points[points.len() - 1],
                *highest.expect("points"),
            )
        };
        assert_eq!(of(&coarse), of(&recording));
        assert!(coarse.n_samples() <= 10 * 10_001_usize.div_ceil(64));
    }
}
