//! Who holds device memory: one look at every live object, taken where it can do no harm.
//!
//! Looking at a heap is safe; looking at one *while it lives* is not: another thread frees what is
//! looked at, autograd replaces it without the GIL, and a reader of torch's leaves objects behind.
//! So a copy of the process is made ([`process`]), as it stands at one instant, and the copy walks
//! its own objects, works out the answer, sends it and ends. Whatever happens to it happens to a
//! copy. Where no copy can be made, [`in_process`] says whether a look is safe all the same.

mod budget;
mod fault_point;
#[cfg_attr(
    not(all(feature = "testing", target_os = "linux")),
    path = "no_faults.rs"
)]
mod faults;
mod headroom;
mod in_process;
mod job;
mod message;
mod no_answer;
#[cfg_attr(not(target_os = "linux"), path = "portable.rs")]
mod process;
mod serve;
mod tries;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use gpumem_heap as heap;
use gpumem_heap::{Found, Inventory};
use gpumem_model::holders::Allocated;
use gpumem_model::units::Bytes;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::base::cpu_time;
use crate::base::modules::imported;
use crate::heap::adapters::own::{self, Asks, Registered};
use crate::heap::adapters::pools;
use crate::heap::walk::{Places, Told};
#[cfg(feature = "testing")]
pub(crate) use budget::use_up_looks;
pub(crate) use budget::{begin as begin_budget, is_due, is_left, spend_waiting};
pub(crate) use fault_point::FaultPoint;
pub(crate) use faults::at as fault;
#[cfg(all(feature = "testing", target_os = "linux"))]
pub(crate) use faults::{fail_look, fork_and_read, slow_copies};
#[cfg(feature = "testing")]
pub(crate) use in_process::{look_in_process, looks_under_way};
use message::Questions;
pub(crate) use no_answer::NoAnswer;
use serve::{Event, Turn};
pub(crate) use tries::{_looks, Tries};

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// What has a name.
    Names,
    /// Everything, if names do not explain most of what a device has more than before.
    NamesOrAll,
    /// Everything: libraries, cyclic garbage, what nothing leads to.
    All,
}

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Nobody: a run has ended, and there is time for a look.
    AfterRun,
    /// An error that is about to be shown.
    Error,
    /// The user's own query.
    Asked,
}

/// What is asked.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Question {
    pub(crate) reach: Reach,
    /// What the answer tells one by one.
    pub(crate) limits: heap::Limits,
    /// What the allocators of each device have handed out.
    pub(crate) allocated: Vec<(String, Allocated)>,
    /// A device that no allocator accounts for, and by how much it grew in the run.
    pub(crate) grown: Option<(String, Bytes)>,
    /// The look that this one is held against.
    pub(crate) before: Option<Arc<Inventory>>,
    /// Variables that it found, and that are gone since.
    pub(crate) gone: Vec<String>,
    /// The levels did not fall by what those held.
    pub(crate) is_kept: bool,
    /// The garbage collector is on.
    pub(crate) is_collected: bool,
    /// Which adapters of the user's may be called.
    pub(crate) asks: Asks,
    /// How long the walk itself may take.
    pub(crate) walk_time: Duration,
    pub(crate) urgency: Urgency,
    /// What torch's autograd keeps is read: another thread's backward pass may be in the middle of
    /// changing it.
    pub(crate) reads_graph: bool,
    /// Memory that looks do not read as a rule is left out of the copy.
    pub(crate) leaves_out: bool,
    /// The thread whose functions are the user's own, as Python numbers it; `None`: the one that asks.
    pub(crate) thread: Option<u64>,
    /// The process of a look before it ended by itself.
    pub(crate) is_again: bool,
}

impl Question {
    /// A question with default limits that calls no adapter of the user's and is compared with no earlier look.
    pub(crate) fn new(py: Python<'_>, reach: Reach, urgency: Urgency) -> Self {
        Self {
            reach,
            limits: heap::Limits::default(),
            allocated: Vec::new(),
            grown: None,
            before: None,
            gone: Vec::new(),
            is_kept: false,
            is_collected: is_collected(py),
            asks: Asks::Nobody,
            walk_time: walk_time(),
            urgency,
            reads_graph: true,
            leaves_out: true,
            thread: None,
            is_again: false,
        }
    }

