//! Recordings for tests, in one line each.
//!
//! ```text
//! recorded(&[("x = f()", &[run(0), run(420).peak(900)]), ("y = g()", &[run(0)])])
//! ```
#![expect(missing_docs, reason = "only tests read it")]

use crate::holders::{
    Bound, DeviceHolders, Holder, IpythonRetention, NameLevel, RootKind, StorageUse, Traits,
};
use crate::recording::{
    AllocatorLevels, Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Frame,
    FrameOrigin, Header, HolderSnapshot, Level, Reading, Recording, Revision, Run, RunIdx, RunKind,
    RunLevels, Sample, Series, Source, Status,
};
use crate::source_text;
use crate::trace::{
    Action, AllocatorEvent, History, HistoryLevels, Replay, Rounding, StackFrame, StackIdx,
    TraceLimits,
};
use crate::units::{ByteDelta, Bytes, Nanos};

pub const MIB: i64 = 1 << 20;
pub const CAPACITY: Bytes = Bytes::gib(16);
/// What the driver reports over what is allocated, for this process and for all.
pub const CONTEXT: i64 = 420;
pub const OTHERS: i64 = 700;

/// One run to be recorded.
#[derive(Debug, Clone)]
pub struct Play {
    pub kept_mib: i64,
    pub peak_mib: i64,
    pub seconds: u64,
    pub status: Status,
    pub n_samples: usize,
    pub steps_mib: Vec<f64>,
    pub known: bool,
    pub is_traced: bool,
    pub kept_blocks: Option<i64>,
    pub held_by: Option<(&'static str, &'static str)>,
    pub bound: Option<Bound>,
    pub graph_mib: i64,
    pub is_displayed: bool,
}

/// A run of one second that keeps `kept_mib` MiB.
pub fn run(kept_mib: i64) -> Play {
    Play {
        kept_mib,
        peak_mib: kept_mib.max(0),
        seconds: 1,
        status: Status::Ok,
        n_samples: 0,
        steps_mib: Vec::new(),
        known: true,
        is_traced: false,
        kept_blocks: None,
        held_by: None,
        bound: None,
        graph_mib: 0,
        is_displayed: false,
    }
}

impl Play {
    /// Rises this many MiB above its start.
    pub fn peak(self, peak_mib: i64) -> Self {
        Self { peak_mib, ..self }
    }

