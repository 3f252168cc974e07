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

mod changes;
mod children;
mod clean;
mod device_key;
mod device_kind;
mod downsampled;
mod frame;
mod held;
mod level;
mod loops;
mod mapped;
mod oom;
mod points;
mod trace;

pub use changes::Changes;
pub use children::{ChildGroup, ChildHandle};
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
pub use trace::{
    AllocationTally, LifetimeClass, LineTally, ModuleTally, StackTally, Trace, TracedPeak,
};

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::holders::DeviceHolders;
use crate::named;
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

/// Hash of a cell's normalised source, made by [`source_text::hash`](crate::source_text::hash).
///
/// It is equal for two runs of the same text, even if the text itself is not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceHash(pub u64);

/// A device whose memory is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Its position in the recording.
    pub idx: DeviceIdx,
    /// Names the device in every session.
    pub key: DeviceKey,
    /// The label that people write: `cuda:0`, `sim:0`, `host`.
    pub label: String,
    /// The maker's name: `Tesla T4`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// What was read last outside of every run, where it differs from the run before.
    pub outside: Option<Box<OutsideReading>>,
}

/// The levels of a device outside of every run: what is not recorded may have given memory back, or taken it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutsideReading {
    /// Since the recording's start: when they were read.
    pub at: Nanos,
    /// The levels.
    pub reading: Reading,
}

/// One text that a cell has had. [`Recording::revision`] finds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revision {
    /// Hash of the normalised text.
    pub hash: SourceHash,
    /// The text; `None` if the user's settings do not let it be kept.
    pub text: Option<String>,
    /// The name of the file whose text it is; `None` of a notebook's cell.
    pub file: Option<String>,
}

/// A cell of the notebook. It persists while its text is edited, so its runs form one series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its position in the recording.
    pub idx: CellIdx,
    /// The frontend's id, or the hash of the source if the frontend sends none.
    pub id: String,
    /// The texts it has had, oldest first.
    pub revisions: Vec<Revision>,
}

impl Cell {
    /// The frames that tell of it: one for each revision, so that none is longer for those before it.
    fn frames(&self) -> Vec<Frame> {
        self.frames_of(self.revisions.iter().collect())
    }

    /// The frames that tell of it and of some of its revisions.
    fn frames_of(&self, revisions: Vec<&Revision>) -> Vec<Frame> {
        let frame = |revisions| {
            Frame::Cell(Self {
                idx: self.idx,
                id: self.id.clone(),
                revisions,
            })
        };
        if revisions.is_empty() {
            return vec![frame(Vec::new())];
        }
        let each = revisions.into_iter();
        each.map(|revision| frame(vec![revision.clone()])).collect()
    }
}

named! {
    /// How a run ended, if it did. [`Status::name`] is the word in JSON and Python.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Status {
        /// Not yet ended.
        #[default]
        Running = "running",
        /// Without an error.
        Ok = "ok",
        /// With an exception.
        Error = "error",
        /// By the user.
        Interrupted = "interrupted",
        /// With an out-of-memory error of a framework or the driver.
        OutOfMemory = "out_of_memory",
        /// With the death of the kernel: nothing was read at its end.
        Died = "died",
    }
}

named! {
    /// What a [`Run`] executed.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum RunKind {
        /// A cell.
        #[default]
        Cell = "cell",
        /// A `with gpumem.record(...)` block or a decorated function, nested in a cell's run.
        Block = "block",
    }
}

/// The levels of one device around a run: an entry of [`Run::levels`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunLevels {
    /// Which device.
    pub device: DeviceIdx,
    /// When the run began.
    pub before: Reading,
    /// When it ended; `None` while it runs.
    pub after: Option<Reading>,
    /// The user (or `--reset-peak`) reset the allocator's peak counter inside the run.
    pub peak_reset: bool,
}

/// One execution of a cell, or of a block nested in one.
///
/// A run that has started but not ended has no `ended`, and `after` is `None` in its levels; a later
/// frame of the same index completes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Its position in the recording.
    pub idx: RunIdx,
    /// The cell that was executed, or in which the block was.
    pub cell: CellIdx,
    /// The cell's text at the time.
    pub revision: SourceHash,
    /// The run in which this one is nested.
    pub parent: Option<RunIdx>,
    /// What was executed.
    pub kind: RunKind,
    /// The name of a block, or the label that the user gave.
    pub label: Option<String>,
    /// Jupyter's number: `In [18]`.
    pub execution_count: Option<u32>,
    /// Since the recording's start.
    pub started: Nanos,
    /// Since the recording's start; `None` while it runs.
    pub ended: Option<Nanos>,
    /// How it ended.
    pub status: Status,
    /// Per device that was read, in the order of the devices.
    pub levels: Vec<RunLevels>,
    /// The last out-of-memory error that it met.
    pub oom: Option<Box<OutOfMemory>>,
    /// The runs that were under way at the same time and are neither around it nor in it, at most
    /// [`MAX_OVERLAPS`](Self::MAX_OVERLAPS). A run that is not in the recording may be among them.
    ///
    /// What a level moved by meanwhile belongs to none of them for certain.
    pub overlaps: Vec<RunIdx>,
    /// Cells that are not recorded ran just before it or since: what they read and define is not known.
    pub beside_unrecorded: bool,
}

