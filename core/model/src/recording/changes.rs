//! Which parts of a recording a follower has not received yet.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CellIdx, DeviceIdx, Frame, HolderSnapshot, LoopIdx, Points, Recording, RunIdx, Samples, Series,
    SourceHash,
};
use crate::units::Nanos;

/// Which parts of a recording a follower has not received yet.
///
/// It notes every frame that is applied but holds no content, so a follower who fetches late gets the
/// newest state of each part once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    header: bool,
    devices: BTreeSet<DeviceIdx>,
    cells: BTreeSet<CellIdx>,
    /// Of the cells, which texts.
    revisions: BTreeSet<(CellIdx, SourceHash)>,
    runs: BTreeSet<RunIdx>,
    /// From which instant on the points of a series have changed.
    samples: BTreeMap<(RunIdx, DeviceIdx, Series), Nanos>,
    loops: BTreeSet<(RunIdx, LoopIdx)>,
    traces: BTreeSet<(RunIdx, DeviceIdx)>,
    held: BTreeSet<(RunIdx, DeviceIdx, Option<Nanos>)>,
    mapped: BTreeSet<(RunIdx, DeviceIdx)>,
    missing: bool,
    finish: bool,
}

impl Changes {
    /// Everything that a follower who has the first `n_runs` runs lacks.
    pub fn since(recording: &Recording, n_runs: usize) -> Self {
        let mut changes = Self::default();
        let frames = recording.frames();
        for frame in frames.filter(|frame| frame.run().is_none_or(|run| run.get() >= n_runs)) {
            changes.note(&frame);
        }
        changes
    }

    /// Notes a frame that is applied to the recording.
    pub fn note(&mut self, frame: &Frame) {
        match frame {
            Frame::Header(_) => self.header = true,
            Frame::Device(device) => drop(self.devices.insert(device.idx)),
            Frame::Cell(cell) => {
                self.cells.insert(cell.idx);
                let hashes = cell.revisions.iter().map(|it| (cell.idx, it.hash));
                self.revisions.extend(hashes);
            }
            Frame::Run(run) => drop(self.runs.insert(run.idx)),
            Frame::Loop(of_run) => drop(self.loops.insert((of_run.run, of_run.idx))),
            Frame::Samples(samples) => self.note_samples(samples),
            Frame::Trace(trace) => drop(self.traces.insert((trace.run, trace.device))),
            Frame::Holders(held) => {
                self.held.insert((held.run, held.device, held.inside_at));
            }
            Frame::Segments(mapped) => drop(self.mapped.insert((mapped.run, mapped.device))),
            Frame::Missing(_) => self.missing = true,
            Frame::Finish(_) => self.finish = true,
        }
    }

    /// The frames that bring a follower up to date, in an order in which they apply; then nothing is new.
    ///
    /// `recording` must be the one whose frames were noted.
    pub fn take(&mut self, recording: &Recording) -> Vec<Frame> {
        let changes = std::mem::take(self);
        let mut frames = Vec::new();
        if changes.header {
            frames.push(Frame::Header(recording.header().clone()));
        }
        let devices = changes.devices.into_iter();
        frames.extend(devices.map(|idx| Frame::Device(recording.device(idx).clone())));
        for idx in changes.cells {
            let of_cell = (idx, SourceHash(0))..=(idx, SourceHash(u64::MAX));
            let news = changes.revisions.range(of_cell);
            frames.extend(news_of_cell(recording, idx, news.map(|(_, hash)| *hash)));
        }
        let runs = changes.runs.into_iter();
        frames.extend(runs.map(|idx| Frame::Run(recording.run(idx).clone())));
        for ((run, device, series), from) in changes.samples {
            let points = recording.samples(run, device, &series);
            let n_known = points.at().partition_point(|at| *at < from);
            let news: Points = points.iter().skip(n_known).collect();
            frames.extend(
                news.parts()
                    .map(|points| Frame::samples(run, device, series.clone(), points)),
            );
        }
        let loops = changes.loops.iter();
        let loops = loops.filter_map(|place| recording.loops.get(place));
        frames.extend(loops.map(|counted| Frame::Loop(Box::new(counted.clone()))));
        let traces = changes.traces.into_iter();
        let traces = traces.filter_map(|(run, device)| recording.trace(run, device));
        frames.extend(traces.map(|trace| Frame::Trace(Box::new(trace.clone()))));
        let held = changes.held.into_iter();
        frames.extend(held.filter_map(|(run, device, inside_at)| {
            let holders = match inside_at {
                Some(at) => recording.held_inside.get(&(device, run, at))?,
                None => recording.holders(run, device)?,
            };
            Some(Frame::Holders(Box::new(HolderSnapshot {
                run,
                device,
                inside_at,
                holders: holders.clone(),
            })))
        }));
        let mapped = changes.mapped.into_iter();
        let mapped = mapped.filter_map(|(run, device)| recording.mapped(run, device));
        frames.extend(mapped.map(|mapped| Frame::Segments(Box::new(mapped.clone()))));
        let missing = recording.missing.iter().filter(|_| changes.missing);
        frames.extend(missing.cloned().map(Frame::Missing));
        frames.extend(
            recording
                .finish()
                .filter(|_| changes.finish)
                .map(Frame::Finish),
        );
        frames
    }

    fn note_samples(&mut self, samples: &Samples) {
        let Some(first) = samples.points.at().first() else {
            return;
        };
        let series = (samples.run, samples.device, samples.series.clone());
        let from = self.samples.entry(series).or_insert(*first);
        *from = (*first).min(*from);
    }
}

/// The texts of a cell that are new, oldest first.
fn news_of_cell(
    recording: &Recording,
    idx: CellIdx,
    hashes: impl Iterator<Item = SourceHash>,
) -> Vec<Frame> {
    let places = hashes.filter_map(|hash| recording.revisions.get(&(idx, hash)).copied());
    let places: BTreeSet<usize> = places.collect();
    let cell = recording.cell(idx);
    let news = places.into_iter().map(|place| &cell.revisions[place]);
    cell.frames_of(news.collect())
}
