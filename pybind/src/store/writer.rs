//! The store's thread: writes what is handed over, and what a run under way has met so far.
//!
//! It never waits for the GIL and holds none of the session's locks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpumem_core::history::{Kept, to_prune};
use gpumem_core::recording::{
    Device, DeviceIdx, Frame, Run, RunIdx, Sample, Samples, Series, Status,
};
use gpumem_core::units::{Bytes, Nanos};

use super::file::{self, Facts, Fault, SessionFile, put_aside, salvaged};
use super::folder::{self, Entry};
use super::handover::{PAUSE, Shared, Taken, Watched};
use super::origin::Origin;
use super::pending::Pending;
use super::remains;
use crate::child;
use crate::clock::Clock;
use crate::oom::observer;
use crate::recorder::{Names, out_of_memory};
use crate::threads::{self, Progress};

/// What is under way is on the disk after so long at most.
const BEAT: Duration = Duration::from_millis(500);
/// The thread stays awake for so long after the last frame: waking it costs a cell more than all else
/// that it does here.
const LINGER: Duration = Duration::from_secs(30);
/// After trouble the next try comes after this, and after twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Bytes that SQLite holds: they are not the user's.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes that SQLite held after the last write.
#[cfg(target_os = "linux")]
pub(crate) fn held() -> Bytes {
    Bytes::new(HELD.load(Ordering::Relaxed) as u64)
}

/// What is to be kept, and where.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) folder: PathBuf,
    pub(super) origin: Origin,
    pub(super) session: String,
    pub(super) clock: Clock,
    /// It is one rank of a job, of which another may be on a machine that this one cannot look at.
    pub(super) is_rank: bool,
}

/// The thread's own.
pub(super) struct Writer {
    shared: Arc<Shared>,
    plan: Plan,
    file: Option<SessionFile>,
    pending: Pending,
    devices: Vec<Device>,
    /// The latest run that is nested in no other.
    last: Option<Run>,
    watched: Option<Watching>,
    n_handed: u64,
    retry: Retry,
    active: Instant,
}

/// A run under way.
struct Watching {
    watched: Watched,
    run: Option<Run>,
    /// The samples of it that are on their way to the disk.
    known: Vec<(DeviceIdx, Vec<Sample>)>,
}