    fn patience(&self) -> Duration {
        match self.urgency {
            Urgency::AfterRun => moment(),
            Urgency::Error => patience(),
            Urgency::Asked => self.walk_time,
        }
    }

    /// The one to try next, if a look in vain tells of one.
    pub(crate) fn after(&self, missed: &NoAnswer) -> Option<Self> {
        match missed {
            NoAnswer::LacksMemory if self.leaves_out => Some(Self {
                leaves_out: false,
                ..self.clone()
            }),
            // What another thread was changing it has changed by now, if it is no backward pass.
            NoAnswer::Ended(_) if self.reads_graph => Some(Self {
                is_again: true,
                reads_graph: !self.is_again,
                ..self.clone()
            }),
            _ => None,
        }
    }
}

/// The garbage collector frees cyclic garbage by itself.
fn is_collected(py: Python<'_>) -> bool {
    let asked = || -> PyResult<bool> {
        let Some(gc) = imported(py, "gc")? else {
            return Ok(true);
        };
        let is_on = gc.call_method0("isenabled")?.is_truthy()?;
        let threshold = gc.call_method0("get_threshold")?.get_item(0)?;
        Ok(is_on && threshold.is_truthy()?)
    };
    asked().unwrap_or(true)
}

/// What a look came to, or why to nothing.
pub(crate) type Outcome = Result<Found, NoAnswer>;

/// A look that is under way. One that is dropped is ended.
pub(crate) struct Look {
    state: State,
}

enum State {
    Child {
        events: Receiver<Event>,
        /// The thread that serves the child ends it when this is gone.
        _wanted: Arc<()>,
    },
    Over(Option<Outcome>),
}

/// A child that says nothing for so long has no time on this machine; one that hangs is found out
/// earlier.
const READY_WITHIN: Duration = Duration::from_millis(250);

/// The most child processes for one look.
const MAX_CHILDREN: usize = 3;

/// What comes after the walk, in the child: a look that takes longer is given up.
const REST_TIME: Duration = Duration::from_secs(3);

