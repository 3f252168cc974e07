//! What is known of a run that goes on: the latest that was read inside of it.

use super::levels::{Lane, of_sample};
use crate::recording::{
    AllocatorLevels, DeviceIdx, Level, Reading, Recording, Run, Sample, Series,
};
use crate::units::Bytes;

/// The lane at the latest instant at which it was read.
pub(super) fn level(
    recording: &Recording,
    run: &Run,
    device: DeviceIdx,
    lane: Lane,
) -> Option<Bytes> {
    let known = |(_, point): (_, Sample)| Some((point.at, of_sample(&point, lane)?));
    let levels = latest(recording, run, device).filter_map(known);
    Some(levels.max_by_key(|(at, _)| *at)?.1)
}

/// The levels of the latest instant at which all of them were read.
///
/// The sampler does not read allocators: what it knows later is not mixed with them.
pub(super) fn reading(
    recording: &Recording,
    run: &Run,
    device: DeviceIdx,
    before: &Reading,
) -> Option<Reading> {
    let is_whole = |series: &Series| *series != Series::Sampled || before.allocators.is_empty();
    let points = latest(recording, run, device).filter(|(series, _)| is_whole(series));
    let (_, point) = points.max_by_key(|(_, point)| point.at)?;
    let mut now = before.clone();
    renew(&mut now.driver.device_used, point.device_used);
    renew(&mut now.driver.process_used, point.process_used);
    // A point tells of all allocators together.
    if let [levels] = now.allocators.as_mut_slice() {
        renew_allocator(levels, &point);
    }
    Some(now)
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

/// The last point of each series in the run and in the blocks of it; none of a run that has ended.
fn latest<'a>(
    recording: &'a Recording,
    run: &Run,
    device: DeviceIdx,
) -> impl Iterator<Item = (&'a Series, Sample)> {
    let (idx, ended) = (run.idx, run.ended.is_some());
    let open = if ended {
        &[]
    } else {
        &recording.runs()[idx.get()..]
    };
    let is_inside = move |inner: &&Run| {
        let mut around = std::iter::successors(Some(inner.idx), |at| recording.run(*at).parent);
        around.any(|at| at == idx)
    };
    let series = open
        .iter()
        .filter(is_inside)
        .flat_map(move |inner| recording.samples_of(inner.idx, device));
    series.filter_map(|(series, points)| Some((series, points.last()?)))
}
