//! Begin and end of a run, marks, and the recording that they make.
//!
//! Knows nothing of Python, of how a reading is taken, or of verdicts: it is
//! handed cells and readings, and turns them into frames.

mod follow;
mod looks;
mod traced;

use gpumem_core::holders::HandedOut;
use gpumem_core::recording::{
    AllocatorLevels, Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Frame, Framework,
    Header, Level, OomFigures, OomHolder, OutOfMemory, Reading, Recording, Revision, Run, RunIdx,
    RunKind, RunLevels, Sample, Samples, Series, SourceHash, SourceState, Status, Unknown,
};
use gpumem_core::source_text;
use gpumem_core::thin::{self, Spacing, Thinned};
use gpumem_core::units::{Bytes, Nanos};
use std::collections::{BTreeSet, HashMap};

use crate::clock::Clock;
use crate::oom::Told;
use crate::sources::Found;
pub(crate) use follow::Bell;
use follow::Followed;
pub(crate) use traced::{RunAsTraced, Traced};

/// At most so many marks of one series are kept of one run.
const MAX_MARKS: usize = 4096;

/// Beyond so many points in a session, those of the runs that ended longest ago are thinned.
const MAX_POINTS: usize = 1 << 18;

/// No run's series is thinned to fewer: its ends and extremes.
const FEWEST_POINTS: usize = 16;

/// At most so many names that held memory are kept of an out-of-memory error.
const MAX_HOLDERS: usize = 24;

/// The label of the host's memory, which a message without a device does not speak of.
const HOST: &str = "host";

/// A host process that moved by less has only breathed.
const HOST_NOISE: Bytes = Bytes::mib(1);

/// How much of a cell's source is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SourceText {
    /// All of it.
    #[default]
    Full,
    /// Its hash alone: runs can be told apart but not read.
    Hash,
    /// Not even a hash, against which a text could be tried: a number.
    None,
}

impl SourceText {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "hash" => Some(Self::Hash),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// A cell as it is launched.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The frontend's id of the cell, where it sends one.
    pub(crate) cell_id: Option<String>,
    pub(crate) source: String,
    pub(crate) label: Option<String>,
    /// Jupyter's number.
    pub(crate) execution_count: Option<u32>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    cell: CellIdx,
    revision: SourceHash,
    parent: Option<RunIdx>,
    execution_count: Option<u32>,
}

/// The session's recording, and the runs that are under way.
#[derive(Debug)]
pub(crate) struct Recorder {
    clock: Clock,
    source_text: SourceText,
    recording: Recording,
    devices: HashMap<String, DeviceIdx>,
    cells: HashMap<String, CellIdx>,
    /// The numbers that stand for sources where not even a hash is kept.
    source_numbers: HashMap<SourceHash, SourceHash>,
    /// The runs that have begun and not ended.
    open: BTreeSet<RunIdx>,
    /// The open run of a cell: whatever else begins is nested in it.
    cell_run: Option<RunIdx>,
    /// Of all runs that have ended.
    n_points: usize,
    /// With so many points the oldest are thinned.
    thins_at: usize,
    /// The marks of the open runs.
    marks: HashMap<(RunIdx, DeviceIdx, String), Thinned>,
    followed: Option<Followed>,
}

