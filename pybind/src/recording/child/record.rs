//! The child's thread: reads its level and appends frames to its file.
//!
//! The file is like that of a session: what is written is there if the child is killed, and nothing is locked
//! that a fork could find held.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use gpumem_model::downsample::{Downsampler, Spacing};
use gpumem_model::recording::{
    Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Finish, Frame, Header, Reading,
    Run, RunIdx, RunKind, RunLevels, Sample, Series, Status,
};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_wire as wire;

use super::found;
use super::level::LevelReader;
use super::place::ChildFolder;
use crate::recording::store::{self, FrameFile, KEPT, StoreFault};
use gpumem_base::clock::Clock;
use gpumem_base::locks::{lock, unpoisoned};
use gpumem_base::threads::{self, Progress};

/// A child that only starts another program has done so by then.
const DELAY: Duration = Duration::from_millis(5);
/// A child that lives shorter leaves no file.
const SHORTEST_LIFE: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(10);
/// What is read is on the disk after this, or with the next reading.
const BEAT: Duration = Duration::from_millis(250);
const MAX_POINTS: usize = 512;
/// The most bytes that wait for a blocked disk.
const MAX_WAITING: usize = 1 << 20;

pub(super) struct ChildShared {
    clock: Clock,
    state: Mutex<ChildState>,
    changed: Condvar,
}

struct ChildState {
    name: String,
    facts: Vec<(String, String)>,
    /// The header's words are others now.
    is_renamed: bool,
    marks: Vec<Nanos>,
    is_over: bool,
    has_ended: bool,
}

impl ChildShared {
    pub(super) fn new(name: String, clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::new(ChildState {
                name,
                facts: Vec::new(),
                is_renamed: false,
                marks: Vec::new(),
                is_over: false,
                has_ended: false,
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn rename(&self, name: &str, facts: Vec<(String, String)>) {
        let mut state = lock(&self.state);
        name.clone_into(&mut state.name);
        state.facts = facts;
        state.is_renamed = true;
    }

    /// A step ends now. Its level is what the thread reads next to it.
    pub(super) fn mark(&self) {
        const MAX_MARKS: usize = 1 << 16;
        let now = self.clock.now();
        let mut state = lock(&self.state);
        if state.marks.len() < MAX_MARKS && !state.has_ended {
            state.marks.push(now);
        }
    }

    pub(super) fn end(&self, patience: Duration) {
        let mut state = lock(&self.state);
        state.is_over = true;
        self.changed.notify_all();
        let until = Instant::now() + patience;
        while !state.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            (state, _) = unpoisoned(self.changed.wait_timeout(state, left));
        }
    }

    fn wake(&self) {
        drop(lock(&self.state));
        self.changed.notify_all();
    }

    /// True where the child ends. Shorter if threads pause.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = lock(&self.state);
        while !state.is_over && !threads::are_paused() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            (state, _) = unpoisoned(self.changed.wait_timeout(state, left));
        }
        state.is_over
    }
}

pub(super) fn start(shared: &Arc<ChildShared>, place: &ChildFolder) -> io::Result<()> {
    let mut recorder = ChildRecorder {
        shared: Arc::clone(shared),
        place: place.clone(),
        began: place.clock.now(),
        level: None,
        points: Downsampler::new(MAX_POINTS, Spacing::Time),
        interval: SHORTEST,
        written: None,
        written_at: Instant::now(),
    };
    let work = move || {
        if recorder.record().is_some() {
            return Progress::Paused;
        }
        lock(&recorder.shared.state).has_ended = true;
        recorder.shared.changed.notify_all();
        Progress::Done
    };
    let shared = Arc::clone(shared);
    threads::start("gpumem-child", work, move || shared.wake())
}

struct ChildRecorder {
    shared: Arc<ChildShared>,
    place: ChildFolder,
    began: Nanos,
    level: Option<LevelReader>,
    points: Downsampler,
    interval: Duration,
    written: Option<ChildFile>,
    written_at: Instant,
}

impl ChildRecorder {
    /// The thread's life, until threads pause; `None` where nothing more is read or written: the child
    /// runs on.
    fn record(&mut self) -> Option<()> {
        if self.level.is_none() {
            if self.shared.rest(DELAY) {
                return None;
            }
            self.level = Some(LevelReader::open()?);
        }
        while !threads::are_paused() {
            let levels = self.level.as_mut()?.read()?;
            let is_thinned = self.points.push(Sample {
                process_used: Some(levels.own),
                allocated: levels.allocated,
                at: self.place.clock.now(),
                ..Sample::default()
            });
            if is_thinned {
                self.interval = LONGEST.min(2 * self.interval);
            }
            // At its end the child has freed its memory, so it is not read again.
            let is_over = self.shared.rest(self.interval);
            let life = self.place.clock.now().since(self.began);
            let is_short = life < nanos(SHORTEST_LIFE);
            let beat = self.written.as_ref().map_or(Duration::ZERO, |_| BEAT);
            if !is_short && (is_over || self.written_at.elapsed() >= beat) {
                self.write(is_over)?;
            }
            if is_over {
                return None;
            }
        }
        Some(())
    }

    fn write(&mut self, is_over: bool) -> Option<()> {
        let (shared, place, points) = (&*self.shared, &self.place, self.points.points());
        self.written_at = Instant::now();
        let to = match &mut self.written {
            Some(written) => written,
            place_of => place_of.insert(ChildFile::begin(shared, place, self.began, points)?),
        };
        to.add(shared, place, points, is_over)
    }
}

