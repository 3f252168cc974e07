//! What is known of a run that goes on: the latest that was read inside of it.

use std::collections::HashMap;

use super::row::{Metric, of_sample};
use gpumem_model::recording::{
    AllocatorLevels, DeviceIdx, Level, Reading, Recording, Run, RunIdx, Sample, Series,
};
use gpumem_model::units::{Bytes, Nanos};

/// What was read last of each device in each run that goes on, the blocks of it included.
#[derive(Default)]
pub(super) struct Ongoing(Vec<((RunIdx, DeviceIdx), LatestPoints)>);

/// Points inside a run: the latest, and the latest in which each metric is known.
#[derive(Clone, Default)]
struct LatestPoints {
    metrics: [Option<(PointPosition, Bytes)>; Metric::ALL.len()],
    any: Option<(PointPosition, Sample)>,
    /// Set by a mark, where all levels are read.
    marked: Option<(PointPosition, Sample)>,
}

/// Orders points by instant, then by run.
type PointPosition = (Nanos, RunIdx);

impl Ongoing {
    /// Of the latest runs of a recording, or of all.
    pub(super) fn new(recording: &Recording, latest: &[Run]) -> Self {
        let runs = recording.runs();
        let Some(first) = latest.iter().find(|run| run.ended.is_none()) else {
            return Self::default();
        };
        let first = first.idx.get();
        let mut found = Vec::new();
        // A run is in an earlier one: what is inside of it is known before what is around it.
        let mut inside = vec![HashMap::new(); runs.len() - first];
        for run in runs[first..].iter().rev() {
            let mut within = std::mem::take(&mut inside[run.idx.get() - first]);
            for (device, series, points) in recording.series_of(run.idx) {
                if let Some(point) = points.last() {
                    let of_device: &mut LatestPoints = within.entry(device).or_default();
                    of_device.join(&LatestPoints::at(run.idx, series, point));
                }
            }
            if run.ended.is_none() {
                let devices = run.levels.iter().map(|levels| levels.device);
                let known = devices.filter_map(|device| Some((device, within.get(&device)?)));
                found.extend(known.map(|(device, of)| ((run.idx, device), of.clone())));
            }
            if let Some(around) = run.parent.and_then(|it| it.get().checked_sub(first)) {
                join_all(&mut inside[around], within);
            }
        }
        found.sort_unstable_by_key(|(place, _)| *place);
        Self(found)
    }

    fn inside(&self, run: RunIdx, device: DeviceIdx) -> Option<&LatestPoints> {
        let place = self
            .0
            .binary_search_by_key(&(run, device), |(place, _)| *place);
        Some(&self.0[place.ok()?].1)
    }

    /// The metric at the latest instant at which it was read, and that.
    pub(super) fn level(
        &self,
        run: RunIdx,
        device: DeviceIdx,
        metric: Metric,
    ) -> Option<(Nanos, Bytes)> {
        let inside = self.inside(run, device)?;
        let mut metrics = Metric::ALL.into_iter().zip(&inside.metrics);
        let (_, latest) = metrics.find(|(of, _)| *of == metric)?;
        latest.map(|((at, _), level)| (at, level))
    }

    /// The levels of the latest instant at which all of them were read.
    ///
    /// The sampler does not read allocators: what it knows later is not mixed with them.
    pub(super) fn reading(
        &self,
        run: RunIdx,
        device: DeviceIdx,
        before: &Reading,
    ) -> Option<Reading> {
        let inside = self.inside(run, device)?;
        let whole = if before.allocators.is_empty() {
            inside.any
        } else {
            inside.marked
        };
        let (_, point) = whole?;
        let mut now = before.clone();
        renew(&mut now.driver.device_used, point.device_used);
        renew(&mut now.driver.process_used, point.process_used);
        // A point tells of all allocators together.
        if let [levels] = now.allocators.as_mut_slice() {
            renew_allocator(levels, &point);
        }
        Some(now)
    }
}

impl LatestPoints {
    fn at(run: RunIdx, series: &Series, point: Sample) -> Self {
        let place = (point.at, run);
        let any = Some((place, point));
        Self {
            metrics: Metric::ALL.map(|metric| Some((place, of_sample(&point, metric)?))),
            any,
            marked: any.filter(|_| *series != Series::Sampled),
        }
    }

    fn join(&mut self, other: &Self) {
        for (metric, other) in self.metrics.iter_mut().zip(&other.metrics) {
            keep_latest(metric, *other);
        }
        keep_latest(&mut self.any, other.any);
        keep_latest(&mut self.marked, other.marked);
    }
}

fn keep_latest<T>(known: &mut Option<(PointPosition, T)>, other: Option<(PointPosition, T)>) {
    let place = |it: &Option<(PointPosition, T)>| it.as_ref().map(|(place, _)| *place);
    if place(&other) >= place(known) {
        *known = other;
    }
}

/// The smaller goes into the larger: runs nested in each other would move each device once for each.
fn join_all(
    known: &mut HashMap<DeviceIdx, LatestPoints>,
    mut others: HashMap<DeviceIdx, LatestPoints>,
) {
    if others.len() > known.len() {
        std::mem::swap(known, &mut others);
    }
    for (device, other) in others {
        known.entry(device).or_default().join(&other);
    }
}

fn renew_allocator(levels: &mut AllocatorLevels, point: &Sample) {
    let known = (levels.allocated.known(), levels.requested.known());
    if let (Some(allocated), Some(requested)) = known {
        let rounding = allocated.saturating_sub(requested);
        let requested = point.allocated.map(|now| now.saturating_sub(rounding));
        renew(&mut levels.requested, requested);
    }
    renew(&mut levels.allocated, point.allocated);
    renew(&mut levels.reserved, point.reserved);
}

fn renew(level: &mut Level, now: Option<Bytes>) {
    if now.is_some() {
        *level = now.into();
    }
}