impl Run {
    /// A run lists this many others; of one that lists as many, the times that it had alone are not known.
    pub const MAX_OVERLAPS: usize = 256;
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

/// A recording lists at most this many gaps.
const MAX_MISSING: usize = 16;

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

    /// The frames that build this recording, in order.
    pub fn frames(&self) -> impl Iterator<Item = Frame> {
        let samples = self
            .all_samples()
            .flat_map(|(run, device, series, points)| {
                let parts = points.parts();
                parts.map(move |points| Samples {
                    run,
                    device,
                    series: series.clone(),
                    points,
                })
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
            .chain(samples.map(Frame::Samples))
            .chain(traces)
            .chain(held)
            .chain(mapped)
            .chain(self.missing.iter().cloned().map(Frame::Missing))
            .chain(self.finish.map(Frame::Finish))
    }

    /// The first `n_runs` runs and the rest, each a recording of its own with the
    /// devices and cells of the whole.
    pub fn split_at(&self, n_runs: usize) -> (Self, Self) {
        let n_runs = n_runs.min(self.runs.len());
        (self.part(0..n_runs), self.part(n_runs..self.runs.len()))
    }

    /// Some of the runs, numbered anew; a run whose parent is not among them has none.
    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let renumbered = |idx: RunIdx| {
            let is_inside = range.contains(&idx.get());
            is_inside.then(|| RunIdx(idx.0 - range.start as u32))
        };
        let elsewhere = RunIdx(u32::MAX);
        let runs = self.runs[range.clone()].iter().filter_map(|run| {
            Some(Run {
                idx: renumbered(run.idx)?,
                parent: run.parent.and_then(renumbered),
                overlaps: run
                    .overlaps
                    .iter()
                    .map(|idx| renumbered(*idx).unwrap_or(elsewhere))
                    .collect(),
                ..run.clone()
            })
        });
        let mut part = Self {
            header: self.header.clone(),
            devices: self.devices.clone(),
            cells: self.cells.clone(),
            revisions: self.revisions.clone(),
            latest: vec![None; self.cells.len()],
            missing: self.missing.clone(),
            finish: self.finish,
            ..Self::default()
        };
        if range.end < self.runs.len() {
            part.devices.iter_mut().for_each(|it| it.outside = None);
        }
        runs.for_each(|run| part.put_run(run));
        let samples = self.samples.iter().filter_map(|(key, points)| {
            let (run, device, series) = key;
            Some(((renumbered(*run)?, *device, series.clone()), points.clone()))
        });
        let loops = self.loops.values().filter_map(|counted| {
            let run = renumbered(counted.run)?;
            let counted = Loop {
                run,
                ..counted.clone()
            };
            Some(((run, counted.idx), counted))
        });
        let traces = self.traces().filter_map(|trace| {
            let run = renumbered(trace.run)?;
            let trace = Trace {
                run,
                ..trace.clone()
            };
            Some(((run, trace.device), trace))
        });
        let held = self.held.iter().filter_map(|((device, run), holders)| {
            Some(((*device, renumbered(*run)?), holders.clone()))
        });
        let held_inside = self.held_inside.iter();
        let held_inside = held_inside.filter_map(|((device, run, at), holders)| {
            Some(((*device, renumbered(*run)?, *at), holders.clone()))
        });
        let mapped = self.mapped.values().filter_map(|mapped| {
            let run = renumbered(mapped.run)?;
            let mapped = SegmentSnapshot {
                run,
                ..mapped.clone()
            };
            Some(((mapped.device, run), mapped))
        });
        part.samples = samples.collect();
        part.loops = loops.collect();
        part.traces = traces.collect();
        part.held = held.collect();
        part.held_inside = held_inside.collect();
        part.mapped = mapped.collect();
        part
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

    fn put_run(&mut self, run: Run) {
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

/// What is there of one device, in the order of the runs.
fn of_device<T>(
    all: &BTreeMap<(DeviceIdx, RunIdx), T>,
    device: DeviceIdx,
) -> impl DoubleEndedIterator<Item = (RunIdx, &T)> {
    let next = DeviceIdx(device.0.saturating_add(1));
    let found = all.range((device, RunIdx(0))..(next, RunIdx(0)));
    found.map(|((_, run), found)| (*run, found))
}

/// Entry `idx` is known, or the next.
fn check_next(
    frame: &'static str,
    what: EntryKind,
    idx: u32,
    n_known: usize,
) -> Result<(), FrameError> {
    if idx as usize <= n_known {
        return Ok(());
    }
    Err(FrameError::Dangling {
        frame,
        what,
        idx,
        n_known,
    })
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
