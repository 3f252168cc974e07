//! A thread that asks a driver for others: one that is slow or hangs keeps only
//! its own thread waiting, never a cell.

use std::hint;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpumem_model::recording::{DeviceKey, DriverLevels, Source};

use super::guarded::Guarded;
use super::visible::Visibility;
use super::{Answer, DriverSource, Unused, failed};
use crate::base::cpu_time::Expense;
use crate::base::threads::{self, Progress};

/// Longer than this a run's ends do not wait. A driver that takes longer every time is not waited
/// for at all: what it says comes with the samples.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// Timeout for a driver that has not answered yet: it may never do so.
const PATIENCE_AT_FIRST: Duration = Duration::from_millis(20);
/// Most answers come in this time, and falling asleep and being woken would take as long.
const AWAKE: Duration = Duration::from_micros(30);
/// A driver that says nothing for so long is not waited for until it has: longer than the first
/// patience, for most take their time when they start.
const STUCK: Duration = Duration::from_millis(40);
/// A driver that has not started in this time is not expected to.
const HANG: Duration = Duration::from_secs(1);
/// Minimum time between two queries during a run.
const SHORTEST_REST: Duration = Duration::from_millis(2);
const LONGEST_REST: Duration = Duration::from_secs(1);
/// Asking takes at most this part of the time: 0.2 % of a core.
const REST_PER_LOOK: u32 = 500;

/// A query of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    /// For its devices and all their levels.
    Everything(Visibility),
    /// For the levels that are cheap to read.
    Sample,
}

/// What a driver said.
#[derive(Debug)]
pub(super) struct Response {
    /// When it had said it.
    pub(super) at: Instant,
    pub(super) devices: Answer,
    pub(super) levels: Vec<(DeviceKey, DriverLevels)>,
    /// It will say the same as long as this process lives.
    is_final: bool,
}

impl Response {
    /// What is said just now.
    pub(super) fn now(devices: Answer, levels: Vec<(DeviceKey, DriverLevels)>) -> Self {
        Self {
            at: Instant::now(),
            devices,
            levels,
            is_final: false,
        }
    }

    /// There are no devices to be asked for.
    pub(super) fn without_devices(why: Unused) -> Self {
        Self::now(Err(why), Vec::new())
    }

    /// The levels of the device that the driver knows by this key.
    pub(super) fn levels_of(&self, key: &DeviceKey) -> Option<&DriverLevels> {
        let levels = self.levels.iter().find(|(of, _)| of == key);
        levels.map(|(_, levels)| levels)
    }
}

/// Another query of a driver, whose caller waits for the answer.
pub(super) type Job = Box<dyn FnOnce(&mut Guarded) + Send>;

/// What the thread does next.
enum Work {
    Request(Ticket, Request),
    Job(Job),
}

/// An answer that is there already, or that will come.
pub(super) enum Pending {
    Known(Arc<Response>),
    /// To be waited for until then at the latest.
    Ordered(Ticket, Instant),
}

/// Names one order among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A driver source with a thread of its own, which starts with the first order.
pub(super) struct DriverWorker {
    source: Source,
    absence: fn() -> Option<Unused>,
    mailbox: Arc<Mailbox>,
    /// Until the thread takes it over.
    waiting: Option<Guarded>,
    /// The last look that was handed out as a sample.
    sampled: Ticket,
}

#[derive(Default)]
struct Mailbox {
    state: Mutex<State>,
    ordered: Condvar,
    answered: Condvar,
    /// The `Ticket` of the last order that was answered; written under the lock.
    last_answered: AtomicU64,
}

struct State {
    /// Everything is asked for, of the devices that are seen like this.
    order: Option<Visibility>,
    job: Option<Job>,
    /// Samples are asked for until further notice.
    sampling: Option<Sampling>,
    last_ordered: Ticket,
    busy_since: Option<Instant>,
    is_awaited: bool,
    whole_costs: Costs,
    sample_costs: Costs,
    look: Option<Arc<Response>>,
}

/// The thread wakes itself for samples: being woken for each would cost both sides more than the
/// sample does.
#[derive(Debug, Clone, Copy)]
struct Sampling {
    interval: Duration,
    /// Whoever asked has not come back by then: the run is over.
    until: Instant,
}

impl DriverWorker {
    pub(super) fn new(driver: Box<dyn DriverSource>) -> Self {
        Self {
            source: driver.source(),
            absence: driver.absence(),
            mailbox: Arc::default(),
            waiting: Some(Guarded::new(driver)),
            sampled: Ticket(0),
        }
    }

    pub(super) fn source(&self) -> Source {
        self.source
    }

