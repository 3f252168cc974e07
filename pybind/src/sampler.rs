//! The thread that reads driver levels while a run is open, without the GIL.

use std::fmt;
use std::io;
use std::mem;
use std::process;
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gpumem_core::downsample::{Downsampler, Spacing};
use gpumem_core::recording::{DeviceKey, DriverLevels, Sample};
use gpumem_core::units::{Nanos, NotATime};

use crate::clock::Clock;
use crate::cpu_time::Expense;
use crate::sources::Drivers;
use crate::threads;

/// At most so many points of a device are kept of one run.
const MAX_POINTS: usize = 512;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);
/// A reading that costs more than this part of the interval stretches it: at most 0.8 % of a core.
const REST_PER_READING: u32 = 125;
/// Its cost is looked up once in so many readings.
const TURNS_PER_LOOK: u32 = 16;
/// A driver call that hangs is left behind after so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// How soon after a reading the next one may come: where the user says nothing, as soon as the
/// sampler can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval(Duration);

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

/// Samples the run that is open; asleep between runs.
///
/// In a forked child its thread does not exist and its locks may be held by nobody: there every
/// call does nothing.
pub(crate) struct Sampler {
    pid: u32,
    clock: Clock,
    drivers: Drivers,
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

struct Thread {
    handle: JoinHandle<()>,
    /// Hangs up when the thread ends.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    run: Option<Sampling>,
    /// Tells one run from the next while a reading is under way.
    n_begun: u64,
    /// Its thread sleeps for longer than a new run would have it.
    is_asleep: bool,
    is_over: bool,
}

/// What has been sampled of the open run.
struct Sampling {
    began: Instant,
    shortest: Duration,
    interval: Duration,
    devices: Vec<Sampled>,
}

/// What has been sampled of one device.
struct Sampled {
    key: DeviceKey,
    points: Downsampler,
    n_downsamplings: u32,
}

impl Sampler {
    /// A sampler of those drivers, telling time by the recording's clock. Its thread starts with
    /// the first run.
    pub(crate) fn new(drivers: Drivers, clock: Clock) -> Self {
        Self {
            pid: process::id(),
            clock,
            drivers,
            shared: Arc::default(),
            thread: None,
        }
    }

    /// A run begins. An error means that no thread could be started: there will be no samples.
    pub(crate) fn begin(&mut self, Interval(shortest): Interval) -> io::Result<()> {
        if !self.is_here() {
            return Ok(());
        }
        let mut state = self.shared.lock();
        state.n_begun += 1;
        state.run = Some(Sampling {
            began: Instant::now(),
            shortest,
            interval: shortest,
            devices: Vec::new(),
        });
        let is_asleep = state.is_asleep;
        drop(state);
        if is_asleep {
            self.shared.changed.notify_one();
        }
        if self.thread.is_none() {
            self.thread = Some(self.start()?);
        }
        Ok(())
    }

    /// The run ends: its samples, by the device's key. The first is an interval after the start:
    /// whoever begins and ends a run reads its ends.
    pub(crate) fn end(&mut self) -> Vec<(DeviceKey, Vec<Sample>)> {
        if !self.is_here() {
            return Vec::new();
        }
        // Nobody is woken for this: the thread finds no run when its interval is over.
        let run = self.shared.lock().run.take();
        let devices = run.into_iter().flat_map(|run| run.devices);
        devices
            .map(|sampled| (sampled.key, sampled.points.into_points()))
            .collect()
    }

    /// What has been sampled of the open run until now, by the device's key.
    pub(crate) fn so_far(&self) -> Vec<(DeviceKey, Vec<Sample>)> {
        if !self.is_here() {
            return Vec::new();
        }
        self.shared.so_far()
    }

    /// What is sampled from now on, for a thread of its own.
    pub(crate) fn watched(&self) -> SoFar {
        SoFar(Arc::clone(&self.shared))
    }

    fn start(&self) -> io::Result<Thread> {
        let (alive, ended) = mpsc::channel();
        let (shared, drivers, clock) = (Arc::clone(&self.shared), self.drivers.clone(), self.clock);
        let handle = threads::start("gpumem-sampler", move || {
            shared.sample(&drivers, clock);
            drop(alive);
        })?;
        Ok(Thread { handle, ended })
    }

    fn is_here(&self) -> bool {
        self.pid == process::id()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let is_here = self.is_here();
        let Some(Thread { handle, ended }) = self.thread.take() else {
            return;
        };
        if !is_here {
            // There is no such thread in this process, to be joined or detached.
            mem::forget(handle);
            return;
        }
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        // The thread never waits for the GIL, so it may be waited for with the GIL held.
        if let Err(mpsc::RecvTimeoutError::Disconnected) = ended.recv_timeout(PATIENCE) {
            // A panic in it has been printed already, and left the run without further samples.
            let _ = handle.join();
        }
    }
}

/// What has been sampled of the open run, for another thread of this process.
#[derive(Clone)]
pub(crate) struct SoFar(Arc<Shared>);

impl SoFar {
    /// Until now, by the device's key.
    pub(crate) fn get(&self) -> Vec<(DeviceKey, Vec<Sample>)> {
        self.0.so_far()
    }
}

impl fmt::Debug for SoFar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SoFar")
    }
}

