//! The line to a child, read by a thread of our own, which also waits for its end.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use gpumem_wire as wire;

use super::message::{self, Questions, Refused, Tag};
use super::process::{self, Child, Link, Silence};
use super::{LookResult, NoAnswer, budget};
use crate::walk::Answers;
use gpumem_base::locks::{lock, unpoisoned};
use gpumem_base::threads::{self, Progress};

/// What the look that waits learns of its child.
pub(super) enum CopyEvent {
    /// It works.
    Ready,
    /// It sends queries that only this process can answer, and waits for a while.
    Questions(Questions, Sender<Answers>),
    /// It has answered, or it never will.
    Done(LookResult),
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
pub(super) struct CopyTurn(());

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static GIVEN_BACK: Condvar = Condvar::new();

impl CopyTurn {
    pub(super) fn take(patience: Duration) -> Option<Self> {
        let waited = GIVEN_BACK.wait_timeout_while(lock(&IS_TAKEN), patience, |is_taken| *is_taken);
        let (mut is_taken, _) = unpoisoned(waited);
        let is_free = !std::mem::replace(&mut *is_taken, true);
        // Made only then: a turn that is dropped is given back.
        is_free.then(|| Self(()))
    }
}

impl Drop for CopyTurn {
    fn drop(&mut self) {
        *lock(&IS_TAKEN) = false;
        GIVEN_BACK.notify_one();
    }
}

/// Listens to a child until it ends, at the latest `until`.
pub(super) fn start(
    child: Child,
    until: Instant,
    turn: Arc<CopyTurn>,
    wanted: Weak<()>,
) -> Result<Receiver<CopyEvent>, NoAnswer> {
    let (sender, events) = mpsc::channel();
    let mut service = Service {
        child: Some(child),
        events: sender,
        began: Instant::now(),
        until,
        wanted: Some(wanted),
        turn: Some(turn),
    };
    // It looks around often enough by itself.
    threads::start("gpumem-look", move || service.go_on(), || {})
        .map_err(|error| format!("no thread could be started for it: {error}"))?;
    Ok(events)
}

/// What the thread does for a child.
struct Service {
    /// `None` once it sends nothing more.
    child: Option<Child>,
    events: Sender<CopyEvent>,
    began: Instant,
    until: Instant,
    /// The child is ended when this is gone; `None` once it has answered.
    wanted: Option<Weak<()>>,
    /// `None` once the child has answered.
    turn: Option<Arc<CopyTurn>>,
}

impl Service {
    fn go_on(&mut self) -> Progress {
        while let Some(child) = self.child.take() {
            let heard = self.next_message(&child);
            if matches!(heard, Err(Refused::Silence(Silence::Paused))) {
                self.child = Some(child);
                return Progress::Paused;
            }
            if self.turn.is_none() {
                learn(&child, heard.ok());
                break;
            }
            match heard.and_then(|message| self.answer_of(&child, message)) {
                Ok(None) => self.child = Some(child),
                Ok(Some(answer)) => self.answered(child, answer),
                Err(refused) => {
                    let reason = end(child, &refused);
                    drop(self.events.send(CopyEvent::Done(Err(reason))));
                }
            }
        }
        Progress::Done
    }

    fn next_message(&self, child: &Child) -> Result<(Tag, Vec<u8>), Refused> {
        // A thread pauses between two messages.
        self.wait(child, true).map_err(Refused::Silence)?;
        message::receive(&child.link, &mut || self.wait(child, false))
    }

    /// Waits for a child to say something, as long as it can and is wanted to.
    fn wait(&self, child: &Child, may_pause: bool) -> Result<(), Silence> {
        let mut n_asleep = 0;
        let slice = || self.until.min(Instant::now() + SLICE);
        while let Err(Silence::Late) = child.link.wait_until(slice()) {
            if may_pause && threads::are_paused() {
                return Err(Silence::Paused);
            }
            let wanted = self.wanted.as_ref();
            let is_wanted = wanted.is_none_or(|wanted| wanted.strong_count() > 0);
            if !is_wanted || Instant::now() >= self.until {
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

    /// What a child came to, if it says so.
    fn answer_of(
        &self,
        child: &Child,
        (tag, payload): (Tag, Vec<u8>),
    ) -> Result<Option<LookResult>, Refused> {
        match tag {
            Tag::Ready => drop(self.events.send(CopyEvent::Ready)),
            Tag::Questions => {
                let questions = Questions::from_bytes(&payload).ok_or(Refused::Garbage)?;
                let (answer, answered) = mpsc::channel();
                drop(self.events.send(CopyEvent::Questions(questions, answer)));
                if let Ok(answers) = answered.recv_timeout(ANSWER_WITHIN) {
                    message::send(
                        &child.link,
                        Tag::Answers,
                        &message::answers_to_bytes(&answers),
                    );
                }
            }
            Tag::Found => {
                let found = wire::decode_found(&payload).map_err(|_| Refused::Garbage)?;
                return Ok(Some(Ok(found)));
            }
            Tag::Failed => {
                let words = String::from_utf8_lossy(&payload).into_owned();
                return Ok(Some(Err(words.into())));
            }
            Tag::Lacks => {
                if let Some(&[address]) = message::numbers_from_bytes(&payload).as_deref() {
                    process::miss(address as usize);
                }
                return Ok(Some(Err(NoAnswer::LacksMemory)));
            }
            Tag::Answers | Tag::Survey => return Err(Refused::Garbage),
        }
        Ok(None)
    }

    /// After a slow copy, requests from the child what the next copy can do without.
    fn answered(&mut self, child: Child, answer: LookResult) {
        budget::answered_after(self.began.elapsed());
        if child.took > SLOW {
            message::send(&child.link, Tag::Survey, &[]);
            self.until = Instant::now() + SURVEY_WITHIN;
            self.wanted = None;
            self.child = Some(child);
        } else {
            close(child.link);
        }
        drop(self.events.send(CopyEvent::Done(answer)));
        // Another look may begin.
        self.turn = None;
    }
}

fn learn(child: &Child, message: Option<(Tag, Vec<u8>)>) {
    if let Some((Tag::Survey, report)) = message
        && let Some(report) = message::numbers_from_bytes(&report)
    {
        process::learn(&report, child.resident);
    }
}

/// Closes the descriptors of a link, which must happen before the outcome is published.
fn close(link: Link) {
    #[allow(clippy::drop_non_drop, reason = "it has descriptors on Linux only")]
    drop(link);
}

/// Ends a child that does not answer, and says why it does not.
fn end(child: Child, refused: &Refused) -> NoAnswer {
    let Child { process, link, .. } = child;
    close(link);
    let words = match refused {
        Refused::Silence(Silence::Gone) => return NoAnswer::Ended(process.ended()),
        Refused::Silence(Silence::Asleep) => {
            let words = "its process hung: a thread held a lock that it needs";
            return NoAnswer::Ended(words.to_owned());
        }
        Refused::Silence(Silence::Late) => "it took too long",
        Refused::Silence(Silence::Paused) | Refused::Garbage => "its answer was damaged",
    };
    NoAnswer::Failed(words.to_owned())
}