    /// Asks for everything, and hands out what can be told without a driver's help. The thread is
    /// left alone then: waking it costs more than all else that a run's ends do.
    pub(super) fn ask(&mut self, visibility: &Visibility, patience: Duration) -> Pending {
        if let Some(why) = (self.absence)() {
            return Pending::Known(Arc::new(Response::without_devices(why)));
        }
        self.ensure_thread();
        let mut state = self.mailbox.lock();
        if let Some(look) = state.look.as_ref().filter(|look| look.is_final) {
            return Pending::Known(Arc::clone(look));
        }
        let until = Instant::now() + state.patience(patience);
        let ticket = state.order(visibility);
        // Woken under the lock it would wait for it at once.
        drop(state);
        self.mailbox.ordered.notify_one();
        Pending::Ordered(ticket, until)
    }

    /// What was asked for; of a driver that is late, what it said of its devices before.
    pub(super) fn answer(&self, pending: Pending) -> Arc<Response> {
        match pending {
            Pending::Known(look) => look,
            Pending::Ordered(ticket, until) => self.mailbox.wait(ticket, until),
        }
    }

    /// What the driver said since the last sample, if it did so after `since`. It goes on being
    /// asked, no more often than the interval says; never waits for it.
    pub(super) fn sample(&mut self, since: Instant, interval: Duration) -> Option<Arc<Response>> {
        let mut state = self.mailbox.lock();
        let look = state.look.clone()?;
        let answered = self.mailbox.last_answered();
        let is_new = mem::replace(&mut self.sampled, answered) < answered;
        let is_idle = look.devices.is_ok() && state.go_on(interval);
        drop(state);
        if is_idle {
            self.mailbox.ordered.notify_one();
        }
        (is_new && look.at >= since).then_some(look)
    }

    /// What the driver said last, if it has said anything.
    pub(super) fn latest(&self) -> Option<Arc<Response>> {
        self.mailbox.lock().look.clone()
    }

    /// Runs a job on the driver's thread, when that has time for it: never where it hangs. One
    /// that was not begun when the next one came is dropped.
    pub(super) fn send(&mut self, job: Job) {
        self.ensure_thread();
        self.mailbox.lock().job = Some(job);
        self.mailbox.ordered.notify_one();
    }

    fn ensure_thread(&mut self) {
        if let Some(guarded) = self.waiting.take() {
            self.start(guarded);
        }
    }

    fn start(&mut self, mut guarded: Guarded) {
        let mailbox = Arc::clone(&self.mailbox);
        let name = format!("gpumem-{}", self.source.name());
        let mut devices: Answer = Err(Unused("".into()));
        let work = move || mailbox.attend(&mut guarded, &mut devices);
        let mailbox = Arc::clone(&self.mailbox);
        let wake = move || {
            drop(mailbox.lock());
            mailbox.ordered.notify_all();
        };
        let spawned = threads::start(&name, work, wake);
        if let Err(error) = spawned {
            let mut state = self.mailbox.lock();
            self.mailbox
                .last_answered
                .store(u64::MAX, Ordering::Release);
            let why = format!("no thread could be started: {error}");
            state.look = Some(Arc::new(Response::without_devices(Unused(why.into()))));
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            order: None,
            job: None,
            sampling: None,
            last_ordered: Ticket(0),
            busy_since: None,
            is_awaited: false,
            whole_costs: Costs::default(),
            sample_costs: Costs::default(),
            look: None,
        }
    }
}

/// What the last two looks of a kind took.
#[derive(Default)]
struct Costs([Duration; 2]);

impl Costs {
    fn push(&mut self, cost: Duration) {
        self.0 = [self.0[1], cost];
    }

    /// The cheaper one: a look that was preempted says nothing of what asking costs.
    fn typical(&self) -> Duration {
        self.0[0].min(self.0[1])
    }
}

impl State {
    /// Notes that everything is asked for, which ends the sampling that was under way.
    fn order(&mut self, visibility: &Visibility) -> Ticket {
        self.last_ordered.0 += 1;
        self.order = Some(visibility.clone());
        self.sampling = None;
        self.last_ordered
    }

    /// Until further notice samples are taken. True where the thread must be woken for it.
    fn go_on(&mut self, interval: Duration) -> bool {
        let until = Instant::now() + (interval.max(self.rest()) * 2);
        let before = self.sampling.replace(Sampling { interval, until });
        before.is_none() && self.busy_since.is_none() && self.order.is_none()
    }

    /// What is to be done now; else when to look again, if ever.
    fn due(&mut self, now: Instant) -> Result<Work, Option<Instant>> {
        if let Some(visibility) = self.order.take() {
            let order = Request::Everything(visibility);
            return Ok(Work::Request(self.last_ordered, order));
        }
        if let Some(job) = self.job.take() {
            return Ok(Work::Job(job));
        }
        self.sampling = self.sampling.filter(|sampling| now <= sampling.until);
        let (Some(sampling), Some(look)) = (self.sampling, &self.look) else {
            return Err(None);
        };
        let due = look.at + sampling.interval.max(self.rest());
        if now < due {
            return Err(Some(due));
        }
        self.last_ordered.0 += 1;
        Ok(Work::Request(self.last_ordered, Request::Sample))
    }

