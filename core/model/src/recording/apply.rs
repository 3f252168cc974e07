//! Adding frames to a recording, each of which is checked against those before it.

use super::{
    Cell, DeviceIdx, EntryKind, Frame, FrameError, HolderSnapshot, Missing, Recording, Run, RunIdx,
    Samples, SegmentSnapshot, Trace, of_device,
};
use crate::holders::DeviceHolders;
use crate::units::Nanos;

/// A recording lists at most this many gaps.
const MAX_MISSING: usize = 16;

impl Recording {
    /// Adds one frame, or replaces what a newer state of it replaces. Names and messages in it are made
    /// [printable](crate::printable).
    ///
    /// # Errors
    ///
    /// [`FrameError`] if the frame does not fit the frames before it; the recording is then unchanged.
    pub fn apply(&mut self, mut frame: Frame) -> Result<(), FrameError> {
        frame.clean();
        match frame {
            Frame::Header(header) => self.header = header,
            Frame::Device(device) => {
                let idx = device.idx;
                check_next("device frame", EntryKind::Device, idx.0, self.devices.len())?;
                put(&mut self.devices, idx.get(), device);
            }
            Frame::Cell(cell) => {
                check_next("cell frame", EntryKind::Cell, cell.idx.0, self.cells.len())?;
                self.put_cell(cell);
            }
            Frame::Run(run) => {
                self.check_run(&run)?;
                self.put_run(run);
            }
            Frame::Samples(samples) => {
                self.check_samples(&samples)?;
                self.put_samples(samples);
            }
            Frame::Loop(of_run) => {
                known("loop frame", EntryKind::Run, of_run.run.0, self.runs.len())?;
                self.loops.insert((of_run.run, of_run.idx), *of_run);
            }
            Frame::Trace(trace) => {
                self.check_trace(&trace)?;
                self.traces.insert((trace.run, trace.device), *trace);
            }
            Frame::Holders(held) => {
                self.check_place("holders frame", held.run, held.device)?;
                self.put_holders(*held);
            }
            Frame::Segments(mapped) => {
                self.check_place("segments frame", mapped.run, mapped.device)?;
                self.put_mapped(*mapped);
            }
            Frame::Missing(missing) => self.put_missing(missing),
            Frame::Finish(finish) => self.finish = Some(finish),
        }
        Ok(())
    }

    /// Only the latest look at a device is kept whole. Of the one before it stay the names and
    /// the largest that each holds, to tell what the latest changed; of those before that, and of looks
    /// inside of a run, what grew.
    fn put_holders(&mut self, mut held: HolderSnapshot) {
        if let Some(at) = held.inside_at {
            held.holders.keep_what_grew();
            let place = (held.device, held.run, at);
            self.held_inside.insert(place, held.holders);
            return;
        }
        let place = (held.device, held.run);
        let keep_less = [DeviceHolders::keep_outline, DeviceHolders::keep_what_grew];
        let earlier = self.held.range(..place).rev().map(|(place, _)| *place);
        let of_device = earlier.take_while(|(device, _)| *device == held.device);
        let latest: Vec<_> = of_device.take(keep_less.len()).collect();
        for (keep_less, place) in keep_less.into_iter().zip(latest) {
            self.held.get_mut(&place).into_iter().for_each(keep_less);
        }
        self.held.insert(place, held.holders);
    }

    /// Of a device's earlier maps only the latest stays of a run that met an out-of-memory error.
    fn put_mapped(&mut self, mapped: SegmentSnapshot) {
        let (run, device) = (mapped.run, mapped.device);
        let met_oom = |run: &RunIdx| self.run(*run).oom.is_some();
        let earlier: Vec<RunIdx> = of_device(&self.mapped, device)
            .map(|(run, _)| run)
            .collect();
        let of_oom = earlier.iter().chain([&run]).copied().filter(met_oom).max();
        for earlier in earlier.into_iter().filter(|it| Some(*it) != of_oom) {
            self.mapped.remove(&(device, earlier));
        }
        self.mapped.insert((device, run), mapped);
    }

    /// A frame tells of the revisions that are new; those that are known stay where they are.
    fn put_cell(&mut self, cell: Cell) {
        let idx = cell.idx;
        if idx.get() == self.cells.len() {
            // Most cells keep their text: no room for another.
            let revisions = Vec::with_capacity(cell.revisions.len());
            self.cells.push(Cell {
                revisions,
                ..Cell::default()
            });
            self.latest.push(None);
        }
        let known = &mut self.cells[idx.get()];
        (known.idx, known.id) = (idx, cell.id);
        for revision in cell.revisions {
            let next = known.revisions.len();
            if let Some(place) = self.revisions.get(&(idx, revision.hash)) {
                known.revisions[*place] = revision;
            } else {
                self.revisions.insert((idx, revision.hash), next);
                known.revisions.push(revision);
            }
        }
    }

