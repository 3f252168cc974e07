//! The line to a child, read by a thread of our own, which also waits for its end.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use gpumem_core::format;

use super::message::{self, Questions, Refused, Tag};
use super::process::{self, Child, Silence};
use super::{Missed, Outcome, budget};
use crate::threads;
use crate::walk::Told;

/// What the look that waits learns of its child.
pub(super) enum Event {
    /// It works.
    Ready,
    /// It asks what only this process can tell, and waits for a while.
    Asked(Questions, Sender<Told>),
    /// It has answered, or it never will.
    Done(Outcome),
}

/// How long a child waits for what it asks.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A copy that took longer reports how the next ones take less.
const SLOW: Duration = Duration::from_millis(5);

/// The kernel visits every page of a child for its survey.
const SURVEY_WITHIN: Duration = Duration::from_secs(5);

/// How often a child that says nothing is looked after.
const SLICE: Duration = Duration::from_millis(20);

/// A child that was asleep so often in a row waits for a lock of a thread that it does not have.
const ASLEEP: u32 = 4;

/// One child at a time has the turn.
pub(super) struct Turn(());

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static GIVEN_BACK: Condvar = Condvar::new();

impl Turn {
    pub(super) fn take(patience: Duration) -> Option<Self> {
        let (mut is_taken, _) = GIVEN_BACK
            .wait_timeout_while(taken(), patience, |is_taken| *is_taken)
            .unwrap_or_else(PoisonError::into_inner);
        let is_free = !std::mem::replace(&mut *is_taken, true);
        // Made only then: a turn that is dropped is given back.
        is_free.then(|| Self(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *taken() = false;
        GIVEN_BACK.notify_one();
    }
}

fn taken() -> MutexGuard<'static, bool> {
    IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens to a child until it ends, at the latest `until`.
pub(super) fn start(
    child: Child,
    until: Instant,
    turn: Arc<Turn>,
    wanted: Weak<()>,
) -> Result<Receiver<Event>, Missed> {
    let (sender, events) = mpsc::channel();
    // Handed over in a place from which it can be taken back if there is no thread.
    let child = Arc::new(Mutex::new(Some(child)));
    let served = Arc::clone(&child);
    let take = |child: &Mutex<Option<Child>>| {
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        child.take()
    };
    let body = move || {
        if let Some(child) = take(&served) {
            serve(child, &sender, until, &wanted, turn);
        }
    };
    match threads::start("gpumem-look", body) {
        Ok(_) => Ok(events),
        Err(error) => {
            if let Some(child) = take(&child) {
                child.process.end();
            }
            Err(format!("no thread could be started for it: {error}").into())
        }
    }
}

fn serve(child: Child, events: &Sender<Event>, until: Instant, wanted: &Weak<()>, turn: Arc<Turn>) {
    let began = Instant::now();
    let heard = conversation(&child, events, until, wanted);
    budget::answered_after(began.elapsed());
    let outcome = match heard {
        Ok(answer) => {
            // Nobody waits for its end, and another look may begin.
            drop(events.send(Event::Done(answer)));
            drop(turn);
            if child.took > SLOW {
                learn(&child);
            }
            child.process.end();
            return;
        }
        Err(refused) => refused,
    };
    let Child { process, link, .. } = child;
    // Whoever learns what came of it finds no descriptor open.
    #[allow(clippy::drop_non_drop, reason = "it has descriptors on Linux only")]
    drop(link);
    let outcome = match outcome {
        Refused::Silence(Silence::Gone) => process.ended(),
        Refused::Silence(Silence::Late) => {
            process.end();
            "it took too long".to_owned()
        }
        Refused::Silence(Silence::Asleep) => {
            process.end();
            "its process hung: a thread held a lock that it needs".to_owned()
        }
        Refused::Garbage => {
            process.end();
            "its answer was damaged".to_owned()
        }
    };
    drop(events.send(Event::Done(Err(outcome.into()))));
}

/// Asks a child what the next copy can do without.
fn learn(child: &Child) {
    message::send(&child.link, Tag::Survey, &[]);
    let until = Instant::now() + SURVEY_WITHIN;
    let mut wait = || child.link.wait_until(until);
    if let Ok((Tag::Survey, report)) = message::receive(&child.link, &mut wait)
        && let Some(report) = message::numbers_from_bytes(&report)
    {
        process::learn(&report, child.resident);
    }
}

/// Waits for a child to say something, as long as it can and is wanted to.
fn wait(child: &Child, until: Instant, wanted: &Weak<()>) -> Result<(), Silence> {
    let mut n_asleep = 0;
    while let Err(Silence::Late) = child.link.wait_until(until.min(Instant::now() + SLICE)) {
        if wanted.strong_count() == 0 || Instant::now() >= until {
            return Err(Silence::Late);
        }
        n_asleep = if child.process.is_asleep() {
            n_asleep + 1
        } else {
            0
        };
        if n_asleep == ASLEEP {
            return Err(Silence::Asleep);
        }
    }
    Ok(())
}

/// What the child answers.
fn conversation(
    child: &Child,
    events: &Sender<Event>,
    until: Instant,
    wanted: &Weak<()>,
) -> Result<Outcome, Refused> {
    loop {
        let mut wait = || wait(child, until, wanted);
        let (tag, payload) = message::receive(&child.link, &mut wait)?;
        match tag {
            Tag::Ready => drop(events.send(Event::Ready)),
            Tag::Asked => {
                let questions = Questions::from_bytes(&payload).ok_or(Refused::Garbage)?;
                let (answer, answered) = mpsc::channel();
                drop(events.send(Event::Asked(questions, answer)));
                if let Ok(told) = answered.recv_timeout(ANSWER_WITHIN) {
                    message::send(&child.link, Tag::Told, &message::told_to_bytes(&told));
                }
            }
            Tag::Found => {
                let found = format::decode_found(&payload).map_err(|_| Refused::Garbage)?;
                return Ok(Ok(found));
            }
            Tag::Failed => {
                let words = String::from_utf8_lossy(&payload).into_owned();
                return Ok(Err(words.into()));
            }
            Tag::Lacks => {
                if let Some(&[address]) = message::numbers_from_bytes(&payload).as_deref() {
                    process::miss(address as usize);
                }
                return Ok(Err(Missed::LacksMemory));
            }
            Tag::Told | Tag::Survey => return Err(Refused::Garbage),
        }
    }
}
