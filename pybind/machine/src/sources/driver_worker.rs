//! A thread that asks a driver for others: one that is slow or hangs keeps only
//! its own thread waiting, never a cell.

use std::hint;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use gpumem_model::recording::{DeviceKey, DriverLevels, Source};

use super::guarded::Guarded;
use super::visible::Visibility;
use super::{Answer, DriverSource, Unused, failed};
use gpumem_base::cpu_time::Expense;
use gpumem_base::locks::{lock, unpoisoned};
use gpumem_base::threads::{self, Progress};

/// The longest that a run's start or end waits. A driver that always takes longer is not waited for
/// at all: its answers come with the samples.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// Timeout for a driver that has not answered yet: it may never do so.
const PATIENCE_AT_FIRST: Duration = Duration::from_millis(20);
/// Most answers come in this time, and falling asleep and being woken would take as long.
const AWAKE: Duration = Duration::from_micros(30);
/// A driver that is silent for this long is not waited for until it answers. Longer than the first
/// patience, because most drivers are slow to start.
const STUCK: Duration = Duration::from_millis(40);
/// A driver that has not started in this time is not expected to.
const HANG: Duration = Duration::from_secs(1);
/// Minimum time between two queries during a run.
const SHORTEST_REST: Duration = Duration::from_millis(2);
const LONGEST_REST: Duration = Duration::from_secs(1);
/// Queries take at most this part of the time: 0.2 % of a core.
const REST_PER_RESPONSE: u32 = 500;

/// A query of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    /// For its devices and all their levels.
    Everything(Visibility),
    /// For the levels that are cheap to read.
    Sample,
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) at: Instant,
    pub(super) devices: Answer,
    pub(super) levels: Vec<(DeviceKey, DriverLevels)>,
    /// It will say the same as long as this process lives.
    is_final: bool,
}

impl Response {
    /// A response of this instant.
    pub(super) fn now(devices: Answer, levels: Vec<(DeviceKey, DriverLevels)>) -> Self {
        Self {
            at: Instant::now(),
            devices,
            levels,
            is_final: false,
        }
    }

    /// A response without devices, and why.
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
pub(super) type DriverJob = Box<dyn FnOnce(&mut Guarded) + Send>;

/// What the thread does next.
enum Work {
    Request(Ticket, Request),
    Job(DriverJob),
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
    /// The last response that was handed out as a sample.
    sampled: Ticket,
}

#[derive(Default)]
struct Mailbox {
    state: Mutex<MailboxState>,
    ordered: Condvar,
    answered: Condvar,
    /// The `Ticket` of the last order that was answered; written under the lock.
    last_answered: AtomicU64,
}

struct MailboxState {
    /// A request for all levels of the devices that are visible.
    order: Option<Visibility>,
    job: Option<DriverJob>,
    /// The request for samples, until it is withdrawn.
    sampling: Option<SampleRequest>,
    last_ordered: Ticket,
    busy_since: Option<Instant>,
    is_awaited: bool,
    whole_costs: Costs,
    sample_costs: Costs,
    response: Option<Arc<Response>>,
}

/// The thread wakes itself for samples: being woken for each would cost both sides more than the
/// sample does.
#[derive(Debug, Clone, Copy)]
struct SampleRequest {
    interval: Duration,
    /// The caller has not come back by then: the run is over.
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

    /// Asks for everything, and returns what is known without the driver. The thread is
    /// left alone then: waking it costs more than all else that a run's ends do.
    pub(super) fn ask(&mut self, visibility: &Visibility, patience: Duration) -> Pending {
        if let Some(why) = (self.absence)() {
            return Pending::Known(Arc::new(Response::without_devices(why)));
        }
        self.ensure_thread();
        let mut state = lock(&self.mailbox.state);
        if let Some(response) = state.response.as_ref().filter(|response| response.is_final) {
            return Pending::Known(Arc::clone(response));
        }
        let until = Instant::now() + state.patience(patience);
        let ticket = state.order(visibility);
        // Woken under the lock it would wait for it at once.
        drop(state);
        self.mailbox.ordered.notify_one();
        Pending::Ordered(ticket, until)
    }

    /// The requested answer, or the last known devices if the driver is late.
    pub(super) fn answer(&self, pending: Pending) -> Arc<Response> {
        match pending {
            Pending::Known(response) => response,
            Pending::Ordered(ticket, until) => self.mailbox.wait(ticket, until),
        }
    }

    /// The driver's response since the last sample, if it is later than `since`. Never waits;
    /// queries continue, at most one per interval.
    pub(super) fn sample(&mut self, since: Instant, interval: Duration) -> Option<Arc<Response>> {
        let mut state = lock(&self.mailbox.state);
        let response = state.response.clone()?;
        let answered = self.mailbox.last_answered();
        let is_new = mem::replace(&mut self.sampled, answered) < answered;
        let is_idle = response.devices.is_ok() && state.go_on(interval);
        drop(state);
        if is_idle {
            self.mailbox.ordered.notify_one();
        }
        (is_new && response.at >= since).then_some(response)
    }

    /// What the driver said last, if it has said anything.
    pub(super) fn latest(&self) -> Option<Arc<Response>> {
        lock(&self.mailbox.state).response.clone()
    }

