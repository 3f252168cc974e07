//! The thread that reads driver levels while runs are open, without the GIL.

use std::io;
use std::process;
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gpumem_model::downsample::{Downsampler, Spacing};
use gpumem_model::recording::{DeviceKey, DriverLevels, RunIdx, Sample};
use gpumem_model::units::{Nanos, NotATime};

use crate::sources::Drivers;
use gpumem_base::clock::Clock;
use gpumem_base::cpu_time::Expense;
use gpumem_base::locks::{lock, unpoisoned};
use gpumem_base::threads::{self, Progress};

/// The most points of a device that are kept for one run.
const MAX_POINTS: usize = 512;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);
/// A reading that costs more than this part of the interval stretches it: at most 0.8 % of a core.
const REST_PER_READING: u32 = 125;
/// Its cost is measured once in this many readings.
const TURNS_PER_LOOK: u32 = 16;
/// Timeout after which a hanging driver call is abandoned.
const PATIENCE: Duration = Duration::from_secs(1);

/// How soon after a reading the next one may come: where the user says nothing, as soon as the
/// sampler can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Duration);

impl Default for Interval {
    fn default() -> Self {
        Self(SHORTEST)
    }
}

impl FromStr for Interval {
    type Err = String;

    /// A time with its unit, from the shortest interval of the sampler to its longest.
    fn from_str(text: &str) -> Result<Self, String> {
        let nanos: Nanos = text.parse().map_err(|error: NotATime| error.to_string())?;
        let interval = Duration::from_nanos(nanos.get());
        if (SHORTEST..=LONGEST).contains(&interval) {
            return Ok(Self(interval));
        }
        Err(format!(
            "{nanos} is not an interval of the sampler: write one from 1ms to 1s"
        ))
    }
}

/// Samples the runs that are under way; asleep between runs.
///
/// In a forked child its thread does not exist and its locks may be held by nobody: there every
/// call does nothing.
pub struct Sampler {
    pid: u32,
    clock: Clock,
    drivers: Drivers,
    shared: Arc<SamplerShared>,
    /// Hangs up when the thread has ended.
    thread: Option<Receiver<()>>,
}

#[derive(Default)]
struct SamplerShared {
    work: Mutex<SamplerWork>,
    changed: Condvar,
}

/// What the thread has to do.
#[derive(Default)]
struct SamplerWork {
    runs: Vec<RunSamples>,
    /// It sleeps for longer than a new run would have it.
    is_asleep: bool,
    is_over: bool,
}

struct RunSamples {
    run: RunIdx,
    began: Instant,
    shortest: Duration,
    interval: Duration,
    last: Option<Instant>,
    /// The reading under way is for it.
    is_due: bool,
    devices: Vec<DeviceSamples>,
}

/// What was sampled of each device, by its key.
pub type SampledDevices = Vec<(DeviceKey, Vec<Sample>)>;

/// What has been sampled of one device.
struct DeviceSamples {
    key: DeviceKey,
    points: Downsampler,
    n_downsamplings: u32,
}

impl Sampler {
    /// A sampler of those drivers, telling time by the recording's clock. Its thread starts with
    /// the first run.
    pub fn new(drivers: Drivers, clock: Clock) -> Self {
        Self {
            pid: process::id(),
            clock,
            drivers,
            shared: Arc::default(),
            thread: None,
        }
    }

    /// A run begins. An error means that no thread could be started: there will be no samples.
    pub fn begin(&mut self, run: RunIdx, Interval(shortest): Interval) -> io::Result<()> {
        if !self.is_here() {
            return Ok(());
        }
        let mut work = lock(&self.shared.work);
        work.runs.retain(|it| it.run != run);
        work.runs.push(RunSamples {
            run,
            began: Instant::now(),
            shortest,
            interval: shortest,
            last: None,
            is_due: false,
            devices: Vec::new(),
        });
        let is_asleep = work.is_asleep;
        drop(work);
        if is_asleep {
            self.shared.changed.notify_one();
        }
        if self.thread.is_none() {
            self.thread = Some(self.start()?);
        }
        Ok(())
    }

