//! A thread that asks a driver for others: one that is slow or hangs keeps only
//! its own thread waiting, never a cell.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpumem_core::recording::{DriverLevels, Source};

use super::guarded::Guarded;
use super::visible::Visibility;
use super::{Answer, DriverSource, Unused, failed};
use crate::threads;

/// Longer than this a run's ends do not wait. A driver that takes longer every time is not waited
/// for at all: what it says comes with the samples.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// A driver that has not started in this time is not expected to.
const HANG: Duration = Duration::from_secs(1);
/// Asked no more often than this while a run goes on.
const SHORTEST_REST: Duration = Duration::from_millis(2);
const LONGEST_REST: Duration = Duration::from_secs(1);
/// Asking takes at most this part of the time: 1 % of a core.
const REST_PER_LOOK: u32 = 100;

/// What a driver is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Order {
    /// For its devices and all their levels.
    Everything(Visibility),
    /// For the levels that are cheap to read.
    Sample,
}

/// What a driver said.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// When it had said it.
    pub(super) at: Instant,
    pub(super) devices: Answer,
    pub(super) levels: Vec<(String, DriverLevels)>,
    /// It will say the same as long as this process lives.
    is_final: bool,
}

impl Look {
    /// There are no devices to be asked for.
    fn without_devices(why: Unused) -> Self {
        Self {
            at: Instant::now(),
            devices: Err(why),
            levels: Vec::new(),
            is_final: false,
        }
    }
}

/// What a driver is asked besides, by somebody who waits for the answer himself.
pub(super) type Errand = Box<dyn FnOnce(&mut Guarded) + Send>;

/// What the thread does next.
enum Work {
    Order(Ticket, Order),
    Errand(Errand),
}

/// An answer that is there already, or that will come.
pub(super) enum Pending {
    Known(Look),
    /// To be waited for until then at the latest.
    Ordered(Ticket, Instant),
}

/// Names one order among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A driver source with a thread of its own, which starts with the first order.
pub(super) struct Attendant {
    source: Source,
    absence: fn() -> Option<Unused>,
    desk: Arc<Desk>,
    /// Until the thread takes it over.
    waiting: Option<Guarded>,
    /// The last look that was handed out as a sample.
    sampled: Ticket,
}

#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    ordered: Condvar,
    answered: Condvar,
}

struct State {
    order: Option<Order>,
    errand: Option<Errand>,
    last_ordered: Ticket,
    last_answered: Ticket,
    busy_since: Option<Instant>,
    is_awaited: bool,
    whole_costs: Costs,
    sample_costs: Costs,
    look: Option<Look>,
}

impl Attendant {
    pub(super) fn new(driver: Box<dyn DriverSource>) -> Self {
        Self {
            source: driver.source(),
            absence: driver.absence(),
            desk: Arc::default(),
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
            return Pending::Known(Look::without_devices(why));
        }
        let look = self.desk.lock().look.clone();
        if let Some(look) = look.filter(|look| look.is_final) {
            return Pending::Known(look);
        }
        let until = Instant::now() + self.patience(patience);
        let ticket = self.order(Order::Everything(visibility.clone()));
        Pending::Ordered(ticket, until)
    }

    /// What was asked for; of a driver that is late, what it said of its devices before.
    pub(super) fn answer(&self, pending: Pending) -> Look {
        match pending {
            Pending::Known(look) => look,
            Pending::Ordered(ticket, until) => self.wait(ticket, until),
        }
    }

    /// Hands in an order; the answer to it, or to a later one, is waited for with `wait`.
    fn order(&mut self, order: Order) -> Ticket {
        self.ensure_thread();
        let mut state = self.desk.lock();
        state.last_ordered.0 += 1;
        // Who asks for everything gets it, whoever asks for less after him.
        if !(order == Order::Sample && state.order.is_some()) {
            state.order = Some(order);
        }
        let ticket = state.last_ordered;
        // Woken under the lock it would wait for it at once.
        drop(state);
        self.desk.ordered.notify_one();
        ticket
    }

    /// Runs an errand on the driver's thread, when that has time for it: never where it hangs. One
    /// that was not begun when the next one came is dropped.
    pub(super) fn send(&mut self, errand: Errand) {
        self.ensure_thread();
        self.desk.lock().errand = Some(errand);
        self.desk.ordered.notify_one();
    }

    fn ensure_thread(&mut self) {
        if let Some(guarded) = self.waiting.take() {
            self.start(guarded);
        }
    }

    fn wait(&self, ticket: Ticket, until: Instant) -> Look {
        let mut state = self.desk.lock();
        while state.last_answered < ticket {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return state.late();
            }
            state.is_awaited = true;
            let woken = self.desk.answered.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.look.clone().unwrap_or_else(|| state.late())
    }

