//! The store's thread: writes what is handed over, and what a run under way has met so far.
//!
//! It never waits for the GIL and holds none of the session's locks.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpumem_jobs::history::{PrunableFile, to_prune};
use gpumem_model::recording::{
    Device, DeviceIdx, Finish, Frame, Header, Run, RunIdx, Sample, Series,
};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_wire as wire;

use super::batch::coalesced;
use super::file::{self, Compacting, FrameFile, SessionFacts, StoreFault};
use super::folder::{self, SessionFile};
use super::origin::{SessionOrigin, with_facts};
use super::owner;
use super::queue::{Batch, PAUSE, StoreShared, WatchedRun};
use crate::recording::child;
use crate::recording::oom::observer;
use crate::recording::recorder::{OomContext, out_of_memory};
use gpumem_base::clock::Clock;
use gpumem_base::threads::{self, Progress};

/// The longest time until an open run is on the disk.
const BEAT: Duration = Duration::from_millis(500);
/// How long the thread stays awake after the last frame: waking it costs a cell more than all else
/// that it does here.
const LINGER: Duration = Duration::from_secs(30);
/// After trouble the next try comes after this, and after twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A disk that takes nothing makes no more than this wait in memory, in bytes.
const MAX_WAITING: usize = 32 << 20;
/// A power failure costs no more than what was written in this time.
const SYNC: Duration = Duration::from_secs(10);
/// A file is compacted when it has doubled, and this more in bytes.
const SLACK: u64 = 2 << 20;
/// A session that loses its file again and again is not kept.
const MAX_FILES: u32 = 9;

/// What is to be kept, and where.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) folder: PathBuf,
    pub(super) origin: SessionOrigin,
    pub(super) session: String,
    pub(super) clock: Clock,
    /// It is one rank of a job, of which another may be on a machine that this one cannot look at.
    pub(super) is_rank: bool,
}

pub(super) struct Writer {
    shared: Arc<StoreShared>,
    plan: Plan,
    facts: SessionFacts,
    file: Option<FrameFile>,
    header: Header,
    /// Frames that are not in the file yet.
    unwritten: Vec<u8>,
    /// Some were lost on the way: all have to be handed over again.
    lacks_frames: bool,
    compacting: Option<Compacting>,
    /// The file is compacted when it is that long.
    compacts_at: u64,
    devices: Vec<Device>,
    watched: Option<OpenRunSamples>,
    n_handed: u64,
    retry: Retry,
    active: Instant,
}

struct OpenRunSamples {
    watched: WatchedRun,
    run: Option<Run>,
    /// The samples of it that are on their way to the disk.
    known: Vec<(DeviceIdx, Vec<Sample>)>,
}

#[derive(Default)]
struct Retry {
    pause: Option<(Instant, Duration)>,
    /// There is no sense in trying.
    is_given_up: bool,
}

impl Writer {
    pub(super) fn new(shared: Arc<StoreShared>, plan: Plan) -> Self {
        Self {
            shared,
            facts: plan.origin.facts("session"),
            plan,
            file: None,
            header: Header::default(),
            unwritten: Vec::new(),
            lacks_frames: false,
            compacting: None,
            compacts_at: SLACK,
            devices: Vec::new(),
            watched: None,
            n_handed: 0,
            retry: Retry::default(),
            active: Instant::now(),
        }
    }

    pub(super) fn run(&mut self) -> Progress {
        loop {
            let taken = self.shared.take(self.patience());
            let is_over = taken.is_over;
            self.receive(taken);
            self.look_into_open_run();
            if is_over {
                self.add_farewell();
            }
            if self.retry.is_due() || is_over {
                self.store();
            }
            self.compact();
            if let Some(file) = &mut self.file {
                file.sync(if is_over { Duration::ZERO } else { SYNC });
            }
            if is_over {
                break;
            }
            if threads::are_paused() {
                return Progress::Paused;
            }
        }
        self.shared.note_end();
        Progress::Done
    }

    /// How long to wait for more.
    fn patience(&self) -> Option<Duration> {
        let is_waiting = !self.unwritten.is_empty() && !self.retry.is_given_up;
        let is_unsynced = self.file.as_ref().is_some_and(FrameFile::is_unsynced);
        if self.watched.is_some() || is_waiting {
            Some(BEAT)
        } else if self.active.elapsed() < LINGER || is_unsynced {
            // The next cell may begin at any time.
            Some(PAUSE)
        } else {
            None
        }
    }

    fn receive(&mut self, taken: Batch) {
        self.n_handed = taken.n_handed;
        self.lacks_frames |= taken.lacks_frames;
        if !taken.frames.is_empty() {
            self.active = Instant::now();
        }
        if let Some(watched) = taken.watched {
            self.watched = Some(OpenRunSamples {
                watched,
                run: None,
                known: Vec::new(),
            });
        }
        for frame in &taken.frames {
            self.note(frame);
        }
        self.add(taken.frames);
    }

