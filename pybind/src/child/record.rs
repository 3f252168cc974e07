//! The child's thread: reads its level and appends frames to its file.
//!
//! The file is a recording like any other. It is appended to with plain writes: what is written is there
//! if the child is killed, and nothing is locked that a fork could find held.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpumem_core::downsample::{Downsampler, Spacing};
use gpumem_core::format;
use gpumem_core::recording::{
    Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Finish, Frame, Header, Reading,
    Run, RunIdx, RunKind, RunLevels, Sample, Samples, Series, SourceHash, Status,
};
use gpumem_core::units::{Bytes, Nanos};

use super::found;
use super::level::Level;
use super::place::Place;
use crate::clock::Clock;
use crate::store;

/// A child that only starts another program has done so by then.
const DELAY: Duration = Duration::from_millis(5);
/// A child that lives shorter leaves no file.
const SHORTEST_LIFE: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(10);
/// What is read is on the disk after this, or with the next reading.
const BEAT: Duration = Duration::from_millis(250);
const MAX_POINTS: usize = 512;

/// What the child's threads share.
pub(super) struct Shared {
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    name: String,
    facts: Vec<(String, String)>,
    /// The header's words are others now.
    is_renamed: bool,
    marks: Vec<Nanos>,
    is_over: bool,
    has_ended: bool,
}

impl Shared {
    pub(super) fn new(name: String, clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
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
        let mut state = self.lock();
        name.clone_into(&mut state.name);
        state.facts = facts;
        state.is_renamed = true;
    }

    /// A step ends now. Its level is what the thread reads next to it.
    pub(super) fn mark(&self) {
        const MAX_MARKS: usize = 1 << 16;
        let now = self.clock.now();
        let mut state = self.lock();
        if state.marks.len() < MAX_MARKS && !state.has_ended {
            state.marks.push(now);
        }
    }

    pub(super) fn end(&self, patience: Duration) {
        let mut state = self.lock();
        state.is_over = true;
        self.changed.notify_all();
        let until = Instant::now() + patience;
        while !state.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.changed.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// True where the child ends.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        while !state.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.is_over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's life.
pub(super) fn run(shared: &Shared, place: &Place) {
    record(shared, place);
    shared.lock().has_ended = true;
    shared.changed.notify_all();
}

/// `None` where nothing can be read or written: the child runs on.
fn record(shared: &Shared, place: &Place) -> Option<()> {
    let began = place.clock.now();
    if shared.rest(DELAY) {
        return None;
    }
    let mut level = Level::open()?;
    let mut points = Downsampler::new(MAX_POINTS, Spacing::Time);
    let mut written: Option<Written> = None;
    let mut interval = SHORTEST;
    let mut written_at = Instant::now();
    loop {
        let levels = level.read()?;
        let is_thinned = points.push(Sample {
            process_used: Some(levels.own),
            allocated: levels.allocated,
            at: place.clock.now(),
            ..Sample::default()
        });
        if is_thinned {
            interval = LONGEST.min(2 * interval);
        }
        // At its end the child has let go of what it kept: that is not read any more.
        let is_over = shared.rest(interval);
        let life = place.clock.now().since(began);
        let is_short = life < nanos(SHORTEST_LIFE);
        let beat = written.as_ref().map_or(Duration::ZERO, |_| BEAT);
        if !is_short && (is_over || written_at.elapsed() >= beat) {
            written_at = Instant::now();
            let to = match &mut written {
                Some(written) => written,
                place_of => place_of.insert(Written::begin(shared, place, began, points.points())?),
            };
            to.add(shared, place, points.points(), is_over)?;
        }
        if is_over {
            return Some(());
        }
    }
}

/// What is in the child's file.
struct Written {
    file: File,
    began: Nanos,
    before: Option<Bytes>,
    points: Vec<Sample>,
    n_marks: usize,
}

impl Written {
    fn begin(shared: &Shared, place: &Place, began: Nanos, points: &[Sample]) -> Option<Self> {
        let pid = std::process::id();
        let path = found::file(&place.folder, pid, began);
        found::make_room(&place.folder);
        let before = points.first().and_then(|point| point.process_used);
        let mut written = Self {
            file: create(&path).ok()?,
            began,
            before,
            points: Vec::new(),
            n_marks: 0,
        };
        let mut state = shared.lock();
        state.is_renamed = false;
        let frames = [
            Frame::Header(header(&state, place)),
            Frame::Device(Device {
                idx: DeviceIdx(0),
                key: "host".into(),
                label: "host".to_owned(),
                name: String::new(),
                kind: DeviceKind::Host,
            }),
            Frame::Cell(Cell {
                idx: CellIdx(0),
                id: format!("process:{pid}"),
                revisions: Vec::new(),
            }),
            Frame::Run(written.run(&state.name, None)),
        ];
        drop(state);
        written.append(frames)?;
        Some(written)
    }

    /// What is new.
    fn add(
        &mut self,
        shared: &Shared,
        place: &Place,
        points: &[Sample],
        is_over: bool,
    ) -> Option<()> {
        let mut frames = Vec::new();
        let mut state = shared.lock();
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
        let n_same = self.points.iter().zip(points).take_while(|(a, b)| a == b);
        let n_same = n_same.count();
        let news = points[n_same..].to_vec();
        self.points = points.to_vec();
        let series = [
            (Series::Sampled, news),
            (Series::Marked("step".to_owned()), marks),
        ];
        let series = series.into_iter().filter(|(_, points)| !points.is_empty());
        frames.extend(series.map(|(series, points)| {
            Frame::Samples(Samples {
                run: RunIdx(0),
                device: DeviceIdx(0),
                series,
                points: points.into(),
            })
        }));
        if is_over {
            let at = place.clock.now();
            let used = points.last().and_then(|point| point.process_used);
            frames.push(Frame::Run(self.run(&name, Some((at, used)))));
            frames.push(Frame::Finish(Finish { at }));
        }
        self.append(frames)
    }

    fn run(&self, name: &str, ended: Option<(Nanos, Option<Bytes>)>) -> Run {
        Run {
            idx: RunIdx(0),
            cell: CellIdx(0),
            revision: SourceHash(0),
            parent: None,
            kind: RunKind::Block,
            label: Some(name.to_owned()),
            execution_count: None,
            started: self.began,
            ended: ended.map(|(at, _)| at),
            status: if ended.is_some() {
                Status::Ok
            } else {
                Status::Running
            },
            levels: vec![RunLevels {
                device: DeviceIdx(0),
                before: reading(self.before),
                after: ended.map(|(_, used)| reading(used)),
                peak_reset: false,
            }],
            oom: None,
            overlaps: Vec::new(),
        }
    }

    /// In one write: a reader sees all of it or nothing.
    fn append(&mut self, frames: impl IntoIterator<Item = Frame>) -> Option<()> {
        self.file.write_all(&format::encode_frames(frames)).ok()
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

fn header(state: &State, place: &Place) -> Header {
    let known = [
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

/// For its owner alone.
fn create(path: &Path) -> io::Result<File> {
    store::create_folder(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::new(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