    /// How long the driver is left alone between samples.
    fn rest(&self) -> Duration {
        let rest = self.sample_costs.typical() * REST_PER_LOOK;
        rest.clamp(SHORTEST_REST, LONGEST_REST)
    }

    /// How long it makes sense to wait for an order that is made now.
    fn patience(&self, at_most: Duration) -> Duration {
        let is_slow = self.whole_costs.typical() > PATIENCE;
        if at_most > PATIENCE {
            return at_most;
        }
        match &self.look {
            _ if self.is_busy_for(STUCK) || is_slow => Duration::ZERO,
            None => at_most.min(PATIENCE_AT_FIRST),
            Some(_) => at_most,
        }
    }

    fn is_busy_for(&self, time: Duration) -> bool {
        self.busy_since.is_some_and(|since| since.elapsed() > time)
    }

    /// What can be said of a driver that has not answered in time.
    fn late(&self) -> Response {
        let devices = match &self.look {
            Some(look) => look.devices.clone(),
            None if self.is_busy_for(HANG) => Err(Unused("the driver does not answer".into())),
            None => Err(Unused("the driver has not answered yet".into())),
        };
        let words = "it takes too long";
        let found = devices.iter().flatten();
        let levels = found.map(|it| (it.key.clone(), failed(words))).collect();
        Response::now(devices, levels)
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_answered(&self) -> Ticket {
        Ticket(self.last_answered.load(Ordering::Acquire))
    }

    fn wait(&self, ticket: Ticket, until: Instant) -> Arc<Response> {
        // A thread that has not begun may wait for this very core.
        if self.lock().busy_since.is_some() {
            let asleep = until.min(Instant::now() + AWAKE);
            while self.last_answered() < ticket && Instant::now() < asleep {
                hint::spin_loop();
            }
        }
        let mut state = self.lock();
        while self.last_answered() < ticket {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Arc::new(state.late());
            }
            state.is_awaited = true;
            let woken = self.answered.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let look = state.look.clone();
        look.unwrap_or_else(|| Arc::new(state.late()))
    }

    /// The thread's life, which is as long as the process's. No lock is held while it asks.
    fn attend(&self, guarded: &mut Guarded, devices: &mut Answer) -> Progress {
        let mut expense = Expense::new(1);
        while let Some(work) = self.next() {
            let (ticket, order) = match work {
                Work::Request(ticket, order) => (ticket, order),
                Work::Job(job) => {
                    job(guarded);
                    self.lock().busy_since = None;
                    continue;
                }
            };
            if let Request::Everything(visibility) = &order {
                *devices = guarded
                    .run(|driver| driver.devices(visibility))
                    .unwrap_or_else(|words| Err(Unused(words.into())));
            }
            let began = Instant::now();
            let found = devices.iter().flatten();
            let levels = found.map(|found| {
                let read = guarded.run(|driver| match order {
                    Request::Everything(_) => driver.read(&found.key),
                    Request::Sample => driver.sample(&found.key),
                });
                (
                    found.key.clone(),
                    read.unwrap_or_else(|words| failed(&words)),
                )
            });
            let levels = levels.collect();
            let look = Response {
                is_final: guarded.run(|driver| driver.is_final()).unwrap_or(true),
                ..Response::now(devices.clone(), levels)
            };
            let took = look.at - began;
            expense.note_turn();
            let cost = took.max(expense.per_turn());
            self.deliver(ticket, look, |state| match order {
                Request::Everything(_) => state.whole_costs.push(took),
                Request::Sample => state.sample_costs.push(cost),
            });
        }
        Progress::Paused
    }

    /// Waits for something to do; `None` when threads pause.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if threads::are_paused() {
                return None;
            }
            let now = Instant::now();
            state = match state.due(now) {
                Ok(work) => {
                    state.busy_since = Some(now);
                    return Some(work);
                }
                Err(None) => {
                    let woken = self.ordered.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
                Err(Some(due)) => {
                    let woken = self.ordered.wait_timeout(state, due - now);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn deliver(&self, ticket: Ticket, look: Response, note_cost: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.busy_since = None;
        note_cost(&mut state);
        self.last_answered.store(ticket.0, Ordering::Release);
        let before = state.look.replace(Arc::new(look));
        let is_awaited = mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            self.answered.notify_all();
        }
        // Freed when nobody waits for it any more.
        drop(before);
    }
}
