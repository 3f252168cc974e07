//! What was recorded: the devices, cells and runs of one kernel's life.
//!
//! A [`Recording`] is built by applying [`Frame`]s in order. A file, a row of a store, a live update
//! and the reply of another process are all sequences of such frames (`format`).
//!
//! Times are nanoseconds since the recording's start, sizes are bytes, and a figure that nobody could
//! read is `None` or [`Level::Unknown`], never zero.
//!
//! ```
//! use gpumem_model::recording::{Cell, Device, DeviceIdx, Frame, Recording, Run, RunIdx, Sample, Samples, Series};
//! use gpumem_model::units::{Bytes, Nanos};
//!
//! let mut recording = Recording::default();
//! recording.apply(Frame::Device(Device { label: "cuda:0".to_owned(), ..Device::default() }))?;
//! recording.apply(Frame::Cell(Cell::default()))?;
//! recording.apply(Frame::Run(Run::default()))?;
//! let sample = Sample { at: Nanos::millis(1), allocated: Some(Bytes::mib(300)), ..Sample::default() };
//! let (run, device) = (RunIdx(0), DeviceIdx(0));
//! let points = vec![sample].into();
//! recording.apply(Frame::Samples(Samples { run, device, series: Series::Sampled, points }))?;
//!
//! let sampled = recording.samples(run, device, &Series::Sampled);
//! assert_eq!(sampled.allocated().highest(0..sampled.len()), Some(Bytes::mib(300)));
//! # Ok::<(), gpumem_model::recording::FrameError>(())
//! ```

mod apply;
mod cell;
mod changes;
mod children;
mod clean;
mod device;
mod device_key;
mod device_kind;
mod downsampled;
mod frame;
mod held;
mod level;
mod loops;
mod mapped;
mod oom;
mod part;
mod points;
mod run;
mod trace;

pub use cell::{Cell, Revision, SourceHash};
pub use changes::Changes;
pub use children::{ChildGroup, ChildHandle};
pub use device::{Device, OutsideReading};
pub use device_key::DeviceKey;
pub use device_kind::DeviceKind;
pub use frame::{
    EntryKind, Finish, Frame, FrameError, Header, MAX_FRAME, Missing, Sample, Samples, Series,
    SourceState,
};
pub use held::HolderSnapshot;
pub use level::{AllocatorLevels, DriverLevels, Level, Reading, Source, SourceMessage, Unknown};
pub use loops::{FrameOrigin, Loop, LoopKind};
pub use mapped::SegmentSnapshot;
pub use oom::{Framework, OomFigures, OomHolder, OtherProcess, OutOfMemory};
pub use points::{Column, Points};
pub use run::{Run, RunKind, RunLevels, Status};
pub use trace::{
    AllocationTally, LifetimeClass, LineTally, ModuleTally, StackTally, Trace, TracedPeak,
};

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::holders::DeviceHolders;
use crate::rules::Rules;
use crate::units::Nanos;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the recording's list.
            pub const fn get(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// The position of a device in [`Recording::devices`].
    DeviceIdx
}
index! {
    /// The position of a cell in [`Recording::cells`].
    CellIdx
}
index! {
    /// The position of a run in [`Recording::runs`].
    RunIdx
}
index! {
    /// The number of a loop in its run ([`Recording::loops`]); numbers may be missing.
    LoopIdx
}

/// All runs of one kernel's life, with its devices.
///
/// It is made by applying [`Frame`]s, and read through its methods.
/// Looking up an index that is not in the recording panics: indices come from its own frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    header: Header,
    devices: Vec<Device>,
    cells: Vec<Cell>,
    revisions: HashMap<(CellIdx, SourceHash), usize>,
    runs: Vec<Run>,
    /// The run around each run that is in no other.
    outermost: Vec<RunIdx>,
    /// Of each cell, the latest run that is in no other.
    latest: Vec<Option<RunIdx>>,
    samples: BTreeMap<(RunIdx, DeviceIdx, Series), Points>,
    loops: BTreeMap<(RunIdx, LoopIdx), Loop>,
    traces: BTreeMap<(RunIdx, DeviceIdx), Trace>,
    /// By device: what one look changes of the looks before it are those at the same device.
    held: BTreeMap<(DeviceIdx, RunIdx), DeviceHolders>,
    /// While a run went on.
    held_inside: BTreeMap<(DeviceIdx, RunIdx, Nanos), DeviceHolders>,
    mapped: BTreeMap<(DeviceIdx, RunIdx), SegmentSnapshot>,
    missing: Vec<Missing>,
    finish: Option<Finish>,
}