    pub(super) fn put_run(&mut self, run: Run) {
        if run.idx.get() == self.runs.len() {
            let around = run.parent.map(|parent| self.outermost(parent));
            self.outermost.push(around.unwrap_or(run.idx));
            if around.is_none() {
                self.latest[run.cell.get()] = Some(run.idx);
            }
        }
        self.moves(&run);
        put(&mut self.runs, run.idx.get(), run);
    }

    /// The outermost run that a run is in has not ended: of which cell it is may become known only then.
    fn is_under_way(&self, run: RunIdx) -> bool {
        let outermost = self.outermost(run);
        self.runs[outermost.get()].ended.is_none()
    }

    /// A run turns out to be one of another cell.
    fn moves(&mut self, run: &Run) {
        let Some(earlier) = self.runs.get(run.idx.get()) else {
            return;
        };
        let from = earlier.cell;
        if from == run.cell || run.parent.is_some() {
            return;
        }
        if self.latest[from.get()] == Some(run.idx) {
            let before = self.runs[..run.idx.get()].iter().rev();
            let mut of_cell = before.filter(|it| it.cell == from && it.parent.is_none());
            self.latest[from.get()] = of_cell.next().map(|it| it.idx);
        }
        let latest = &mut self.latest[run.cell.get()];
        *latest = (*latest).max(Some(run.idx));
    }

    fn put_missing(&mut self, missing: Missing) {
        if self.missing.len() < MAX_MISSING && !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    fn check_run(&self, run: &Run) -> Result<(), FrameError> {
        let frame = "run frame";
        known(frame, EntryKind::Cell, run.cell.0, self.cells.len())?;
        check_next(frame, EntryKind::Run, run.idx.0, self.runs.len())?;
        if let Some(parent) = run.parent {
            known(frame, EntryKind::Run, parent.0, run.idx.get())?;
        }
        let earlier = self.runs.get(run.idx.get());
        if let Some(earlier) = earlier {
            let is_moved = earlier.cell != run.cell && !self.is_under_way(run.idx);
            if is_moved || earlier.parent != run.parent {
                return Err(FrameError::Moved { run: run.idx.0 });
            }
        }
        let of_oom = run.oom.as_ref().and_then(|oom| oom.device);
        run.levels
            .iter()
            .map(|levels| levels.device)
            .chain(of_oom)
            .try_for_each(|device| known(frame, EntryKind::Device, device.0, self.devices.len()))
    }

    fn check_samples(&self, samples: &Samples) -> Result<(), FrameError> {
        self.check_place("samples frame", samples.run, samples.device)?;
        check_order(samples.run, samples.points.at().iter().copied())
    }

    fn check_trace(&self, trace: &Trace) -> Result<(), FrameError> {
        self.check_place("trace frame", trace.run, trace.device)?;
        check_order(trace.run, trace.steps.iter().map(|step| step.at))
    }

    fn check_place(
        &self,
        frame: &'static str,
        run: RunIdx,
        device: DeviceIdx,
    ) -> Result<(), FrameError> {
        known(frame, EntryKind::Run, run.0, self.runs.len())?;
        known(frame, EntryKind::Device, device.0, self.devices.len())
    }

    fn put_samples(&mut self, samples: Samples) {
        let Some(from) = samples.points.at().first().copied() else {
            return;
        };
        let points = self
            .samples
            .entry((samples.run, samples.device, samples.series))
            .or_default();
        points.truncate(points.at().partition_point(|at| *at < from));
        if points.is_empty() {
            // A series that was downsampled gives back what it took.
            *points = samples.points;
        } else {
            points.extend(samples.points.iter());
        }
    }
}

/// Points do not go back in time.
fn check_order(run: RunIdx, points: impl Iterator<Item = Nanos>) -> Result<(), FrameError> {
    let mut last = Nanos::ZERO;
    for (point_idx, at) in points.enumerate() {
        if at < last {
            return Err(FrameError::Unordered {
                run: run.0,
                point_idx,
                at: at.get(),
            });
        }
        last = at;
    }
    Ok(())
}

/// Replaces entry `idx`, or appends it where it is the next.
fn put<T>(list: &mut Vec<T>, idx: usize, item: T) {
    if let Some(place) = list.get_mut(idx) {
        *place = item;
    } else {
        list.push(item);
    }
}

/// Entry `idx` is known, or the next.
fn check_next(
    frame: &'static str,
    what: EntryKind,
    idx: u32,
    n_known: usize,
) -> Result<(), FrameError> {
    if idx as usize == n_known {
        return Ok(());
    }
    known(frame, what, idx, n_known)
}

fn known(frame: &'static str, what: EntryKind, idx: u32, n_known: usize) -> Result<(), FrameError> {
    if (idx as usize) < n_known {
        return Ok(());
    }
    Err(FrameError::Dangling {
        frame,
        what,
        idx,
        n_known,
    })
}