    /// Until when it makes sense to wait for an order that is made now.
    fn patience(&self, at_most: Duration) -> Duration {
        let state = self.desk.lock();
        let is_stuck = state.is_busy_for(PATIENCE);
        let is_slow = state.whole_costs.typical() > PATIENCE;
        if (is_stuck || is_slow) && at_most <= PATIENCE {
            return Duration::ZERO;
        }
        at_most
    }

    /// What the driver said since the last sample, if it did so after `since`. Asks it again when
    /// it has rested, and never waits.
    pub(super) fn sample(&mut self, since: Instant) -> Option<Look> {
        let state = self.desk.lock();
        let is_idle = state.busy_since.is_none() && state.order.is_none();
        let look = state.look.as_ref();
        let has_devices = look.is_some_and(|look| look.devices.is_ok());
        let rest =
            (state.sample_costs.typical() * REST_PER_LOOK).clamp(SHORTEST_REST, LONGEST_REST);
        let is_rested = look.is_some_and(|look| look.at.elapsed() >= rest);
        let is_new = state.last_answered > self.sampled;
        let fresh = look.filter(|look| is_new && look.at >= since).cloned();
        let answered = state.last_answered;
        drop(state);
        self.sampled = answered;
        if is_idle && has_devices && is_rested {
            self.order(Order::Sample);
        }
        fresh
    }

    fn start(&mut self, guarded: Guarded) {
        let desk = Arc::clone(&self.desk);
        let name = format!("gpumem-{}", self.source.name());
        let spawned = threads::start(&name, move || desk.attend(guarded));
        if let Err(error) = spawned {
            let mut state = self.desk.lock();
            state.last_answered = Ticket(u64::MAX);
            let why = format!("no thread could be started: {error}");
            state.look = Some(Look::without_devices(Unused(why)));
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            order: None,
            errand: None,
            last_ordered: Ticket(0),
            last_answered: Ticket(0),
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
    fn is_busy_for(&self, time: Duration) -> bool {
        self.busy_since.is_some_and(|since| since.elapsed() > time)
    }

    /// What can be said of a driver that has not answered in time.
    fn late(&self) -> Look {
        let devices = match &self.look {
            Some(look) => look.devices.clone(),
            None if self.is_busy_for(HANG) => Err(Unused("the driver does not answer".to_owned())),
            None => Err(Unused("the driver has not answered yet".to_owned())),
        };
        let words = "it takes too long";
        let found = devices.iter().flatten();
        Look {
            at: Instant::now(),
            levels: found.map(|it| (it.key.clone(), failed(words))).collect(),
            devices,
            is_final: false,
        }
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life, which is as long as the process's. No lock is held while it asks.
    fn attend(&self, mut guarded: Guarded) {
        let mut devices: Answer = Err(Unused(String::new()));
        loop {
            let (ticket, order) = match self.next() {
                Work::Order(ticket, order) => (ticket, order),
                Work::Errand(errand) => {
                    errand(&mut guarded);
                    self.lock().busy_since = None;
                    continue;
                }
            };
            if let Order::Everything(visibility) = &order {
                devices = guarded
                    .run(|driver| driver.devices(visibility))
                    .unwrap_or_else(|words| Err(Unused(words)));
            }
            let began = Instant::now();
            let found = devices.iter().flatten();
            let levels = found.map(|found| {
                let read = guarded.run(|driver| match order {
                    Order::Everything(_) => driver.read(&found.key),
                    Order::Sample => driver.sample(&found.key),
                });
                (
                    found.key.clone(),
                    read.unwrap_or_else(|words| failed(&words)),
                )
            });
            let levels = levels.collect();
            let look = Look {
                at: Instant::now(),
                devices: devices.clone(),
                levels,
                is_final: guarded.run(|driver| driver.is_final()).unwrap_or(true),
            };
            let cost = look.at - began;
            self.deliver(ticket, look, |state| match order {
                Order::Everything(_) => state.whole_costs.push(cost),
                Order::Sample => state.sample_costs.push(cost),
            });
        }
    }

    fn next(&self) -> Work {
        let mut state = self.lock();
        loop {
            let order = mem::take(&mut state.order);
            let order = order.map(|order| Work::Order(state.last_ordered, order));
            let errand = |state: &mut State| state.errand.take().map(Work::Errand);
            if let Some(work) = order.or_else(|| errand(&mut state)) {
                state.busy_since = Some(Instant::now());
                return work;
            }
            let woken = self.ordered.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn deliver(&self, ticket: Ticket, look: Look, note_cost: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.busy_since = None;
        note_cost(&mut state);
        state.last_answered = ticket;
        state.look = Some(look);
        let is_awaited = mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            self.answered.notify_all();
        }
    }
}