/// What is in the child's file.
struct ChildFile {
    file: FrameFile,
    unwritten: Vec<u8>,
    began: Nanos,
    before: Option<Bytes>,
    points: Vec<Sample>,
    n_marks: usize,
}

impl ChildFile {
    fn begin(
        shared: &ChildShared,
        place: &ChildFolder,
        began: Nanos,
        points: &[Sample],
    ) -> Option<Self> {
        let pid = std::process::id();
        let path = found::file(&place.folder, pid, began);
        store::create_folder(path.parent().unwrap_or(Path::new("."))).ok()?;
        found::make_room(&place.folder);
        let before = points.first().and_then(|point| point.process_used);
        let mut state = lock(&shared.state);
        state.is_renamed = false;
        let frames = [
            Frame::Header(header(&state, place)),
            Frame::Device(Device {
                idx: DeviceIdx(0),
                key: "host".into(),
                label: "host".to_owned(),
                name: String::new(),
                kind: DeviceKind::Host,
                outside: None,
            }),
            Frame::Cell(Cell {
                idx: CellIdx(0),
                id: format!("process:{pid}"),
                revisions: Vec::new(),
            }),
            Frame::Run(child_run(&state.name, began, before, None)),
        ];
        drop(state);
        Some(Self {
            file: FrameFile::create(&path, &wire::encode_frames(frames)).ok()?,
            unwritten: Vec::new(),
            began,
            before,
            points: Vec::new(),
            n_marks: 0,
        })
    }

    fn add(
        &mut self,
        shared: &ChildShared,
        place: &ChildFolder,
        points: &[Sample],
        is_over: bool,
    ) -> Option<()> {
        let mut frames = Vec::new();
        let mut state = lock(&shared.state);
        if std::mem::take(&mut state.is_renamed) {
            frames.push(Frame::Header(header(&state, place)));
        }
        let marks = &state.marks[self.n_marks..];
        let ordinals = (self.n_marks as u64)..;
        let marks = marks.iter().zip(ordinals).map(|(at, ordinal)| Sample {
            at: *at,
            ordinal,
            ..Sample::default()
        });
        let marks: Vec<Sample> = marks.collect();
        self.n_marks += marks.len();
        let name = state.name.clone();
        drop(state);
        let same = self.points.iter().zip(points).take_while(|(a, b)| a == b);
        let n_same = same.count();
        let news = points[n_same..].to_vec();
        self.points = points.to_vec();
        let series = [
            (Series::Sampled, news),
            (Series::Marked("step".to_owned()), marks),
        ];
        let series = series.into_iter().filter(|(_, points)| !points.is_empty());
        frames.extend(
            series.map(|(series, points)| Frame::samples(RunIdx(0), DeviceIdx(0), series, points)),
        );
        if is_over {
            let at = place.clock.now();
            let used = points.last().and_then(|point| point.process_used);
            let ended = Some((at, used));
            frames.push(Frame::Run(child_run(&name, self.began, self.before, ended)));
            frames.push(Frame::Finish(Finish { at }));
        }
        self.append(frames)
    }

    /// A reader sees all of it or nothing. What a full disk does not take comes with the next.
    fn append(&mut self, frames: Vec<Frame>) -> Option<()> {
        self.unwritten.extend(wire::encode_frames(frames));
        match self.file.append(&self.unwritten) {
            Ok(()) => self.unwritten.clear(),
            Err(StoreFault::Full) if self.unwritten.len() < MAX_WAITING => {}
            Err(_) => return None,
        }
        Some(())
    }
}

fn child_run(
    name: &str,
    began: Nanos,
    before: Option<Bytes>,
    ended: Option<(Nanos, Option<Bytes>)>,
) -> Run {
    Run {
        kind: RunKind::Block,
        label: Some(name.to_owned()),
        started: began,
        ended: ended.map(|(at, _)| at),
        status: ended.map_or(Status::Running, |_| Status::Ok),
        levels: vec![RunLevels {
            device: DeviceIdx(0),
            before: reading(before),
            after: ended.map(|(_, used)| reading(used)),
            peak_reset: false,
        }],
        ..Run::default()
    }
}

fn reading(used: Option<Bytes>) -> Reading {
    Reading {
        driver: DriverLevels {
            process_used: used.map(Into::into).unwrap_or_default(),
            ..DriverLevels::default()
        },
        ..Reading::default()
    }
}

fn header(state: &ChildState, place: &ChildFolder) -> Header {
    let known = [
        (KEPT, "process".to_owned()),
        ("name", state.name.clone()),
        ("session", place.session.clone()),
        ("parent", parent_pid().to_string()),
    ];
    let known = known.map(|(name, value)| (name.to_owned(), value));
    let mut process: Vec<(String, String)> = store::process_facts().into_iter().collect();
    process.extend(known);
    process.extend(state.facts.iter().cloned());
    Header {
        session: format!("{}-{}", place.session, std::process::id()),
        wall_anchor: place.clock.wall_anchor(),
        versions: vec![("gpumem".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
        process,
        ..Header::default()
    }
}

#[cfg(unix)]
fn parent_pid() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent_pid() -> u32 {
    0
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::new(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
