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
            let mut kept = Vec::with_capacity(10 * points.len().div_ceil(stride.max(1)));
            for chunk in points.chunks(stride.max(1)) {
                keep_extremes(chunk, &mut kept);
            }
            kept
        };
        let samples = self.samples.iter();
        Self {
            header: self.header.clone(),
            devices: self.devices.clone(),
            cells: self.cells.clone(),
            runs: self.runs.clone(),
            traces: self.traces.clone(),
            held: self.held.clone(),
            mapped: self.mapped.clone(),
            finish: self.finish,
            samples: samples
                .map(|(key, points)| (key.clone(), thinned(points)))
                .collect(),
        }
    }
}

/// Keeps the ends and the extremes of a few points, in their order.
fn keep_extremes(points: &[Sample], kept: &mut Vec<Sample>) {
    let mut lanes = [
        Extremes::default(),
        Extremes::default(),
        Extremes::default(),
        Extremes::default(),
    ];
    for (idx, point) in points.iter().enumerate() {
        let [allocated, reserved, device_used, process_used] = &mut lanes;
        allocated.look_at(idx, point.allocated);
        reserved.look_at(idx, point.reserved);
        device_used.look_at(idx, point.device_used);
        process_used.look_at(idx, point.process_used);
    }
    let is_kept = |idx: usize| {
        let is_end = idx == 0 || idx + 1 == points.len();
        is_end || lanes.iter().any(|lane| lane.has(idx))
    };
    let points = points.iter().enumerate();
    kept.extend(
        points
            .filter(|(idx, _)| is_kept(*idx))
            .map(|(_, point)| *point),
    );
}

/// Where the first lowest and the last highest level of a lane is, and what it is.
#[derive(Default)]
struct Extremes {
    least: Option<(usize, Bytes)>,
    most: Option<(usize, Bytes)>,
}

impl Extremes {
    fn look_at(&mut self, idx: usize, level: Option<Bytes>) {
        let Some(level) = level else {
            return;
        };
        if self.least.is_none_or(|(_, least)| level < least) {
            self.least = Some((idx, level));
        }
        if self.most.is_none_or(|(_, most)| level >= most) {
            self.most = Some((idx, level));
        }
    }

    fn has(&self, idx: usize) -> bool {
        let is_it = |at: &Option<(usize, Bytes)>| at.is_some_and(|(found, _)| found == idx);
        is_it(&self.least) || is_it(&self.most)
    }
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