    /// A run ends: its samples; nothing if it was not sampled. The first is an interval after the start:
    /// whoever begins and ends a run reads its ends.
    pub fn end(&mut self, run: RunIdx) -> SampledDevices {
        if !self.is_here() {
            return Vec::new();
        }
        let mut work = lock(&self.shared.work);
        let place = work.runs.iter().position(|it| it.run == run);
        let sampling = place.map(|place| work.runs.remove(place));
        drop(work);
        let devices = sampling.into_iter().flat_map(|it| it.devices);
        devices
            .map(|sampled| (sampled.key, sampled.points.into_points()))
            .collect()
    }

    /// The runs that are sampled now.
    pub fn runs(&self) -> Vec<RunIdx> {
        if !self.is_here() {
            return Vec::new();
        }
        lock(&self.shared.work)
            .runs
            .iter()
            .map(|it| it.run)
            .collect()
    }

    /// What has been sampled of a run until now.
    pub fn so_far(&self, run: RunIdx) -> SampledDevices {
        if !self.is_here() {
            return Vec::new();
        }
        self.shared.so_far(run)
    }

    /// What is sampled of a run from now on, for a thread of its own.
    pub fn watched(&self, run: RunIdx) -> SoFar {
        SoFar {
            shared: Arc::clone(&self.shared),
            run,
        }
    }

    fn start(&self) -> io::Result<Receiver<()>> {
        let (alive, ended) = mpsc::channel();
        let (shared, drivers, clock) = (Arc::clone(&self.shared), self.drivers.clone(), self.clock);
        let work = move || {
            // Goes with the work.
            let _alive = &alive;
            shared.sample(&drivers, clock)
        };
        let shared = Arc::clone(&self.shared);
        threads::start("gpumem-sampler", work, move || shared.wake())?;
        Ok(ended)
    }

    fn is_here(&self) -> bool {
        self.pid == process::id()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let Some(ended) = self.thread.take().filter(|_| self.is_here()) else {
            return;
        };
        lock(&self.shared.work).is_over = true;
        self.shared.changed.notify_one();
        // The thread never waits for the GIL, so it may be waited for with the GIL held. A panic in it
        // left the run without further samples.
        let _ = ended.recv_timeout(PATIENCE);
    }
}

/// What has been sampled of a run, for another thread of this process.
#[derive(Clone)]
pub struct SoFar {
    shared: Arc<SamplerShared>,
    run: RunIdx,
}

impl SoFar {
    /// Device by device.
    pub fn get(&self) -> SampledDevices {
        self.shared.so_far(self.run)
    }
}

impl SamplerShared {
    fn so_far(&self, run: RunIdx) -> SampledDevices {
        let work = lock(&self.work);
        let sampling = work.runs.iter().find(|it| it.run == run);
        let devices = sampling.into_iter().flat_map(|it| &it.devices);
        devices
            .map(|sampled| (sampled.key.clone(), sampled.points.points().to_vec()))
            .collect()
    }

    fn wake(&self) {
        drop(lock(&self.work));
        self.changed.notify_all();
    }

    /// The thread's life. No lock is held while it reads.
    fn sample(&self, drivers: &Drivers, clock: Clock) -> Progress {
        let mut expense = Expense::new(TURNS_PER_LOOK);
        let mut last = Instant::now();
        while let Some(round) = self.wait(&mut last, expense.per_turn()) {
            let sampled = drivers.sample(round.since, round.rest);
            let mut work = lock(&self.work);
            for run in work.runs.iter_mut().filter(|run| run.is_due) {
                run.is_due = false;
                // A driver may have answered before this run began.
                let began = run.began;
                for device in sampled.iter().filter(|device| device.at >= began) {
                    run.push(&device.key, point(clock.at(device.at), &device.levels));
                }
            }
            drop(work);
            expense.note_turn();
        }
        if lock(&self.work).is_over {
            Progress::Done
        } else {
            Progress::Paused
        }
    }