    pub fn seconds(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    pub fn status(self, status: Status) -> Self {
        Self { status, ..self }
    }

    /// How often the sampler read, from the beginning to the end.
    pub fn sampled(self, n_samples: usize) -> Self {
        Self { n_samples, ..self }
    }

    /// A loop that marked its beginning and the end of each step; all steps keep the same.
    pub fn steps(self, n_steps: usize) -> Self {
        let kept = self.kept_mib as f64 / n_steps as f64;
        let steps_mib = vec![kept; n_steps];
        Self { steps_mib, ..self }
    }

    /// A loop that marked its beginning and the end of each step, with what each keeps in MiB.
    pub fn steps_keeping(self, kept_mib: &[i64]) -> Self {
        let steps_mib = kept_mib.iter().map(|kept| *kept as f64).collect();
        Self { steps_mib, ..self }
    }

    /// Its allocations were traced: line 1 takes the peak, in its middle; what it keeps stays.
    pub fn traced(self) -> Self {
        Self {
            is_traced: true,
            ..self
        }
    }

    /// Increases the number of live allocations at its end.
    pub fn blocks(self, kept_blocks: i64) -> Self {
        Self {
            kept_blocks: Some(kept_blocks),
            ..self
        }
    }

    /// A variable of that type holds what it keeps, and all there is.
    pub fn held_by(self, name: &'static str, type_name: &'static str) -> Self {
        let held_by = Some((name, type_name));
        Self { held_by, ..self }
    }

    /// The holder has a bound, and this many entries.
    pub fn filling(self, n: u64, most: u64) -> Self {
        let bound = Some(Bound { n, most });
        Self { bound, ..self }
    }

    /// What holds it keeps a graph, too.
    pub fn with_graph(self) -> Self {
        Self {
            graph_mib: 1,
            ..self
        }
    }

    /// It displays what it keeps, under a name of its own, and IPython keeps that.
    pub fn displayed(self) -> Self {
        Self {
            is_displayed: true,
            ..self
        }
    }

    /// No source answered.
    pub fn unknown(self) -> Self {
        Self {
            known: false,
            ..self
        }
    }
}

/// The runs in this order, two seconds of thought between them, on a simulated
/// device of 16 GiB. Equal sources are one cell.
pub fn recorded(cells: &[(&str, &[Play])]) -> Recording {
    let mut session = SessionBuilder::new();
    for (source, plays) in cells {
        for play in *plays {
            session.play(source, play);
        }
    }
    session.recording
}

/// One name with its growth and its size.
pub fn held(
    run: RunIdx,
    name: &str,
    type_name: &str,
    grown_mib: i64,
    all_mib: i64,
) -> HolderSnapshot {
    let is_one = type_name == "Tensor";
    let holder = Holder {
        grown: Some(ByteDelta::new(grown_mib * MIB)),
        path: format!("{name}[0]"),
        what: format!("{type_name} of tensors"),
        traits: Traits {
            type_name: type_name.to_owned(),
            n_tensors: if is_one { 1 } else { 2 },
            ..Traits::default()
        },
        ..Holder::new(RootKind::Variable, name, mib(all_mib))
    };
    let level = NameLevel {
        kind: RootKind::Variable,
        name: name.to_owned(),
        n_bytes: mib(all_mib),
        n_storages: if is_one { 1 } else { u64::from(run.0) + 1 },
    };
    let holders = DeviceHolders {
        device: "sim:0".to_owned(),
        n_bytes: mib(all_mib),
        roots: vec![holder],
        changed: vec![level],
        parts: vec![(StorageUse::Names, mib(all_mib))],
        ..DeviceHolders::default()
    };
    HolderSnapshot {
        run,
        device: DeviceIdx(0),
        inside_at: None,
        holders,
    }
}

/// Notes what a look found on the first device at the end of a run, or inside of it.
pub fn look(
    recording: &mut Recording,
    run: RunIdx,
    inside_at: Option<Nanos>,
    holders: DeviceHolders,
) {
    let look = HolderSnapshot {
        run,
        device: DeviceIdx(0),
        inside_at,
        holders,
    };
    let frame = Frame::Holders(Box::new(look));
    recording.apply(frame).expect("of a run that is there");
}

/// The newest of the displayed results: those before it are not worth telling beside it.
fn displayed(run: RunIdx, kept_mib: i64) -> HolderSnapshot {
    let name = format!("Out[{}]", run.0 + 1);
    let mut held = held(run, &name, "Tensor", kept_mib, kept_mib);
    held.holders.roots[0].kind = RootKind::OutputHistory;
    held.holders.kept = vec![IpythonRetention {
        place: RootKind::OutputHistory,
        n_bytes: mib(kept_mib),
        path: name.clone(),
        name,
        what: "float32[8]".to_owned(),
    }];
    held
}

struct SessionBuilder {
    recording: Recording,
    now: u64,
    allocated: i64,
    n_blocks: i64,
}

impl SessionBuilder {
    fn new() -> Self {
        let device = Device {
            idx: DeviceIdx(0),
            key: "sim:0".into(),
            label: "sim:0".to_owned(),
            name: "Simulated".to_owned(),
            kind: DeviceKind::Simulated,
            outside: None,
        };
        let mut recording = Recording::new(Header::default());
        recording
            .apply(Frame::Device(device))
            .expect("the first device");
        Self {
            recording,
            now: 1000,
            allocated: 0,
            n_blocks: 1000,
        }
    }

    fn play(&mut self, source: &str, play: &Play) {
        let run = RunIdx(u32::try_from(self.recording.runs().len()).expect("few runs"));
        let cell = self.cell(source);
        let (before, started) = (self.allocated, self.now);
        let ends = play.status != Status::Running;
        self.allocated += play.kept_mib;
        let blocks_before = self.n_blocks;
        self.n_blocks += play.kept_blocks.unwrap_or_default();
        self.now += play.seconds * 1000;
        let levels = RunLevels {
            device: DeviceIdx(0),
            before: reading(play, before, blocks_before),
            after: ends.then(|| reading(play, self.allocated, self.n_blocks)),
            peak_reset: false,
        };
        let frame = Frame::Run(Run {
            idx: run,
            cell,
            revision: source_text::hash(source),
            parent: None,
            kind: RunKind::Cell,
            label: None,
            execution_count: Some(run.0 + 1),
            started: Nanos::millis(started),
            ended: ends.then(|| Nanos::millis(self.now)),
            status: play.status,
            levels: vec![levels],
            oom: None,
            overlaps: Vec::new(),
            beside_unrecorded: false,
        });
        self.recording.apply(frame).expect("a run that fits");
        self.sample(run, play, (before, started));
        self.mark(run, play, (before, started));
        if play.is_traced {
            self.trace(run, play, before, [started, self.now]);
        }
        if let Some((name, type_name)) = play.held_by {
            let mut held = held(run, name, type_name, play.kept_mib, self.allocated);
            let traits = &mut held.holders.roots[0].traits;
            traits.bound = play.bound;
            traits.graph = mib(play.graph_mib);
            let frame = Frame::Holders(Box::new(held));
            self.recording.apply(frame).expect("of that run");
        }
        if play.is_displayed {
            let frame = Frame::Holders(Box::new(displayed(run, play.kept_mib)));
            self.recording.apply(frame).expect("of that run");
        }
        self.now += 2000;
    }