    fn note(&mut self, frame: &Frame) {
        match frame {
            Frame::Header(header) => self.header = with_facts(header, &self.facts),
            Frame::Device(device) => {
                let idx = device.idx.get();
                if idx < self.devices.len() {
                    self.devices[idx] = device.clone();
                } else {
                    self.devices.push(device.clone());
                }
            }
            Frame::Run(run) => {
                let watching = self.watched.as_mut();
                if let Some(watching) = watching.filter(|it| it.watched.run == run.idx) {
                    if run.ended.is_some() {
                        self.watched = None;
                    } else {
                        watching.run = Some(run.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, frames: Vec<Frame>) {
        if self.retry.is_given_up {
            return;
        }
        for frame in coalesced(frames) {
            let frame = match frame {
                Frame::Header(_) => Frame::Header(self.header.clone()),
                frame => frame,
            };
            self.unwritten.extend(wire::encode_frames([frame]));
        }
        if self.unwritten.len() > MAX_WAITING {
            self.unwritten.clear();
            self.lacks_frames = true;
        }
    }

    /// The session ends in order. A file whose beginning is damaged still says what it is.
    fn add_farewell(&mut self) {
        let header = [Frame::Header(self.header.clone())].into_iter();
        let devices = self.devices.iter().cloned().map(Frame::Device);
        let at = self.plan.clock.now();
        let finish = [Frame::Finish(Finish { at })];
        self.add(header.chain(devices).chain(finish).collect());
    }

    /// The run's samples so far, and the memory that ran out in it: should the process die now,
    /// nobody else can tell.
    fn look_into_open_run(&mut self) {
        let Some(watching) = &mut self.watched else {
            return;
        };
        let Some(run) = watching.run.clone() else {
            return;
        };
        let mut frames = Vec::new();
        for (key, points) in watching.watched.so_far.get() {
            let known = self.devices.iter().find(|device| device.key == key);
            let Some(device) = known.map(|device| device.idx) else {
                continue;
            };
            if run.levels.iter().all(|levels| levels.device != device) {
                continue;
            }
            frames.extend(watching.news(device, points));
        }
        if let Some(report) = observer::since(watching.watched.ooms) {
            watching.watched.ooms = observer::mark();
            let names = OomContext {
                devices: &self.devices,
                keeps_names: watching.watched.keeps_names,
            };
            let now = self.plan.clock.now();
            let oom = out_of_memory(&names, self.plan.clock, now, report);
            frames.push(Frame::Run(Run {
                oom: Some(Box::new(oom)),
                ..run
            }));
        }
        self.add(frames);
    }

    fn store(&mut self) {
        if self.retry.is_given_up || self.unwritten.is_empty() {
            return;
        }
        match self.write() {
            Ok(path) => {
                self.unwritten.clear();
                self.retry = Retry::default();
                if self.lacks_frames {
                    self.lacks_frames = false;
                    self.shared.want_all();
                } else {
                    self.shared.note_stored(self.n_handed, path);
                }
            }
            Err(fault) => {
                if matches!(fault, StoreFault::Deleted) {
                    self.unwritten = Vec::new();
                    self.retry.is_given_up = true;
                }
                self.retry.put_off();
                let words = format!("this session is not kept: {}", fault.message());
                self.shared.note_trouble(&words);
            }
        }
    }

    fn write(&mut self) -> Result<String, StoreFault> {
        let appended = match &mut self.file {
            Some(file) => file.append(&self.unwritten),
            None => self.begin(),
        };
        if let Err(StoreFault::Changed(words)) = appended {
            self.begin_again(words)?;
        } else {
            appended?;
        }
        let file = self.file.as_ref();
        Ok(file.map_or_else(String::new, |file| {
            file.path().to_string_lossy().into_owned()
        }))
    }

    /// Creates the session's file; older ones make room.
    fn begin(&mut self) -> Result<(), StoreFault> {
        let plan = &self.plan;
        folder::create_folder(&plan.folder)?;
        if !wire::decode_header(&self.unwritten).is_some_and(|it| it == self.header) {
            // What came before the rest was lost on the way.
            let header = wire::encode_frames([Frame::Header(self.header.clone())]);
            self.unwritten.splice(0..0, header);
        }
        for nth in 1..=MAX_FILES {
            let entry = SessionFile::new(
                &plan.folder,
                plan.clock.wall_anchor(),
                &plan.session,
                plan.origin.notebook.as_deref(),
                nth,
            );
            if entry.path.symlink_metadata().is_ok() {
                continue;
            }
            let file = FrameFile::create(&entry.path, &self.unwritten)?;
            self.compacts_at = 2 * file.len() + SLACK;
            self.file = Some(file);
            if !plan.is_rank {
                prune(plan, &entry);
            }
            return Ok(());
        }
        Err(StoreFault::Changed("its file was changed again and again"))
    }

    /// Continues in a new file with the sound part of a file that another process wrote to.
    fn begin_again(&mut self, words: &str) -> Result<(), StoreFault> {
        self.compacting = None;
        if let Some(file) = self.file.take() {
            let (sound, is_whole) = file.sound().unwrap_or_default();
            let sound = sound
                .frames()
                .skip_while(|it| matches!(it, Frame::Header(_)));
            self.unwritten.splice(0..0, wire::encode_frames(sound));
            self.lacks_frames |= !is_whole;
        }
        self.begin()?;
        let file = self.file.as_ref();
        let path = file.map_or(&*self.plan.folder, FrameFile::path);
        self.shared.note_lost(format!(
            "{words}: this session goes on in {}",
            path.display()
        ));
        Ok(())
    }

    /// Leaves out what was replaced, in a thread of its own: until it is done, the file grows on. If that is
    /// impossible, there is nothing that the user could do.
    fn compact(&mut self) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Some(compacting) = &self.compacting {
            let Some(compacted) = compacting.poll() else {
                return;
            };
            self.compacting = None;
            drop(compacted.and_then(|compacted| file.replace_by(compacted)));
            self.compacts_at = 2 * file.len() + SLACK;
        } else if file.len() > self.compacts_at {
            self.compacting = Some(file.compacted());
        }
    }
}

impl OpenRunSamples {
    /// The points that are new, or all from the first that has changed.
    fn news(&mut self, device: DeviceIdx, points: Vec<Sample>) -> Option<Frame> {
        let position = self.known.iter().position(|(idx, _)| *idx == device);
        let position = position.unwrap_or_else(|| {
            self.known.push((device, Vec::new()));
            self.known.len() - 1
        });
        let known = &mut self.known[position].1;
        let same = known.iter().zip(&points).take_while(|(a, b)| a == b);
        let n_same = same.count();
        let run: RunIdx = self.watched.run;
        let news: Vec<Sample> = points[n_same..].to_vec();
        *known = points;
        (!news.is_empty()).then(|| Frame::samples(run, device, Series::Sampled, news))
    }
}

impl Retry {
    fn is_due(&self) -> bool {
        self.pause.is_none_or(|(at, _)| Instant::now() >= at)
    }

    fn put_off(&mut self) {
        let pause = self.pause.map_or(FIRST_PAUSE, |(_, pause)| pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        self.pause = Some((Instant::now() + pause, pause));
    }
}

/// Deletes the sessions that are too many. Baselines lie in a folder of their own.
fn prune(plan: &Plan, own: &SessionFile) {
    if !folder::is_marked(&plan.folder) {
        return;
    }
    let mut entries = folder::entries(&plan.folder, now_millis());
    entries.retain(|entry| entry.path == own.path || entry.is_own());
    let size = |entry: &SessionFile| PrunableFile {
        size: Bytes::new(entry.size()),
        is_in_use: entry.path == own.path,
    };
    let mut kept: Vec<PrunableFile> = entries.iter().map(size).collect();
    // Only those that would go are read.
    for idx in to_prune(&kept) {
        kept[idx].is_in_use |= is_in_use(&entries[idx]);
    }
    for idx in to_prune(&kept) {
        if !is_in_use(&entries[idx]) {
            entries[idx].delete();
        }
    }
    delete_left_over(&plan.folder);
}

/// Deletes the sessions in a folder that gpumem made, but for those under way, and the folder if it holds nothing
/// else.
pub(crate) fn delete_sessions(folder: &Path) {
    if !folder::is_own(folder, Metadata::is_dir) || !folder::is_marked(folder) {
        return;
    }
    for entry in folder::entries(folder, now_millis()) {
        if !is_in_use(&entry) {
            entry.delete();
        }
    }
    delete_left_over(folder);
    folder::delete_empty(folder);
}

/// Deletes what sessions left that are not there any more.
fn delete_left_over(folder: &Path) {
    let there = folder::entries(folder, now_millis()).into_iter();
    child::prune(folder, &there.map(|entry| entry.id).collect());
    folder::delete_unfinished(folder);
}

fn is_in_use(entry: &SessionFile) -> bool {
    file::read_ends(&entry.path).is_ok_and(|stored| {
        let has_ended = stored.recording.finish().is_some();
        !has_ended && owner::is_running(&entry.path, &stored.facts) != Some(false)
    })
}

/// Milliseconds since 1970 on the wall clock.
pub(super) fn now_millis() -> u64 {
    now_nanos() / Nanos::millis(1).get()
}

pub(super) fn now_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}