    /// Sleeps until the next reading of a run is due; `None` when the session is over, or threads pause.
    /// `last` is when the last reading was due.
    fn wait(&self, last: &mut Instant, cost: Duration) -> Option<Round> {
        let mut work = lock(&self.work);
        while !work.is_over && !threads::are_paused() {
            let dues = work.runs.iter().map(|run| run.due(*last, cost));
            let Some((due, rest)) = dues.min() else {
                work.is_asleep = true;
                work = unpoisoned(self.changed.wait(work));
                work.is_asleep = false;
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            work = if rest > SHORTEST {
                work.is_asleep = true;
                let (mut work, _) = unpoisoned(self.changed.wait_timeout(work, left));
                work.is_asleep = false;
                work
            } else {
                // So short a sleep needs no wake-up, and this one costs less.
                drop(work);
                thread::sleep(left);
                lock(&self.work)
            };
            if let Some(round) = work.round(last, cost) {
                return Some(round);
            }
        }
        None
    }
}

impl SamplerWork {
    /// The runs are read that are due by now, if some are.
    fn round(&mut self, last: &mut Instant, cost: Duration) -> Option<Round> {
        let (now, before) = (Instant::now(), *last);
        let mut round: Option<Round> = None;
        for run in &mut self.runs {
            let (due, rest) = run.due(before, cost);
            if now < due {
                continue;
            }
            run.is_due = true;
            // At the shortest interval the next reading is due one interval after this one was due, so
            // that slow readings and late wake-ups do not reduce their number. A longer interval was set
            // by the user and is a minimum: it counts from now. Missed readings are not made up for.
            let is_on_beat = rest <= SHORTEST && now < due + rest;
            let beat = if is_on_beat { due } else { now };
            run.last = Some(beat);
            *last = beat;
            round = Some(match round {
                None => Round {
                    since: run.began,
                    rest,
                },
                Some(round) => Round {
                    since: round.since.min(run.began),
                    rest: round.rest.min(rest),
                },
            });
        }
        round
    }
}

/// One reading, for all runs that are due.
struct Round {
    /// When the first of them began.
    since: Instant,
    /// Time until the next one.
    rest: Duration,
}

impl RunSamples {
    /// When its next reading is due, and how long after the one before it at least. `last` is when
    /// any run was read last.
    fn due(&self, last: Instant, cost: Duration) -> (Instant, Duration) {
        let rest = self.interval.max(cost * REST_PER_READING).min(LONGEST);
        let due = match self.last {
            Some(own) => own + rest,
            // Short runs in a row wait no longer for an expensive reading than a long one does.
            None => (self.began + self.interval).max(last + rest),
        };
        (due, rest)
    }

    fn push(&mut self, key: &DeviceKey, point: Sample) {
        let known = self.devices.iter().position(|it| it.key == *key);
        let device_idx = known.unwrap_or_else(|| {
            self.devices.push(DeviceSamples {
                key: key.clone(),
                points: Downsampler::new(MAX_POINTS, Spacing::Time),
                n_downsamplings: 0,
            });
            self.devices.len() - 1
        });
        let device = &mut self.devices[device_idx];
        if device.points.push(point) {
            device.n_downsamplings += 1;
            // One clock for all devices: the one that is read most often sets it.
            let interval = self.shortest * 2_u32.saturating_pow(device.n_downsamplings);
            self.interval = self.interval.max(interval).min(LONGEST);
        }
    }
}

/// How often a run of `n_seconds` reads a device, and how many points of it are kept, simulated so
/// that a benchmark of a day takes less than a day.
#[pyo3::pyfunction]
pub fn simulated_run(n_seconds: u64) -> (u64, usize) {
    let mut run = RunSamples {
        run: RunIdx::default(),
        began: Instant::now(),
        shortest: SHORTEST,
        interval: SHORTEST,
        last: None,
        is_due: false,
        devices: Vec::new(),
    };
    let (mut at, mut n_readings) = (Duration::ZERO, 0);
    while at < Duration::from_secs(n_seconds) {
        at += run.interval;
        n_readings += 1;
        let levels = DriverLevels {
            device_used: gpumem_model::units::Bytes::mib(n_readings % 1024).into(),
            ..DriverLevels::default()
        };
        let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        run.push(&"a device".into(), point(Nanos::new(nanos), &levels));
    }
    let n_points = run.devices.into_iter().map(|it| it.points.points().len());
    (n_readings, n_points.sum())
}

fn point(at: Nanos, levels: &DriverLevels) -> Sample {
    Sample {
        at,
        device_used: levels.device_used.known(),
        process_used: levels.process_used.known(),
        ..Sample::default()
    }
}