    fn trace(&mut self, run: RunIdx, play: &Play, before: i64, ends: [u64; 2]) {
        let [started, ended] = ends.map(Nanos::millis);
        let middle = Nanos::millis(u64::midpoint(ends[0], ends[1]));
        let mut history = History::new(
            HistoryLevels {
                allocated: mib(before),
                reserved: CAPACITY,
            },
            Rounding::Exact,
        );
        history.frames = vec![StackFrame {
            name: "<module>".to_owned(),
            line: 1,
            origin: FrameOrigin::Own,
            ..StackFrame::default()
        }];
        history.stacks = vec![vec![0]];
        let event = |action, address, size_mib| AllocatorEvent {
            at: middle,
            action,
            address,
            size: mib(size_mib),
            stack: Some(StackIdx(0)),
        };
        history.events = vec![
            event(Action::Alloc, 1, play.kept_mib),
            event(Action::Alloc, 2, play.peak_mib - play.kept_mib),
            event(Action::FreeRequested, 2, 0),
        ];
        let place = (run, DeviceIdx(0));
        let trace = Replay::new(history).trace(place, started, ended, TraceLimits::default());
        let frame = Frame::Trace(Box::new(trace));
        self.recording.apply(frame).expect("the trace of a run");
    }

    fn cell(&mut self, source: &str) -> CellIdx {
        let hash = source_text::hash(source);
        let known = self
            .recording
            .cells()
            .iter()
            .find(|cell| cell.revisions[0].hash == hash);
        if let Some(cell) = known {
            return cell.idx;
        }
        let idx = CellIdx(u32::try_from(self.recording.cells().len()).expect("few cells"));
        let cell = Cell {
            idx,
            id: format!("cell-{}", idx.0),
            revisions: vec![Revision {
                hash,
                text: Some(source.to_owned()),
                ..Revision::default()
            }],
        };
        self.recording
            .apply(Frame::Cell(cell))
            .expect("the next cell");
        idx
    }

    /// Rises to the peak in the middle of the run, then falls to what it keeps.
    fn sample(&mut self, run: RunIdx, play: &Play, from: (i64, u64)) {
        let points = (1..=play.n_samples).map(|n| {
            let share = n as f64 / play.n_samples as f64;
            let (peak, kept) = (play.peak_mib as f64, play.kept_mib as f64);
            let above = if share < 0.5 {
                peak * 2.0 * share
            } else {
                peak + (kept - peak) * (2.0 * share - 1.0)
            };
            let level = rise(from.0, above);
            Sample {
                ordinal: n as u64 - 1,
                device_used: Some(level + mib(CONTEXT + OTHERS)),
                process_used: Some(level + mib(CONTEXT)),
                ..at(play, from.1, share)
            }
        });
        self.points(run, Series::Sampled, points.collect());
    }

    /// Where its loop began, and after each step what all of them keep together.
    fn mark(&mut self, run: RunIdx, play: &Play, from: (i64, u64)) {
        let mut above = 0.0;
        let kept = std::iter::once(&0.0).chain(&play.steps_mib);
        let points = kept.enumerate().map(|(n, kept)| {
            above += kept;
            Sample {
                ordinal: n as u64,
                allocated: Some(rise(from.0, above)),
                ..at(play, from.1, n as f64 / play.steps_mib.len() as f64)
            }
        });
        if !play.steps_mib.is_empty() {
            self.points(run, Series::Marked("step".to_owned()), points.collect());
        }
    }

    fn points(&mut self, run: RunIdx, series: Series, points: Vec<Sample>) {
        let frame = Frame::samples(run, DeviceIdx(0), series, points);
        self.recording.apply(frame).expect("samples in order");
    }
}

/// A level plus some MiB.
fn rise(from_mib: i64, above_mib: f64) -> Bytes {
    let above = ByteDelta::from_f64(above_mib * MIB as f64);
    mib(from_mib) + above.magnitude()
}

/// At a share of the run's time.
fn at(play: &Play, started: u64, share: f64) -> Sample {
    let since = ByteDelta::from_f64(share * play.seconds as f64 * 1e9);
    Sample {
        at: Nanos::millis(started) + Nanos::new(since.magnitude().get()),
        ..Sample::default()
    }
}

pub fn mib(n: i64) -> Bytes {
    Bytes::mib(n.max(0).unsigned_abs())
}

fn reading(play: &Play, allocated: i64, n_blocks: i64) -> Reading {
    let level = |n_mib: i64| {
        if play.known {
            Level::Known(mib(n_mib))
        } else {
            Level::default()
        }
    };
    Reading {
        driver: DriverLevels {
            device_used: level(allocated + CONTEXT + OTHERS),
            process_used: level(allocated + CONTEXT),
            capacity: CAPACITY.into(),
            ..DriverLevels::default()
        },
        allocators: vec![AllocatorLevels {
            allocated: level(allocated),
            n_blocks: play.kept_blocks.map(|_| n_blocks.unsigned_abs()),
            ..AllocatorLevels::unread(Source::Sim)
        }],
    }
}