/// When to try again.
#[derive(Default)]
struct Retry {
    pause: Option<(Instant, Duration)>,
    /// There is no sense in trying.
    is_given_up: bool,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, plan: Plan) -> Self {
        Self {
            shared,
            plan,
            file: None,
            pending: Pending::default(),
            devices: Vec::new(),
            last: None,
            watched: None,
            n_handed: 0,
            retry: Retry::default(),
            active: Instant::now(),
        }
    }

    /// The thread's life.
    pub(super) fn run(&mut self) -> Progress {
        loop {
            let taken = self.shared.take(self.patience());
            let is_over = taken.is_over;
            self.receive(taken);
            self.look_into_open_run();
            if self.retry.is_due() || is_over {
                let facts = if is_over {
                    self.farewell()
                } else {
                    Facts::new()
                };
                self.store(&facts);
            }
            if is_over {
                break;
            }
            if threads::are_paused() {
                return Progress::Paused;
            }
        }
        if let Some(file) = self.file.take() {
            file.close();
        }
        HELD.store(file::held(), Ordering::Relaxed);
        self.shared.note_end();
        Progress::Done
    }

    /// How long to wait for more.
    fn patience(&self) -> Option<Duration> {
        let is_waiting = !self.pending.is_empty() && !self.retry.is_given_up;
        if self.watched.is_some() || is_waiting {
            Some(BEAT)
        } else if self.active.elapsed() < LINGER {
            // The next cell may begin at any time.
            Some(PAUSE)
        } else {
            None
        }
    }

    fn receive(&mut self, taken: Taken) {
        self.n_handed = taken.n_handed;
        self.pending.note_dropped(taken.n_dropped);
        if !taken.frames.is_empty() {
            self.active = Instant::now();
        }
        if let Some(watched) = taken.watched {
            self.watched = Some(Watching {
                watched,
                run: None,
                known: Vec::new(),
            });
        }
        for frame in taken.frames {
            self.note(&frame);
            if !self.retry.is_given_up {
                self.pending.add(frame);
            }
        }
    }

    fn note(&mut self, frame: &Frame) {
        match frame {
            Frame::Device(device) => {
                let idx = device.idx.get();
                if idx < self.devices.len() {
                    self.devices[idx] = device.clone();
                } else {
                    self.devices.push(device.clone());
                }
            }
            Frame::Run(run) => {
                let is_latest = |last: &Run| last.idx <= run.idx;
                if run.parent.is_none() && self.last.as_ref().is_none_or(is_latest) {
                    self.last = Some(run.clone());
                }
                let is_watched = |it: &mut Watching| it.watched.run == run.idx;
                if run.ended.is_some() {
                    self.watched.take_if(is_watched);
                } else if let Some(watching) =
                    self.watched.as_mut().filter(|it| it.watched.run == run.idx)
                {
                    watching.run = Some(run.clone());
                }
            }
            _ => {}
        }
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
            let names = Names {
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
        for frame in frames {
            if !self.retry.is_given_up {
                self.pending.add(frame);
            }
        }
    }

    fn store(&mut self, facts: &Facts) {
        if self.retry.is_given_up || (self.pending.is_empty() && facts.is_empty()) {
            return;
        }
        let stored = self.write(facts);
        HELD.store(file::held(), Ordering::Relaxed);
        match stored {
            Ok(path) => {
                self.pending.clear();
                self.retry = Retry::default();
                self.shared.note_stored(self.n_handed, path);
            }
            Err(fault) => {
                self.retry.put_off(matches!(fault, Fault::Vanished));
                let words = format!("this session is not kept: {}", fault.words());
                self.shared.note_trouble(&words);
            }
        }
    }

    fn write(&mut self, facts: &Facts) -> Result<String, Fault> {
        match self.write_once(facts) {
            Err(Fault::Corrupt(words)) => {
                self.put_aside(&words)?;
                self.write_once(facts)
            }
            written => written,
        }
    }

    fn write_once(&mut self, facts: &Facts) -> Result<String, Fault> {
        let file = match &mut self.file {
            Some(file) => file,
            place => place.insert(begin(&self.plan)?),
        };
        file.write(self.pending.changes(), facts)?;
        Ok(file.path().to_string_lossy().into_owned())
    }

    /// Goes on in a new file with what is whole in the damaged one.
    fn put_aside(&mut self, words: &str) -> Result<(), Fault> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let path = file.path().to_owned();
        drop(file);
        let aside = put_aside(&path, now_seconds())?;
        // What cannot be read is lost; what comes is not.
        let (rows, _) = salvaged(&aside).unwrap_or_default();
        self.pending.add_older(rows);
        self.shared.note_lost(format!(
            "the file of this session was damaged ({words}) and is now {}; a new one is written",
            aside.display()
        ));
        Ok(())
    }

    /// What the file says of a session that ends in order.
    fn farewell(&self) -> Facts {
        let ran_out = self.last.as_ref().is_some_and(|run| {
            run.status == Status::OutOfMemory || run.oom.as_ref().is_some_and(|oom| !oom.survived)
        });
        let at = self.plan.clock.now();
        [
            ("ended", at.get().to_string()),
            ("ran_out", ran_out.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

impl Watching {
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
        (!news.is_empty()).then(|| {
            Frame::Samples(Samples {
                run,
                device,
                series: Series::Sampled,
                points: news.into(),
            })
        })
    }
}

impl Retry {
    fn is_due(&self) -> bool {
        self.pause.is_none_or(|(at, _)| Instant::now() >= at)
    }

    fn put_off(&mut self, for_good: bool) {
        let pause = self.pause.map_or(FIRST_PAUSE, |(_, pause)| pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        self.pause = Some((Instant::now() + pause, pause));
        self.is_given_up |= for_good;
    }
}

/// Creates the session's file; older ones make room.
fn begin(plan: &Plan) -> Result<SessionFile, Fault> {
    let started = plan.clock.wall_anchor();
    let entry = Entry::new(
        &plan.folder,
        started.get() / Nanos::millis(1).get(),
        &plan.session,
        plan.origin.notebook.as_deref(),
    );
    let facts = plan.origin.facts(&plan.session, started.get());
    let file = SessionFile::create(&entry.path, &facts)?;
    if !plan.is_rank {
        prune(plan, &entry);
    }
    Ok(file)
}

/// Deletes the sessions that are too many. Baselines lie in a folder of their own.
fn prune(plan: &Plan, own: &Entry) {
    let entries = folder::entries(&plan.folder, now_millis());
    let size = |entry: &Entry| Kept {
        size: Bytes::new(entry.size()),
        is_in_use: entry.path == own.path,
    };
    let mut kept: Vec<Kept> = entries.iter().map(size).collect();
    // Only those that would go are opened.
    for idx in to_prune(&kept) {
        kept[idx].is_in_use |= is_in_use(&entries[idx]);
    }
    for idx in to_prune(&kept) {
        if !is_in_use(&entries[idx]) {
            entries[idx].delete();
        }
    }
    let kept = entries.iter().filter(|entry| entry.path.exists());
    let kept = kept.map(|entry| entry.id.clone()).chain([own.id.clone()]);
    child::prune(&plan.folder, &kept.collect());
}

fn is_in_use(entry: &Entry) -> bool {
    match file::facts(&entry.path) {
        Ok(facts) => !facts.contains_key("ended") && remains::is_running(&entry.path, &facts),
        Err(Fault::Locked) => true,
        Err(_) => false,
    }
}

/// Of the wall's clock, since 1970.
pub(super) fn now_seconds() -> u64 {
    now_nanos() / Nanos::millis(1000).get()
}

/// Of the wall's clock, since 1970.
pub(super) fn now_millis() -> u64 {
    now_nanos() / Nanos::millis(1).get()
}

/// Of the wall's clock, since 1970.
pub(super) fn now_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}