impl Recorder {
    pub(crate) fn new(mut header: Header, source_text: SourceText) -> Self {
        let clock = Clock::start();
        header.wall_anchor = clock.wall_anchor();
        Self {
            clock,
            source_text,
            recording: Recording::new(header),
            devices: HashMap::new(),
            cells: HashMap::new(),
            source_numbers: HashMap::new(),
            open: BTreeSet::new(),
            cell_run: None,
            n_points: 0,
            thins_at: MAX_POINTS,
            marks: HashMap::new(),
            followed: None,
        }
    }

    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What the recording's times are told by.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn source_text(&self) -> SourceText {
        self.source_text
    }

    pub(crate) fn keep_source_text(&mut self, source_text: SourceText) {
        self.source_text = source_text;
    }

    /// The sources are others from now on.
    pub(crate) fn restate(&mut self, sources: Vec<SourceState>) {
        let header = self.recording.header().clone();
        self.emit(Frame::Header(Header { sources, ..header }));
    }

    /// A cell's run begins now: `before` has just been read.
    pub(crate) fn begin(&mut self, launch: Launch, before: Vec<(Found, Reading)>) -> RunIdx {
        let revision = self.revision(&launch.source);
        let cell = self.cell(launch.cell_id, &launch.source, revision);
        let place = Place {
            cell,
            revision,
            parent: None,
            execution_count: launch.execution_count,
        };
        let idx = self.open(RunKind::Cell, place, launch.label, before);
        self.cell_run = Some(idx);
        idx
    }

    /// A block begins now, nested in the innermost open run around it.
    ///
    /// Outside of every run it is an outermost run itself, of a cell that stands for
    /// its name: there it has a series of its own.
    pub(crate) fn begin_block(
        &mut self,
        name: &str,
        around: Option<RunIdx>,
        before: Vec<(Found, Reading)>,
    ) -> RunIdx {
        let place = if let Some(parent) = self.innermost(around) {
            let run = self.recording.run(parent);
            Place {
                cell: run.cell,
                revision: run.revision,
                parent: Some(parent),
                execution_count: run.execution_count,
            }
        } else {
            let source = format!("with gpumem.record({name:?}):");
            let revision = self.revision(&source);
            Place {
                cell: self.cell(Some(format!("block:{name}")), &source, revision),
                revision,
                parent: None,
                execution_count: None,
            }
        };
        self.open(RunKind::Block, place, Some(name.to_owned()), before)
    }

    /// The run that something in the block `around` belongs to: that block, the nearest
    /// open one around it, or else the cell's run.
    pub(crate) fn innermost(&self, around: Option<RunIdx>) -> Option<RunIdx> {
        let mut candidate = around;
        while let Some(run) = candidate {
            if self.open.contains(&run) {
                return candidate;
            }
            candidate = self.recording.run(run).parent;
        }
        self.cell_run
    }

    /// A run has begun that has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The open run of a cell.
    pub(crate) fn cell_run(&self) -> Option<RunIdx> {
        self.cell_run
    }

    fn open(
        &mut self,
        kind: RunKind,
        place: Place,
        label: Option<String>,
        before: Vec<(Found, Reading)>,
    ) -> RunIdx {
        let levels = before
            .into_iter()
            .map(|(found, reading)| RunLevels {
                device: self.device(found),
                before: reading,
                after: None,
                peak_reset: false,
            })
            .collect();
        let idx = RunIdx(index(self.recording.runs().len()));
        self.emit(Frame::Run(Run {
            idx,
            cell: place.cell,
            revision: place.revision,
            parent: place.parent,
            kind,
            label,
            execution_count: place.execution_count,
            started: self.clock.now(),
            ended: None,
            status: Status::Running,
            levels,
            oom: None,
        }));
        self.open.insert(idx);
        idx
    }

    /// The devices that the run began with and `after` lacks: their levels are unknown now.
    pub(crate) fn unanswered(
        &self,
        run: RunIdx,
        after: &[(Found, Reading)],
    ) -> Vec<(Found, Reading)> {
        let began_with = self.recording.run(run).levels.iter();
        began_with
            .map(|levels| (self.recording.device(levels.device), &levels.before))
            .filter(|(device, _)| after.iter().all(|(found, _)| found.key != device.key))
            .map(|(device, before)| {
                let found = Found {
                    key: device.key.clone(),
                    label: device.label.clone(),
                    name: device.name.clone(),
                    kind: device.kind,
                };
                (found, unanswered(before))
            })
            .collect()
    }

    /// The run ended at `ended`; `after` tells of its devices. False where it is not open.
    pub(crate) fn end(
        &mut self,
        idx: RunIdx,
        status: Status,
        ended: Nanos,
        after: Vec<(Found, Reading)>,
    ) -> bool {
        if !self.open.remove(&idx) {
            return false;
        }
        if self.cell_run == Some(idx) {
            self.cell_run = None;
        }
        let ended_marks = self.marks.extract_if(|(run, ..), _| *run == idx);
        self.n_points += ended_marks.map(|(_, it)| it.points().len()).sum::<usize>();
        let mut run = self.recording.run(idx).clone();
        run.status = status;
        run.ended = Some(ended);
        for (found, reading) in after {
            let device = self.device(found);
            // A device that was not there when the run began has no level before it.
            let known = run.levels.iter().position(|it| it.device == device);
            let position = known.unwrap_or_else(|| {
                run.levels.push(RunLevels {
                    device,
                    before: Reading::default(),
                    after: None,
                    peak_reset: false,
                });
                run.levels.len() - 1
            });
            let levels = &mut run.levels[position];
            levels.peak_reset = peak_was_reset(&levels.before, &reading);
            levels.after = Some(reading);
        }
        self.emit(Frame::Run(run));
        true
    }

    /// Memory ran out in a run that has ended: it was told so, or an allocator has counted it.
    pub(crate) fn ran_out(&mut self, idx: RunIdx, told: Option<Told>) {
        let run = self.recording.run(idx);
        let mut told = told;
        let segments = told.as_mut().and_then(|told| told.segments.take());
        let Some(oom) =
            told.map_or_else(|| counted(run), |told| Some(self.out_of_memory(run, told)))
        else {
            return;
        };
        let device = oom.device;
        let run = Run {
            oom: Some(Box::new(oom)),
            ..run.clone()
        };
        let is_outermost = run.parent.is_none();
        self.emit(Frame::Run(run));
        if let (Some(device), Some(found), true) = (device, segments, is_outermost) {
            self.mapped(idx, device, found);
        }
    }

    fn out_of_memory(&self, run: &Run, told: Told) -> OutOfMemory {
        let label = told.message.device.as_deref();
        let mut devices = self.recording.devices().iter();
        let device = devices.find(|device| Some(device.label.as_str()) == label);
        let at = told.at.map(|at| self.clock.at(at));
        let keeps_names = self.source_text == SourceText::Full;
        let holders = told.holders.into_iter();
        let holders = holders
            .filter(|held| label.map_or(held.device != HOST, |label| held.device == label))
            .take(MAX_HOLDERS)
            .map(|held| OomHolder {
                name: if keeps_names {
                    held.name
                } else {
                    String::new()
                },
                kind: held.kind,
                used: held.n_bytes,
            })
            .collect();
        OutOfMemory {
            at: at.or(run.ended).unwrap_or_default(),
            device: device.map(|device| device.idx),
            framework: told.message.framework,
            survived: told.survived,
            figures: told.message.figures,
            holders,
            message: told.text.filter(|_| keeps_names),
        }
    }

    /// What was sampled in a run that has ended, of the devices that it tells of.
    pub(crate) fn sampled(&mut self, run: RunIdx, sampled: Vec<(String, Vec<Sample>)>) {
        self.n_points += self.sampled_so_far(run, sampled);
        if self.n_points > self.thins_at {
            self.thin_old();
        }
    }

    /// What was sampled in a run until now, of the devices that it tells of. How many points that is.
    pub(crate) fn sampled_so_far(
        &mut self,
        run: RunIdx,
        sampled: Vec<(String, Vec<Sample>)>,
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
            // Where nothing was thinned since, only the end is new.
            let known = self.recording.samples(run, device, &Series::Sampled);
            let n_known = known.len().min(points.len());
            if known.iter().eq(points[..n_known].iter().copied()) {
                points.drain(..n_known);
            }
            if !points.is_empty() {
                self.emit(Frame::Samples(Samples {
                    run,
                    device,
                    series: Series::Sampled,
                    points: points.into(),
                }));
            }
        }
        n_points
    }

    /// Thins the series of ended runs, oldest first, until a quarter of the room is free. Where
    /// even that is too much, the next time comes when a quarter has been added.
    fn thin_old(&mut self) {
        let enough = MAX_POINTS / 4 * 3;
        let mut n_points = self.n_points;
        let mut thinned = Vec::new();
        for (run, device, series, points) in self.recording.all_samples() {
            if n_points <= enough {
                break;
            }
            if points.len() <= FEWEST_POINTS || self.open.contains(&run) {
                continue;
            }
            let spacing = match series {
                Series::Sampled => Spacing::Time,
                Series::Marked(_) => Spacing::Ordinal,
            };
            let n_left = FEWEST_POINTS.max(points.len() / 8);
            let left = thin::thinned(points.iter().collect(), n_left, spacing);
            n_points -= points.len() - left.len();
            thinned.push(Samples {
                run,
                device,
                series: series.clone(),
                points: left.into(),
            });
        }
        for samples in thinned {
            self.emit(Frame::Samples(samples));
        }
        self.n_points = n_points;
        self.thins_at = MAX_POINTS.max(n_points + MAX_POINTS / 4);
    }

    /// A mark in the innermost open run: one point of the series `label` on each device read.
    pub(crate) fn mark(
        &mut self,
        label: &str,
        around: Option<RunIdx>,
        readings: Vec<(Found, Reading)>,
    ) {
        let Some(run) = self.innermost(around) else {
            return;
        };
        let at = self.clock.now();
        for (found, reading) in readings {
            let device = self.device(found);
            let series = self
                .marks
                .entry((run, device, label.to_owned()))
                .or_insert_with(|| Thinned::new(MAX_MARKS, Spacing::Ordinal));
            let point = Sample {
                at,
                ..sample(&reading)
            };
            // A thinned series is written anew, another one gets its newest point.
            let n_points = series.points().len();
            let from = if series.push(point) { 0 } else { n_points };
            let points = series.points()[from..].iter().copied().collect();
            self.emit(Frame::Samples(Samples {
                run,
                device,
                series: Series::Marked(label.to_owned()),
                points,
            }));
        }
    }

    /// The run moved a level, or told more than its ends: a verdict may be new.
    ///
    /// The host's levels move with every cell, and so does what other processes use.
    pub(crate) fn has_news(&self, idx: RunIdx) -> bool {
        let run = self.recording.run(idx);
        let moved = |levels: &RunLevels| {
            let Some(after) = &levels.after else {
                return false;
            };
            let before = &levels.before;
            let own = |reading: &Reading| reading.driver.process_used.known().unwrap_or_default();
            let is_host = self.recording.device(levels.device).kind == DeviceKind::Host;
            let by = own(after).since(own(before)).magnitude();
            before.allocators != after.allocators
                || by >= HOST_NOISE
                || (!is_host && by > Bytes::ZERO)
        };
        let is_marked = |levels: &RunLevels| {
            let mut series = self.recording.samples_of(idx, levels.device);
            series.any(|(series, _)| *series != Series::Sampled)
        };
        let mut later = self.recording.runs()[idx.get()..].iter();
        run.status != Status::Ok
            || later.any(|run| run.parent == Some(idx))
            || run.levels.iter().any(|it| moved(it) || is_marked(it))
    }

    /// What the allocators of each accelerator had handed out when a run ended, where they said it.
    pub(crate) fn handed_out(&self, idx: RunIdx) -> Vec<(String, HandedOut)> {
        let run = self.recording.runs().get(idx.get());
        let levels = run.into_iter().flat_map(|run| &run.levels);
        let handed_out = |levels: &RunLevels| {
            let device = self.recording.device(levels.device);
            let handed_out = levels.after.as_ref()?.handed_out()?;
            let is_its_own = device.kind.is_accelerator();
            is_its_own.then(|| (device.label.clone(), handed_out))
        };
        levels.filter_map(handed_out).collect()
    }

    /// Every change of the recording passes here.
    fn emit(&mut self, frame: Frame) {
        if let Some(followed) = &mut self.followed {
            followed.note(&frame);
        }
        self.recording
            .apply(frame)
            .expect("the recorder's own frames fit each other");
    }

    fn device(&mut self, found: Found) -> DeviceIdx {
        let known = self.devices.get(&found.key).copied();
        // Its number may become known only when CUDA starts.
        if let Some(idx) = known.filter(|idx| self.recording.device(*idx).label == found.label) {
            return idx;
        }
        let idx = known.unwrap_or(DeviceIdx(index(self.devices.len())));
        self.devices.insert(found.key.clone(), idx);
        self.emit(Frame::Device(Device {
            idx,
            key: found.key,
            label: found.label,
            name: found.name,
            kind: found.kind,
        }));
        idx
    }

    fn revision(&mut self, source: &str) -> SourceHash {
        let hash = source_text::hash(source);
        if self.source_text != SourceText::None {
            return hash;
        }
        let number = SourceHash(self.source_numbers.len() as u64);
        *self.source_numbers.entry(hash).or_insert(number)
    }

    fn cell(&mut self, id: Option<String>, source: &str, hash: SourceHash) -> CellIdx {
        let id = id.unwrap_or_else(|| format!("{:016x}", hash.0));
        let known = self.cells.get(&id).copied();
        let mut cell = match known {
            Some(idx) => {
                let cell = self.recording.cell(idx);
                if cell.revisions.iter().any(|revision| revision.hash == hash) {
                    return idx;
                }
                cell.clone()
            }
            None => Cell {
                idx: CellIdx(index(self.cells.len())),
                id: id.clone(),
                revisions: Vec::new(),
            },
        };
        let text = (self.source_text == SourceText::Full).then(|| source.to_owned());
        cell.revisions.push(Revision { hash, text });
        let idx = cell.idx;
        self.cells.insert(id, idx);
        self.emit(Frame::Cell(cell));
        idx
    }
}

