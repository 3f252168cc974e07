//! What lies between a run's ends: samples and marks, and how many of them a session keeps.

use std::collections::hash_map::Entry;

use gpumem_model::downsample::{self, Downsampler, Spacing};
use gpumem_model::recording::{DeviceKey, Frame, Reading, RunIdx, Sample, Samples, Series};

use super::{EnclosingRun, Recorder};
use gpumem_machine::sources::SourceDevice;

/// The most marks of one series that are kept for one run.
const MAX_MARKS: usize = 4096;

/// Beyond this number of points, those of the runs that ended first are downsampled.
pub(super) const MAX_POINTS: usize = 1 << 18;

/// No run's series is downsampled to fewer: its ends and extremes.
const FEWEST_POINTS: usize = 16;

/// What happened where a mark was set, with the label of its series.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark<'a> {
    /// A loop is about to go through its first step.
    LoopBegins(&'a str),
    /// A step is over.
    StepEnded(&'a str),
}

impl Recorder {
    /// The samples of a run that has ended, of its own devices.
    pub(crate) fn sampled(&mut self, run: RunIdx, sampled: Vec<(DeviceKey, Vec<Sample>)>) {
        self.n_points += self.sampled_so_far(run, sampled);
        if self.n_points > self.thins_at {
            self.thin_old();
        }
    }

    /// Adds the samples of a run until now, of its own devices; returns the number of points.
    pub(crate) fn sampled_so_far(
        &mut self,
        run: RunIdx,
        sampled: Vec<(DeviceKey, Vec<Sample>)>,
    ) -> usize {
        let mut n_points = 0;
        for (key, mut points) in sampled {
            let Some(&device) = self.devices.get(&key) else {
                continue;
            };
            let mut levels = self.recording.run(run).levels.iter();
            if levels.all(|levels| levels.device != device) {
                continue;
            }
            n_points += points.len();
            // Where nothing was downsampled since, only the end is new.
            let known = self.recording.samples(run, device, &Series::Sampled);
            let n_known = known.len().min(points.len());
            if known.iter().eq(points[..n_known].iter().copied()) {
                points.drain(..n_known);
            }
            if !points.is_empty() {
                self.emit(Frame::samples(run, device, Series::Sampled, points));
            }
        }
        n_points
    }

    /// Downsamples the series of ended runs, oldest first, until a quarter of the room is free. Where
    /// even that is too much, the next time comes when a quarter has been added.
    fn thin_old(&mut self) {
        let enough = MAX_POINTS / 4 * 3;
        let mut n_points = self.n_points;
        let mut downsampled = Vec::new();
        for (run, device, series, points) in self.recording.all_samples() {
            if n_points <= enough {
                break;
            }
            if points.len() <= FEWEST_POINTS || self.open.contains_key(&run) {
                continue;
            }
            let spacing = Spacing::for_series(series);
            let n_left = FEWEST_POINTS.max(points.len() / 8);
            let left = downsample::downsampled(points.iter().collect(), n_left, spacing);
            n_points -= points.len() - left.len();
            downsampled.push(Samples {
                run,
                device,
                series: series.clone(),
                points: left.into(),
            });
        }
        for samples in downsampled {
            self.emit(Frame::Samples(samples));
        }
        self.n_points = n_points;
        self.thins_at = MAX_POINTS.max(n_points + MAX_POINTS / 4);
    }

    /// A mark in the innermost open run: one point of its series on each device read.
    ///
    /// Where a second loop of one label begins, the first one's steps go on.
    pub(crate) fn mark(
        &mut self,
        mark: Mark<'_>,
        around: EnclosingRun,
        readings: Vec<(SourceDevice, Reading)>,
    ) {
        let Some(run) = self.innermost(around) else {
            return;
        };
        let (label, n_ended) = match mark {
            Mark::LoopBegins(label) => (label, 0),
            Mark::StepEnded(label) => (label, 1),
        };
        let at = self.clock.now();
        for (found, reading) in readings {
            let device = self.device(found);
            let place = (run, device, Series::Marked(label.to_owned()));
            let series = match self.marks.entry(place) {
                Entry::Occupied(_) if n_ended == 0 => continue,
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place
                    .insert(Downsampler::new(MAX_MARKS, Spacing::Ordinal).counting_from(n_ended)),
            };
            let point = Sample {
                at,
                ..Sample::from_reading(&reading)
            };
            // A downsampled series is written again; others get only the newest point.
            let n_points = series.points().len();
            let from = if series.push(point) { 0 } else { n_points };
            let points = series.points()[from..].to_vec();
            self.emit(Frame::samples(
                run,
                device,
                Series::Marked(label.to_owned()),
                points,
            ));
        }
    }
}