impl Look {
    /// Begins one, from what these shells and everybody else keep; an error says why there is none.
    pub(crate) fn begin(
        py: Python<'_>,
        shells: &[Bound<'_, PyAny>],
        question: &Question,
    ) -> Result<Self, NoAnswer> {
        let looking = Looking::begin()?;
        let before = cpu_time::spent();
        let places = Places::of_shells(py, shells, question.thread);
        let begun = places
            .map_err(|error| NoAnswer::Failed(error.to_string()))
            .and_then(|places| Self::begun(py, &places, question));
        drop(looking);
        if question.urgency == Urgency::AfterRun {
            budget::spend(cpu_time::spent().saturating_sub(before));
        }
        Tries::count(&begun);
        begun
    }

    fn begun(py: Python<'_>, places: &Places<'_>, question: &Question) -> Result<Self, NoAnswer> {
        let registered = own::registered(py, question.asks);
        if in_process::is_ordered() {
            let found = in_process::look(py, places, question, &registered)?;
            return Ok(Self::over(Ok(found)));
        }
        if question.urgency == Urgency::AfterRun && process::has_many_mappings() {
            return Err(NoAnswer::ManyMappings);
        }
        let turn = py.detach(|| Turn::take(question.patience()));
        let turn = Arc::new(turn.ok_or(NoAnswer::Busy)?);
        let room = headroom::check()?;
        let registered = own::registered(py, question.asks);
        let until = Instant::now() + question.walk_time + REST_TIME;
        let mut missed = NoAnswer::Busy;
        for _ in 0..MAX_CHILDREN {
            let child = match process::split(room, question.leaves_out) {
                Ok(process::Side::Child(link)) => {
                    job::run_in_child(py, places, question, &registered, &link)
                }
                Ok(process::Side::Parent(child)) => child,
                Err(error) => {
                    drop(turn);
                    return in_process::look(py, places, question, &registered)
                        .map(|found| Self::over(Ok(found)))
                        .map_err(|words| {
                            let words =
                                format!("no process could be made for it ({error}), and {words}");
                            NoAnswer::Failed(words)
                        });
                }
            };
            let wanted = Arc::new(());
            let mut events =
                serve::start(child, until, Arc::clone(&turn), Arc::downgrade(&wanted))?;
            let first = if registered.is_empty() {
                first_word(py, &mut events)
            } else {
                let patience = question.patience().max(patience());
                first_words_kept_still(py, &mut events, &registered, patience)
            };
            match first {
                First::Working => {
                    return Ok(Self {
                        state: State::Child {
                            events,
                            _wanted: wanted,
                        },
                    });
                }
                First::Over(outcome) => return Ok(Self::over(outcome)),
                First::Failed(why) => missed = why,
            }
        }
        Err(missed)
    }

    fn over(outcome: Outcome) -> Self {
        Self {
            state: State::Over(Some(outcome)),
        }
    }

    /// What it came to, if that is known within `patience`; other threads run meanwhile. Asked
    /// again after that, it says nothing more.
    pub(crate) fn wait(&mut self, py: Python<'_>, patience: Duration) -> Option<Outcome> {
        let until = Instant::now() + patience;
        let outcome = loop {
            let events = match &mut self.state {
                State::Over(outcome) => match outcome.take() {
                    Some(outcome) => break outcome,
                    None => return None,
                },
                State::Child { events, .. } => events,
            };
            match next(py, events, until) {
                Ok(Event::Done(outcome)) => break outcome,
                Ok(Event::Asked(questions, answer)) => {
                    // Objects were asked about before anything else ran: only pools are left.
                    let told = Told {
                        objects: questions.objects.iter().map(|_| Vec::new()).collect(),
                        pools: free_in(py, &questions),
                    };
                    // A child that is gone needs no answer.
                    drop(answer.send(told));
                }
                Ok(Event::Ready) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => break Err(NoAnswer::given_up()),
            }
        };
        Tries::answered(&outcome);
        self.state = State::Over(None);
        Some(outcome)
    }
}

thread_local! {
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// A look of this thread's is under way as long as this lives.
struct Looking;

impl Looking {
    /// An adapter of the user's that looks itself would have itself asked again, without end.
    fn begin() -> Result<Self, NoAnswer> {
        if IS_LOOKING.replace(true) {
            let words = "gpumem is looking for holders already: an adapter cannot look itself";
            return Err(NoAnswer::Failed(words.to_owned()));
        }
        Ok(Self)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        IS_LOOKING.set(false);
    }
}

/// What became of a look.
pub(crate) enum Taken {
    Answered(Box<Found>),
    /// It is still under way.
    Late(Look),
    NoAnswer(NoAnswer),
}

/// Takes a look and waits for it at most for `patience`. One in vain is taken again: with all memory,
/// as it was, or without what a backward pass in another thread may have been changing.
pub(crate) fn take(
    py: Python<'_>,
    shells: &[Bound<'_, PyAny>],
    question: &Question,
    patience: Duration,
) -> Taken {
    let until = Instant::now() + patience;
    let left = || until.saturating_duration_since(Instant::now());
    let _faults = faults::for_one_look();
    let mut taken = once(py, shells, question, left());
    let mut question = question.clone();
    while let Taken::NoAnswer(missed) = &taken
        && let Some(next) = question.after(missed)
        && !left().is_zero()
    {
        question = next;
        taken = once(py, shells, &question, left());
    }
    taken
}

fn once(
    py: Python<'_>,
    shells: &[Bound<'_, PyAny>],
    question: &Question,
    patience: Duration,
) -> Taken {
    match Look::begin(py, shells, question) {
        Err(reason) => Taken::NoAnswer(reason),
        Ok(mut look) => match look.wait(py, patience) {
            None => Taken::Late(look),
            Some(Ok(found)) => Taken::Answered(Box::new(found)),
            Some(Err(reason)) => Taken::NoAnswer(reason),
        },
    }
}

/// How long somebody waits for a look, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(250);

/// Something that is about to be shown depends on the answer.
pub(crate) fn patience() -> Duration {
    Duration::from_millis(PATIENCE.load(Ordering::Relaxed))
}

/// The end of a cell waits for answers that come at once: 20 ms. If the latest took longer, it does not
/// wait at all.
pub(crate) fn moment() -> Duration {
    let moment = patience() * 2 / 25;
    if budget::latest_answer() > moment {
        Duration::ZERO
    } else {
        moment
    }
}

/// How long the walk of a look may take that nobody waits for any more: it costs what the user's
/// process writes to meanwhile.
pub(crate) fn walk_time() -> Duration {
    (patience() / 2).max(Duration::from_secs(2))
}

/// How long somebody waits for a look: tests of what it finds run on slow machines, too.
#[cfg(feature = "testing")]
#[pyfunction]
pub(crate) fn look_for(milliseconds: u64) {
    PATIENCE.store(milliseconds, Ordering::Relaxed);
}

/// The next event; other threads run meanwhile.
fn next(
    py: Python<'_>,
    events: &mut Receiver<Event>,
    until: Instant,
) -> Result<Event, RecvTimeoutError> {
    // What is there already is worth no detour.
    if let Ok(event) = events.try_recv() {
        return Ok(event);
    }
    let left = until.saturating_duration_since(Instant::now());
    py.detach(move || {
        // The whole of it, which may go to another thread: a part may not.
        let events: &mut Receiver<Event> = events;
        events.recv_timeout(left)
    })
}

/// How a child began.
enum First {
    /// It works.
    Working,
    /// It has answered already.
    Over(Outcome),
    /// It ended, or it hangs.
    Failed(NoAnswer),
}

impl First {
    fn of(event: Result<Event, RecvTimeoutError>) -> Self {
        match event {
            Ok(Event::Ready | Event::Asked(..)) => Self::Working,
            Ok(Event::Done(Ok(found))) => Self::Over(Ok(found)),
            Ok(Event::Done(Err(why))) => Self::Failed(why),
            Err(RecvTimeoutError::Timeout) => {
                let words = "its process did not come to begin";
                Self::Failed(NoAnswer::Failed(words.to_owned()))
            }
            Err(RecvTimeoutError::Disconnected) => Self::Failed(NoAnswer::given_up()),
        }
    }
}

/// Waits for a child to say that it works.
fn first_word(py: Python<'_>, events: &mut Receiver<Event>) -> First {
    First::of(next(py, events, Instant::now() + READY_WITHIN))
}

/// The same where adapters of the user's may be asked. The GIL is kept until the child has said of
/// which objects: they are alive only as long as nothing has run.
fn first_words_kept_still(
    py: Python<'_>,
    events: &mut Receiver<Event>,
    registered: &[Registered<'_>],
    patience: Duration,
) -> First {
    let began = First::of(events.recv_timeout(READY_WITHIN));
    if !matches!(began, First::Working) {
        return began;
    }
    match events.recv_timeout(patience) {
        Ok(Event::Asked(questions, answer)) => {
            // A child that is gone needs no answer.
            drop(answer.send(told(py, &questions, registered)));
            First::Working
        }
        // It goes on, and what it asks from now on stays without an answer.
        Err(RecvTimeoutError::Timeout) => First::Working,
        event => First::of(event),
    }
}

/// Asks the user's adapters about the objects that a child named.
#[expect(unsafe_code, reason = "objects that the copy of this process named")]
fn told(py: Python<'_>, questions: &Questions, registered: &[Registered<'_>]) -> Told {
    let held = |(address, adapter): &(usize, u8)| {
        let pointer = *address as *mut pyo3::ffi::PyObject;
        // SAFETY: the copy met it as a live object, and the GIL was kept since the copy was made.
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, pointer) };
        (object, *adapter)
    };
    // All are held before any code of the user's runs.
    let objects: Vec<_> = questions.objects.iter().map(held).collect();
    let ask = |(object, adapter): (Option<Bound<'_, PyAny>>, u8)| {
        let (_, function) = registered.get(usize::from(adapter))?;
        Some(own::ask(function, &object?))
    };
    Told {
        objects: objects
            .into_iter()
            .map(|it| ask(it).unwrap_or_default())
            .collect(),
        pools: free_in(py, questions),
    }
}

/// Upper bound for almost every report.
const REPORT: Bytes = Bytes::mib(64);

/// Raises where the user has limited the address space and little of it is left: to run out of it
/// in the middle would end the process.
pub(crate) fn ensure_room() -> PyResult<()> {
    match process::address_space() {
        Some(left) if left < REPORT => Err(PyMemoryError::new_err(format!(
            "only {left} of address space are left, and a report needs {REPORT}"
        ))),
        _ => Ok(()),
    }
}

/// What is free in the pools that a child asks about.
fn free_in(py: Python<'_>, questions: &Questions) -> Vec<Vec<(String, Bytes)>> {
    let pools = questions.pools.iter();
    pools.map(|pool| pools::free(py, *pool)).collect()
}
