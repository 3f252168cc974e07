//! Begin and end of a run, and the recording that they make.
//!
//! Knows nothing of Python, of how a reading is taken, or of verdicts: it is
//! handed cells and readings, and turns them into frames.

mod follow;
mod intervals;
mod looks;
mod loops;
mod oom;
mod overlaps;
mod points;
mod storing;
mod traced;
mod unrecorded;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use gpumem_model::downsample::Downsampler;
use gpumem_model::holders::Allocated;
use gpumem_model::recording::{
    AllocatorLevels, Cell, CellIdx, Changes, Device, DeviceIdx, DeviceKey, DriverLevels, Frame,
    Header, Level, OutsideReading, Reading, Recording, Revision, Run, RunIdx, RunKind, RunLevels,
    Series, SourceHash, SourceState, Status, Unknown,
};
use gpumem_model::rules::Rules;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_model::{named, source_text};

use follow::Followed;
pub(crate) use follow::Notifier;
use gpumem_base::clock::Clock;
use gpumem_base::strand::Strand;
use gpumem_base::text::SourceCode;
use gpumem_machine::sources::SourceDevice;
pub(crate) use intervals::{Task, bounded};
pub(crate) use oom::{OomContext, out_of_memory};
use overlaps::OpenRun;
use points::MAX_POINTS;
pub(crate) use points::Mark;
use storing::Storing;
pub(crate) use traced::{RunAsTraced, Traced};

named! {
    /// How much of a cell's source is kept.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(crate) enum SourceText {
        #[default]
        Full = "full",
        /// Only its hash: runs can be distinguished but not read.
        Hash = "hash",
        /// A number instead of a hash, against which texts could be tried.
        None = "none",
    }
}

#[derive(Debug)]
pub(crate) struct Launch {
    /// The frontend's id of the cell, where it sends one.
    pub(crate) cell_id: Option<String>,
    pub(crate) code: SourceCode,
    pub(crate) label: Option<String>,
    pub(crate) execution_count: Option<u32>,
}

/// What the code around something names as the run that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnclosingRun {
    /// This run, which may have ended.
    Run(RunIdx),
    /// No run of this session.
    Nothing,
    /// It says nothing: a thread of the user's.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct RunStart {
    pub(crate) strand: Strand,
    /// The runs that were open when the levels were requested: some may have ended since.
    pub(crate) beside: Vec<RunIdx>,
    pub(crate) levels: Vec<(SourceDevice, Reading)>,
}

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) strand: Strand,
    pub(crate) status: Status,
    pub(crate) at: Nanos,
    /// Jupyter's number, if it is known better than at the start.
    pub(crate) execution_count: Option<u32>,
    pub(crate) levels: Vec<(SourceDevice, Reading)>,
}

#[derive(Debug, Clone, Copy)]
struct RunContext {
    cell: CellIdx,
    revision: SourceHash,
    parent: Option<RunIdx>,
    execution_count: Option<u32>,
}