    /// Runs a job on the driver's thread, when that has time for it: never where it hangs. One
    /// that was not begun when the next one came is dropped.
    pub(super) fn send(&mut self, job: DriverJob) {
        self.ensure_thread();
        lock(&self.mailbox.state).job = Some(job);
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
            drop(lock(&mailbox.state));
            mailbox.ordered.notify_all();
        };
        let spawned = threads::start(&name, work, wake);
        if let Err(error) = spawned {
            let mut state = lock(&self.mailbox.state);
            self.mailbox
                .last_answered
                .store(u64::MAX, Ordering::Release);
            let why = format!("no thread could be started: {error}");
            state.response = Some(Arc::new(Response::without_devices(Unused(why.into()))));
        }
    }
}

impl Default for MailboxState {
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
            response: None,
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

    /// The cheaper one: a preempted query says nothing about what one costs.
    fn typical(&self) -> Duration {
        self.0[0].min(self.0[1])
    }
}

impl MailboxState {
    /// Requests everything, which ends the sampling in progress.
    fn order(&mut self, visibility: &Visibility) -> Ticket {
        self.last_ordered.0 += 1;
        self.order = Some(visibility.clone());
        self.sampling = None;
        self.last_ordered
    }

    /// Until further notice samples are taken. True where the thread must be woken for it.
    fn go_on(&mut self, interval: Duration) -> bool {
        let until = Instant::now() + (interval.max(self.rest()) * 2);
        let before = self.sampling.replace(SampleRequest { interval, until });
        before.is_none() && self.busy_since.is_none() && self.order.is_none()
    }

    /// What is to be done now; else when to check again, if ever.
    fn due(&mut self, now: Instant) -> Result<Work, Option<Instant>> {
        if let Some(visibility) = self.order.take() {
            let order = Request::Everything(visibility);
            return Ok(Work::Request(self.last_ordered, order));
        }
        if let Some(job) = self.job.take() {
            return Ok(Work::Job(job));
        }
        self.sampling = self.sampling.filter(|sampling| now <= sampling.until);
        let (Some(sampling), Some(response)) = (self.sampling, &self.response) else {
            return Err(None);
        };
        let due = response.at + sampling.interval.max(self.rest());
        if now < due {
            return Err(Some(due));
        }
        self.last_ordered.0 += 1;
        Ok(Work::Request(self.last_ordered, Request::Sample))
    }

    /// How long the driver is left alone between samples.
    fn rest(&self) -> Duration {
        let rest = self.sample_costs.typical() * REST_PER_RESPONSE;
        rest.clamp(SHORTEST_REST, LONGEST_REST)
    }

    /// How long it makes sense to wait for an order that is made now.
    fn patience(&self, at_most: Duration) -> Duration {
        let is_slow = self.whole_costs.typical() > PATIENCE;
        if at_most > PATIENCE {
            return at_most;
        }
        match &self.response {
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
        let devices = match &self.response {
            Some(response) => response.devices.clone(),
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
    fn last_answered(&self) -> Ticket {
        Ticket(self.last_answered.load(Ordering::Acquire))
    }

    fn wait(&self, ticket: Ticket, until: Instant) -> Arc<Response> {
        // A thread that has not begun may wait for this very core.
        if lock(&self.state).busy_since.is_some() {
            let asleep = until.min(Instant::now() + AWAKE);
            while self.last_answered() < ticket && Instant::now() < asleep {
                hint::spin_loop();
            }
        }
        let mut state = lock(&self.state);
        while self.last_answered() < ticket {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Arc::new(state.late());
            }
            state.is_awaited = true;
            (state, _) = unpoisoned(self.answered.wait_timeout(state, left));
        }
        let response = state.response.clone();
        response.unwrap_or_else(|| Arc::new(state.late()))
    }

    /// The thread's life, which is as long as the process's. No lock is held while it asks.
    fn attend(&self, guarded: &mut Guarded, devices: &mut Answer) -> Progress {
        let mut expense = Expense::new(1);
        while let Some(work) = self.next() {
            let (ticket, order) = match work {
                Work::Request(ticket, order) => (ticket, order),
                Work::Job(job) => {
                    job(guarded);
                    lock(&self.state).busy_since = None;
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
            let response = Response {
                is_final: guarded.run(|driver| driver.is_final()).unwrap_or(true),
                ..Response::now(devices.clone(), levels)
            };
            let took = response.at - began;
            expense.note_turn();
            let cost = took.max(expense.per_turn());
            self.deliver(ticket, response, |state| match order {
                Request::Everything(_) => state.whole_costs.push(took),
                Request::Sample => state.sample_costs.push(cost),
            });
        }
        Progress::Paused
    }

    /// Waits for something to do; `None` when threads pause.
    fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
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
                Err(None) => unpoisoned(self.ordered.wait(state)),
                Err(Some(due)) => unpoisoned(self.ordered.wait_timeout(state, due - now)).0,
            };
        }
    }

    fn deliver(
        &self,
        ticket: Ticket,
        response: Response,
        note_cost: impl FnOnce(&mut MailboxState),
    ) {
        let mut state = lock(&self.state);
        state.busy_since = None;
        note_cost(&mut state);
        self.last_answered.store(ticket.0, Ordering::Release);
        let before = state.response.replace(Arc::new(response));
        let is_awaited = mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            self.answered.notify_all();
        }
        // Freed when the last waiting thread is gone.
        drop(before);
    }
}