impl Recording {
    /// An empty recording of the session that `header` describes.
    pub fn new(mut header: Header) -> Self {
        header.clean();
        Self {
            header,
            ..Self::default()
        }
    }

    /// What the session is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The same recording, judged by other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.header.rules = rules;
        self
    }

    /// The devices, in the order found.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The cells, in the order first run.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The runs, in the order begun.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The device of that index.
    pub fn device(&self, idx: DeviceIdx) -> &Device {
        &self.devices[idx.get()]
    }

    /// The cell of that index.
    pub fn cell(&self, idx: CellIdx) -> &Cell {
        &self.cells[idx.get()]
    }

    /// The run of that index.
    pub fn run(&self, idx: RunIdx) -> &Run {
        &self.runs[idx.get()]
    }

    /// The outermost run around this one, or the run itself if it is nested in none.
    pub fn outermost(&self, idx: RunIdx) -> RunIdx {
        self.outermost[idx.get()]
    }

    /// The runs that a run is nested in, from the inside.
    pub fn around(&self, idx: RunIdx) -> impl Iterator<Item = RunIdx> {
        let parent = |run: RunIdx| self.run(run).parent;
        std::iter::successors(parent(idx), move |run| parent(*run))
    }

    /// The latest run of a cell that is not nested in another.
    pub fn latest_run(&self, cell: CellIdx) -> Option<&Run> {
        self.latest.get(cell.get())?.map(|idx| self.run(idx))
    }

    /// The runs of the recording that were under way at the same time as a run, beside it.
    pub fn overlapping(&self, run: &Run) -> impl Iterator<Item = &Run> {
        run.overlaps
            .iter()
            .filter_map(|idx| self.runs.get(idx.get()))
    }

    /// Of a run and those that overlap with it, the one that ended last, of those that are `wanted`: what was
    /// read after it is the latest.
    fn ended_last(&self, idx: RunIdx, wanted: impl Fn(RunIdx) -> bool) -> RunIdx {
        let run = self.run(idx);
        let others = self.overlapping(run).filter(|it| wanted(it.idx));
        let last = others.max_by_key(|it| it.ended);
        let later = last.filter(|it| run.ended.is_some() && it.ended > run.ended);
        later.map_or(idx, |it| it.idx)
    }

    /// The text that a run executed, if it was kept.
    pub fn text(&self, run: &Run) -> Option<&str> {
        self.revision(run.cell, run.revision)?.text.as_deref()
    }

    /// The latest text of each cell, if it was kept.
    pub fn latest_texts(&self) -> impl Iterator<Item = &str> {
        let cells = self.cells.iter();
        cells.filter_map(|cell| cell.revisions.last()?.text.as_deref())
    }

    /// The text of a run's cell, and the latest ones of the others, the newest cell first; each text once, though
    /// several blocks of a file have it.
    pub fn sources(&self, run: &Run) -> Vec<&str> {
        let others = self.cells.iter().rev();
        let others = others.filter(|cell| cell.idx != run.cell);
        let others = others.filter_map(|cell| cell.revisions.last()?.text.as_deref());
        let own = self.text(run).unwrap_or_default();
        let mut known = HashSet::from([own]);
        let others = others.filter(|text| known.insert(text));
        std::iter::once(own).chain(others).collect()
    }

    /// The revision of a cell that has this hash.
    pub fn revision(&self, cell: CellIdx, hash: SourceHash) -> Option<&Revision> {
        let place = self.revisions.get(&(cell, hash))?;
        self.cells.get(cell.get())?.revisions.get(*place)
    }

    /// What the recording is known to lack, one sentence each.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(|it| &*it.words)
    }

    /// The points of one series; empty if there are none.
    pub fn samples(&self, run: RunIdx, device: DeviceIdx, series: &Series) -> &Points {
        static NONE: Points = Points::new();
        let points = self.samples.get(&(run, device, series.clone()));
        points.unwrap_or(&NONE)
    }

    /// The series of points of one run on one device.
    pub fn samples_of(
        &self,
        run: RunIdx,
        device: DeviceIdx,
    ) -> impl Iterator<Item = (&Series, &Points)> {
        let from = (run, device, Series::Sampled);
        self.samples
            .range(from..)
            .take_while(move |((of_run, of_device, _), _)| (*of_run, *of_device) == (run, device))
            .map(|((_, _, series), points)| (series, points))
    }

    /// The series of points of one run: (device, series, points).
    pub fn series_of(
        &self,
        run: RunIdx,
    ) -> impl DoubleEndedIterator<Item = (DeviceIdx, &Series, &Points)> {
        let from = |run| (run, DeviceIdx(0), Series::Sampled);
        let next = RunIdx(run.0.saturating_add(1));
        let series = self.samples.range(from(run)..from(next));
        series.map(|((_, device, series), points)| (*device, series, points))
    }

    /// Every series of points: (run, device, series, points).
    pub fn all_samples(&self) -> impl Iterator<Item = (RunIdx, DeviceIdx, &Series, &Points)> {
        self.samples
            .iter()
            .map(|((run, device, series), points)| (*run, *device, series, points))
    }

    /// The loops that were counted in a run.
    pub fn loops(&self, run: RunIdx) -> impl Iterator<Item = &Loop> {
        let of_run = (run, LoopIdx(0))..=(run, LoopIdx(u32::MAX));
        self.loops.range(of_run).map(|(_, counted)| counted)
    }

    /// The trace of a run on a device, if it was traced.
    pub fn trace(&self, run: RunIdx, device: DeviceIdx) -> Option<&Trace> {
        self.traces.get(&(run, device))
    }

    /// Every trace, in the order of the runs.
    pub fn traces(&self) -> impl DoubleEndedIterator<Item = &Trace> {
        self.traces.values()
    }

    /// The holders of a device's memory after a run, if they were searched for.
    ///
    /// Only the latest snapshot of a device is complete: the one before it is an outline, and older ones
    /// keep the names that grew most.
    pub fn holders(&self, run: RunIdx, device: DeviceIdx) -> Option<&DeviceHolders> {
        self.held.get(&(device, run))
    }

    /// What was read of a device outside of every run, if no run has begun since.
    pub fn outside_reading(&self, device: DeviceIdx) -> Option<&Reading> {
        let outside = self.device(device).outside.as_deref()?;
        let last = self.runs.last();
        let is_latest = last.is_none_or(|run| run.started <= outside.at);
        is_latest.then_some(&outside.reading)
    }

    /// What was read of a device last, after a run or outside of every run.
    pub fn latest_reading(&self, device: DeviceIdx) -> Option<&Reading> {
        let levels = self.runs.iter().rev().flat_map(|run| &run.levels);
        let mut of_device = levels.filter(|it| it.device == device);
        let outside = self.outside_reading(device);
        outside.or_else(|| of_device.find_map(|it| it.after.as_ref()))
    }

    /// The latest snapshot of a device's holders, and the run after which it was taken.
    pub fn latest_holders(&self, device: DeviceIdx) -> Option<(RunIdx, &DeviceHolders)> {
        let (run, _) = self.looks(device).next_back()?;
        let run = self.ended_last(run, |run| self.holders(run, device).is_some());
        Some((run, self.holders(run, device)?))
    }

    /// Every snapshot of holders: device by device, in the order of the runs.
    pub fn all_looks(&self) -> impl Iterator<Item = (RunIdx, &DeviceHolders)> {
        self.held.iter().map(|((_, run), found)| (*run, found))
    }

    /// Every snapshot of a device's holders, in the order of the runs.
    pub fn looks(
        &self,
        device: DeviceIdx,
    ) -> impl DoubleEndedIterator<Item = (RunIdx, &DeviceHolders)> {
        of_device(&self.held, device)
    }

    /// The snapshot of a device's holders before the one after `run`.
    pub fn holders_before(
        &self,
        run: RunIdx,
        device: DeviceIdx,
    ) -> Option<(RunIdx, &DeviceHolders)> {
        let ((of, run), found) = self.held.range(..(device, run)).next_back()?;
        (*of == device).then_some((*run, found))
    }

    /// The names that grew most of a device's memory while a run went on, and when each look was taken.
    pub fn holders_inside(
        &self,
        run: RunIdx,
        device: DeviceIdx,
    ) -> impl DoubleEndedIterator<Item = (Nanos, &DeviceHolders)> {
        let all = (device, run, Nanos::ZERO)..=(device, run, Nanos::new(u64::MAX));
        let looks = self.held_inside.range(all);
        looks.map(|((.., at), found)| (*at, found))
    }

    /// The segments of a device after a run, if they were read.
    pub fn mapped(&self, run: RunIdx, device: DeviceIdx) -> Option<&SegmentSnapshot> {
        self.mapped.get(&(device, run))
    }

    /// The latest snapshot of a device's segments.
    pub fn latest_mapped(&self, device: DeviceIdx) -> Option<&SegmentSnapshot> {
        let (run, _) = of_device(&self.mapped, device).next_back()?;
        self.mapped(
            self.ended_last(run, |run| self.mapped(run, device).is_some()),
            device,
        )
    }

    /// When the session ended, if it ended in order.
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// The latest instant in the recording: of a run, a sample or its finish.
    pub fn last_instant(&self) -> Nanos {
        let of_runs = self.runs.iter().map(|run| run.ended.unwrap_or(run.started));
        let of_samples = self
            .samples
            .values()
            .filter_map(|points| points.at().last())
            .copied();
        let of_finish = self.finish.iter().map(|finish| finish.at);
        of_runs
            .chain(of_samples)
            .chain(of_finish)
            .max()
            .unwrap_or_default()
    }

    /// The frames that build this recording, in order.
    pub fn frames(&self) -> impl Iterator<Item = Frame> {
        let samples = self
            .all_samples()
            .flat_map(|(run, device, series, points)| {
                let parts = points.parts();
                parts.map(move |points| Frame::samples(run, device, series.clone(), points))
            });
        let loops = self.loops.values().cloned().map(Box::new);
        let traces = self.traces().cloned().map(Box::new).map(Frame::Trace);
        let after = self.held.iter();
        let after = after.map(|((device, run), found)| (*run, *device, None, found));
        let inside = self.held_inside.iter();
        let inside = inside.map(|((device, run, at), found)| (*run, *device, Some(*at), found));
        let held = after.chain(inside).map(|(run, device, inside_at, found)| {
            Frame::Holders(Box::new(HolderSnapshot {
                run,
                device,
                inside_at,
                holders: found.clone(),
            }))
        });
        let mapped = self.mapped.values().cloned();
        let mapped = mapped.map(Box::new).map(Frame::Segments);
        std::iter::once(Frame::Header(self.header.clone()))
            .chain(self.devices.iter().cloned().map(Frame::Device))
            .chain(self.cells.iter().flat_map(Cell::frames))
            .chain(self.runs.iter().cloned().map(Frame::Run))
            .chain(loops.map(Frame::Loop))
            .chain(samples)
            .chain(traces)
            .chain(held)
            .chain(mapped)
            .chain(self.missing.iter().cloned().map(Frame::Missing))
            .chain(self.finish.map(Frame::Finish))
    }
}

/// What is there of one device, in the order of the runs.
fn of_device<T>(
    all: &BTreeMap<(DeviceIdx, RunIdx), T>,
    device: DeviceIdx,
) -> impl DoubleEndedIterator<Item = (RunIdx, &T)> {
    let next = DeviceIdx(device.0.saturating_add(1));
    let found = all.range((device, RunIdx(0))..(next, RunIdx(0)));
    found.map(|((_, run), found)| (*run, found))
}