/// What is known of an out-of-memory error that nobody told of: an allocator counted it.
fn counted(run: &Run) -> Option<OutOfMemory> {
    let count = |levels: &AllocatorLevels| levels.n_ooms.unwrap_or_default();
    run.levels.iter().find_map(|levels| {
        let after = levels.after.as_ref()?.allocators.iter();
        let before = &levels.before.allocators;
        let rose = after.clone().find(|now| {
            let then = before.iter().find(|then| then.source == now.source);
            count(now) > then.map_or(0, count)
        })?;
        Some(OutOfMemory {
            at: run.ended.unwrap_or_default(),
            device: Some(levels.device),
            framework: Framework::from_name(rose.source.name()),
            survived: true,
            figures: OomFigures::default(),
            holders: Vec::new(),
            message: None,
        })
    })
}

/// The reading of a device that every source of `before` has stopped answering for.
fn unanswered(before: &Reading) -> Reading {
    let failed = || {
        Level::Unknown(Unknown::Failed(
            "it stopped answering inside a run".to_owned(),
        ))
    };
    let was_read = before.driver != DriverLevels::default();
    let allocators = before.allocators.iter().map(|levels| AllocatorLevels {
        allocated: failed(),
        ..AllocatorLevels::unread(levels.source)
    });
    Reading {
        driver: DriverLevels {
            device_used: if was_read { failed() } else { Level::default() },
            ..DriverLevels::default()
        },
        allocators: allocators.collect(),
    }
}

/// Somebody reset the peak counter of an allocator.
fn peak_was_reset(before: &Reading, after: &Reading) -> bool {
    after.allocators.iter().any(|now| {
        let mut before = before.allocators.iter();
        let then = before.find(|then| then.source == now.source);
        then.is_some_and(|then| now.peak_was_reset_since(then))
    })
}

/// A reading as a point: allocators summed, unknown where one of them is.
fn sample(reading: &Reading) -> Sample {
    let total = |level: fn(&AllocatorLevels) -> Option<Bytes>| -> Option<Bytes> {
        let any = !reading.allocators.is_empty();
        any.then(|| reading.allocators.iter().map(level).sum())?
    };
    Sample {
        allocated: total(|levels| levels.allocated.known()),
        reserved: total(|levels| levels.reserved.known()),
        device_used: reading.driver.device_used.known(),
        process_used: reading.driver.process_used.known(),
        ..Sample::default()
    }
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("a session has fewer than 2^32 entries")
}