/// The session's recording, and the runs that are under way.
pub(crate) struct Recorder {
    clock: Clock,
    source_text: SourceText,
    recording: Recording,
    devices: HashMap<DeviceKey, DeviceIdx>,
    cells: HashMap<String, CellIdx>,
    /// The numbers that stand for sources where not even a hash is kept.
    source_numbers: HashMap<SourceHash, SourceHash>,
    open: BTreeMap<RunIdx, OpenRun>,
    /// The points of all runs that have ended.
    n_points: usize,
    /// The number of points from which the oldest are downsampled.
    thins_at: usize,
    /// The marks and the loops of the open runs.
    marks: HashMap<(RunIdx, DeviceIdx, Series), Downsampler>,
    followed: Option<Followed>,
    /// What a cluster has not fetched, once it has begun to.
    unfetched: Option<Changes>,
    storing: Storing,
    /// The runs in frames since the last call of `take_changed`.
    changed: BTreeSet<RunIdx>,
    /// Before the first run, cells ran that are not recorded.
    follows_unrecorded: bool,
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
            open: BTreeMap::new(),
            n_points: 0,
            thins_at: MAX_POINTS,
            marks: HashMap::new(),
            followed: None,
            unfetched: None,
            storing: Storing::default(),
            changed: BTreeSet::new(),
            follows_unrecorded: false,
        }
    }

    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The runs in frames since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<RunIdx> {
        std::mem::take(&mut self.changed)
    }

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

    pub(crate) fn judge_by(&mut self, rules: Rules) {
        let header = self.recording.header();
        if header.rules != rules {
            let header = header.clone();
            self.emit(Frame::Header(Header { rules, ..header }));
        }
    }

    /// The user means the growth of these names and paths from now on, and of no other.
    pub(crate) fn expect(&mut self, expected: Vec<String>) {
        let header = self.recording.header().clone();
        self.emit(Frame::Header(Header { expected, ..header }));
    }

    pub(crate) fn begin(&mut self, launch: Launch, start: RunStart) -> RunIdx {
        let revision = self.revision(&launch.code.text);
        let cell = self.cell(launch.cell_id, launch.code, revision);
        let place = RunContext {
            cell,
            revision,
            parent: None,
            execution_count: launch.execution_count,
        };
        self.open(RunKind::Cell, place, launch.label, start)
    }

    /// A block begins now, nested in the innermost open run around it.
    ///
    /// Outside of every run it is an outermost run itself, of a cell that stands for
    /// its name: there it has a series of its own. The text of that cell is the code that the block is in, if
    /// that is known.
    pub(crate) fn begin_block(
        &mut self,
        name: &str,
        code: Option<SourceCode>,
        around: EnclosingRun,
        start: RunStart,
    ) -> RunIdx {
        let place = if let Some(parent) = self.innermost(around) {
            let run = self.recording.run(parent);
            RunContext {
                cell: run.cell,
                revision: run.revision,
                parent: Some(parent),
                execution_count: run.execution_count,
            }
        } else {
            let code = code.unwrap_or_else(|| format!("with gpumem.record({name:?}):").into());
            let revision = self.revision(&code.text);
            RunContext {
                cell: self.cell(Some(format!("block:{name}")), code, revision),
                revision,
                parent: None,
                execution_count: None,
            }
        };
        self.open(RunKind::Block, place, Some(name.to_owned()), start)
    }

    /// The run that something belongs to: the nearest open one around it. What names none, in a thread of
    /// the user's, belongs to the cell that began last.
    pub(crate) fn innermost(&self, around: EnclosingRun) -> Option<RunIdx> {
        match around {
            EnclosingRun::Nothing => None,
            EnclosingRun::Run(run) => self
                .with_ancestors(run)
                .find(|it| self.open.contains_key(it)),
            EnclosingRun::Unknown => {
                let open = self.open.keys().rev().copied();
                let mut cells = open.filter(|run| {
                    let run = self.recording.run(*run);
                    run.kind == RunKind::Cell && run.parent.is_none()
                });
                cells.next()
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    fn open(
        &mut self,
        kind: RunKind,
        place: RunContext,
        label: Option<String>,
        start: RunStart,
    ) -> RunIdx {
        let levels = start
            .levels
            .into_iter()
            .map(|(found, reading)| RunLevels {
                device: self.device(found),
                before: reading,
                ..RunLevels::default()
            })
            .collect();
        let idx = RunIdx(index(self.recording.runs().len()));
        let beside_unrecorded = std::mem::take(&mut self.follows_unrecorded);
        self.emit(Frame::Run(Run {
            idx,
            cell: place.cell,
            revision: place.revision,
            parent: place.parent,
            kind,
            label,
            execution_count: place.execution_count,
            started: self.clock.now(),
            levels,
            beside_unrecorded,
            ..Run::default()
        }));
        let open = OpenRun {
            strand: start.strand,
            overlaps: Vec::new(),
        };
        self.open.insert(idx, open);
        self.note_overlaps(idx, start.strand, &start.beside);
        idx
    }

    /// The devices that the run began with and `after` lacks: their levels are unknown now.
    pub(crate) fn unanswered(
        &self,
        run: RunIdx,
        after: &[(SourceDevice, Reading)],
    ) -> Vec<(SourceDevice, Reading)> {
        let began_with = self.recording.run(run).levels.iter();
        began_with
            .map(|levels| (self.recording.device(levels.device), &levels.before))
            .filter(|(device, _)| after.iter().all(|(found, _)| found.key != device.key))
            .map(|(device, before)| {
                let found = SourceDevice {
                    key: device.key.clone(),
                    label: device.label.clone(),
                    name: device.name.clone(),
                    kind: device.kind,
                };
                (found, unanswered(before))
            })
            .collect()
    }

    /// Ends the run with the readings `after`. False if it is not open.
    pub(crate) fn end(&mut self, idx: RunIdx, end: End) -> bool {
        let Some(open) = self.open.remove(&idx) else {
            return false;
        };
        self.note_turn(idx, end.strand);
        let ended_marks = self.marks.extract_if(|(run, ..), _| *run == idx);
        self.n_points += ended_marks.map(|(_, it)| it.points().len()).sum::<usize>();
        let mut run = self.recording.run(idx).clone();
        run.status = end.status;
        run.ended = Some(end.at);
        run.execution_count = end.execution_count.or(run.execution_count);
        run.overlaps = open.overlaps;
        for (found, reading) in end.levels {
            let device = self.device(found);
            // A device that was not there when the run began has no level before it.
            let known = run.levels.iter().position(|it| it.device == device);
            let position = known.unwrap_or_else(|| {
                run.levels.push(RunLevels {
                    device,
                    ..RunLevels::default()
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

    /// What the allocators of each accelerator had handed out when a run ended, where they said it.
    pub(crate) fn handed_out(&self, idx: RunIdx) -> Vec<(String, Allocated)> {
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
        if let Some(unfetched) = &mut self.unfetched {
            unfetched.note(&frame);
        }
        self.changed.extend(frame.run());
        let begins_storing = self.storing.takes(&frame);
        self.recording
            .apply(frame)
            .expect("the recorder's own frames fit each other");
        if begins_storing {
            self.begin_storing();
        }
    }

    fn device(&mut self, found: SourceDevice) -> DeviceIdx {
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
            outside: None,
        }));
        idx
    }

    /// Records what is read outside of every run, of each device whose level is another one than was last known.
    pub(crate) fn note_outside(&mut self, at: Instant, readings: Vec<(SourceDevice, Reading)>) {
        if !self.open.is_empty() {
            return;
        }
        let at = self.clock.at(at);
        for (found, reading) in readings {
            let Some(idx) = self.devices.get(&found.key).copied() else {
                continue;
            };
            let least = found.kind.min_growth(&self.recording.header().rules);
            let known = self.recording.latest_reading(idx).and_then(Reading::in_use);
            let differs = |(known, now): (Bytes, Bytes)| now.since(known).magnitude() >= least;
            if known.zip(reading.in_use()).is_some_and(differs) {
                let outside = Some(Box::new(OutsideReading { at, reading }));
                let device = self.recording.device(idx).clone();
                self.emit(Frame::Device(Device { outside, ..device }));
            }
        }
    }

    fn revision(&mut self, source: &str) -> SourceHash {
        let hash = source_text::hash(source);
        if self.source_text != SourceText::None {
            return hash;
        }
        let number = SourceHash(self.source_numbers.len() as u64);
        *self.source_numbers.entry(hash).or_insert(number)
    }

    fn cell(&mut self, id: Option<String>, code: SourceCode, hash: SourceHash) -> CellIdx {
        let id = id.unwrap_or_else(|| format!("{:016x}", hash.0));
        let known = self.cells.get(&id).copied();
        if let Some(idx) = known.filter(|idx| self.recording.revision(*idx, hash).is_some()) {
            return idx;
        }
        let idx = known.unwrap_or(CellIdx(index(self.cells.len())));
        let SourceCode { text, file } = code;
        let (text, file) = match self.source_text {
            SourceText::Full => (Some(text), file),
            _ => (None, None),
        };
        self.cells.insert(id.clone(), idx);
        self.emit(Frame::Cell(Cell {
            idx,
            id,
            revisions: vec![Revision { hash, text, file }],
        }));
        idx
    }
}

/// The reading of a device that every source of `before` has stopped answering for.
fn unanswered(before: &Reading) -> Reading {
    let failed = || Level::Unknown(Unknown::Failed("it stopped answering inside a run".into()));
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

/// The peak counter of an allocator was reset.
fn peak_was_reset(before: &Reading, after: &Reading) -> bool {
    after.allocators.iter().any(|now| {
        let mut before = before.allocators.iter();
        let then = before.find(|then| then.source == now.source);
        then.is_some_and(|then| now.peak_was_reset_since(then))
    })
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("a session has fewer than 2^32 entries")
}