impl Shared {
    fn so_far(&self) -> Vec<(DeviceKey, Vec<Sample>)> {
        let state = self.lock();
        let devices = state.run.iter().flat_map(|run| &run.devices);
        devices
            .map(|sampled| (sampled.key.clone(), sampled.points.points().to_vec()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life. No lock is held while it reads.
    fn sample(&self, drivers: &Drivers, clock: Clock) {
        let mut expense = Expense::new(TURNS_PER_LOOK);
        let mut beat = Beat::new();
        while let Some(round) = self.wait(&mut beat, expense.per_turn()) {
            let sampled = drivers.sample(round.since, round.rest);
            let mut state = self.lock();
            let is_same_run = state.n_begun == round.n_begun;
            if let Some(run) = state.run.as_mut().filter(|_| is_same_run) {
                for device in sampled {
                    run.push(&device.key, point(clock.at(device.at), &device.levels));
                }
            }
            drop(state);
            expense.note_turn();
        }
    }

    /// Sleeps until the next reading of a run is due; `None` when the session is over.
    fn wait(&self, beat: &mut Beat, cost: Duration) -> Option<Round> {
        let mut state = self.lock();
        while !state.is_over {
            let Some(run) = &state.run else {
                state.is_asleep = true;
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                state.is_asleep = false;
                continue;
            };
            let rest = run.interval.max(cost * REST_PER_READING).min(LONGEST);
            let (n_begun, since) = (state.n_begun, run.began);
            let due = if beat.n_begun == n_begun {
                beat.last + rest
            } else {
                // Short runs one after another wait no longer for a dear reading than a long one.
                (since + run.interval).max(beat.last + rest)
            };
            let left = due.saturating_duration_since(Instant::now());
            state = if rest > SHORTEST {
                state.is_asleep = true;
                let woken = self.changed.wait_timeout(state, left);
                let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
                state.is_asleep = false;
                state
            } else {
                // Nobody need wake it from so short a sleep, and this one costs less.
                drop(state);
                thread::sleep(left);
                self.lock()
            };
            let is_same_run = state.run.is_some() && state.n_begun == n_begun;
            if is_same_run && beat.strikes(n_begun, due, rest) {
                return Some(Round {
                    n_begun,
                    since,
                    rest,
                });
            }
        }
        None
    }
}

/// One reading of a run.
struct Round {
    n_begun: u64,
    /// When the run began.
    since: Instant,
    /// The next one comes so long after it.
    rest: Duration,
}

/// When a run is read. At the shortest interval that is counted from when the last reading was
/// due, not from when it was done, so that neither reading nor waking late makes the readings
/// fewer; a longer one is a pause that somebody asked for, and no reading comes sooner.
struct Beat {
    /// The run that was read last.
    n_begun: u64,
    last: Instant,
}

impl Beat {
    fn new() -> Self {
        Self {
            n_begun: 0,
            last: Instant::now(),
        }
    }

    /// It is read now, if it is time. What was missed is not made up for.
    fn strikes(&mut self, n_begun: u64, due: Instant, rest: Duration) -> bool {
        let now = Instant::now();
        if now < due {
            return false;
        }
        let is_on_beat = rest <= SHORTEST && now < due + rest;
        *self = Self {
            n_begun,
            last: if is_on_beat { due } else { now },
        };
        true
    }
}

impl Sampling {
    fn push(&mut self, key: &DeviceKey, point: Sample) {
        let known = self.devices.iter().position(|it| it.key == *key);
        let device_idx = known.unwrap_or_else(|| {
            self.devices.push(Sampled {
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

/// How often a run of so many seconds reads a device, and how many points of it are kept: what a
/// benchmark of a day need not wait a day for.
#[cfg(feature = "testing")]
#[pyo3::pyfunction]
pub(crate) fn simulated_run(n_seconds: u64) -> (u64, usize) {
    let mut run = Sampling {
        began: Instant::now(),
        shortest: SHORTEST,
        interval: SHORTEST,
        devices: Vec::new(),
    };
    let (mut at, mut n_readings) = (Duration::ZERO, 0);
    while at < Duration::from_secs(n_seconds) {
        at += run.interval;
        n_readings += 1;
        let levels = DriverLevels {
            device_used: gpumem_core::units::Bytes::mib(n_readings % 1024).into(),
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
