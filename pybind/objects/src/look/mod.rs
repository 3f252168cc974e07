//! Who holds device memory: one look at every live object, taken where it can do no harm.
//!
//! Looking at a heap is safe; looking at one *while it lives* is not: another thread frees what is
//! looked at, autograd replaces it without the GIL, and a reader of torch's leaves objects behind.
//! So a copy of the process is made ([`process`]), as it stands at one instant, and the copy walks
//! its own objects, works out the answer, sends it and ends. Whatever happens to it happens to a
//! copy. Where no copy can be made, [`in_process`] says whether a look is safe all the same.

mod budget;
mod fault_point;
#[cfg_attr(not(target_os = "linux"), path = "no_faults.rs")]
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
use gpumem_heap::{HeapSearchResult, Inventory};
use gpumem_model::holders::Allocated;
use gpumem_model::units::Bytes;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::adapters::pools;
use crate::adapters::registered::{self, Asks, Registered};
use crate::walk::{Answers, Places};
pub use budget::{begin as begin_budget, is_due, is_left, spend_waiting, use_up_looks};
pub(crate) use fault_point::FaultPoint;
pub use faults::at as fault;
#[cfg(target_os = "linux")]
pub use faults::{fail_look, fork_and_read, slow_copies};
use gpumem_base::modules::imported;
use gpumem_base::{cpu_time, gil};
pub use in_process::{look_in_process, looks_under_way};
use message::Questions;
pub use no_answer::NoAnswer;
use serve::{CopyEvent, CopyTurn};
pub use tries::_looks;
pub(crate) use tries::Tries;

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What has a name.
    Names,
    /// Everything, if names do not explain most of a device's growth.
    NamesOrAll,
    /// Everything: libraries, cyclic garbage, what nothing leads to.
    All,
}

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// No one waits: a run has ended, and there is time for a look.
    AfterRun,
    /// An error that is about to be shown.
    Error,
    /// The user's own query.
    Query,
}

/// What a look has to find.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Question {
    /// How far it goes.
    pub reach: Reach,
    /// Which holders the answer lists one by one.
    pub limits: heap::HolderLimits,
    /// What the allocators of each device have handed out.
    pub allocated: Vec<(String, Allocated)>,
    /// A device that no allocator accounts for, and by how much it grew in the run.
    pub grown: Option<(String, Bytes)>,
    /// The look to compare with.
    pub before: Option<Arc<Inventory>>,
    /// Variables that it found and that have since been deleted.
    pub gone: Vec<String>,
    /// The levels did not fall by what those held.
    pub is_kept: bool,
    /// The garbage collector is on.
    pub is_collected: bool,
    /// Which adapters of the user's may be called.
    pub asks: Asks,
    /// How much of a core the walk itself may take.
    pub walk_time: Duration,
    /// Whether somebody waits for it.
    pub urgency: Urgency,
    /// What torch's autograd keeps is read: another thread's backward pass may be in the middle of
    /// changing it.
    pub reads_graph: bool,
    /// Memory that looks do not read as a rule is left out of the copy.
    pub leaves_out: bool,
    /// The thread whose functions are the user's own, as Python numbers it; `None`: the one that asks.
    pub thread: Option<u64>,
    /// The process of a look before it ended by itself.
    pub is_again: bool,
}

impl Question {
    /// A question with default limits that calls no adapter of the user's and is compared with no earlier look.
    pub fn new(py: Python<'_>, reach: Reach, urgency: Urgency) -> Self {
        Self {
            reach,
            limits: heap::HolderLimits::default(),
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

    /// How long work may last that takes so much of a core: longer on a busy machine, if nobody waits for it.
    fn longest(&self, time: Duration) -> Duration {
        match self.urgency {
            Urgency::AfterRun => time * BUSY,
            Urgency::Error | Urgency::Query => time,
        }
    }

    fn patience(&self) -> Duration {
        match self.urgency {
            Urgency::AfterRun => moment(),
            Urgency::Error => patience(),
            Urgency::Query => self.walk_time,
        }
    }

    /// The next question to try after a failed look, if there is one.
    pub fn after(&self, missed: &NoAnswer) -> Option<Self> {
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
    let query = || -> PyResult<bool> {
        let Some(gc) = imported(py, "gc")? else {
            return Ok(true);
        };
        let is_on = gc.call_method0("isenabled")?.is_truthy()?;
        let threshold = gc.call_method0("get_threshold")?.get_item(0)?;
        Ok(is_on && threshold.is_truthy()?)
    };
    query().unwrap_or(true)
}

/// What a look came to, or why to nothing.
pub(crate) type LookResult = Result<HeapSearchResult, NoAnswer>;

/// A look that is under way. One that is dropped is ended.
pub struct Look {
    state: LookState,
}

enum LookState {
    Child {
        events: Receiver<CopyEvent>,
        /// The thread that serves the child ends it when this is gone.
        _wanted: Arc<()>,
    },
    Over(Option<LookResult>),
}

/// How long to wait for a child's first message. A busy machine may delay it; a hanging child is
/// found earlier.
const READY_WITHIN: Duration = Duration::from_millis(250);

/// How long to wait for the child of a look that is ended to be gone.
const ENDED_WITHIN: Duration = Duration::from_millis(100);

/// The most child processes for one look.
const MAX_CHILDREN: usize = 3;

/// On a busy machine a look that nobody waits for may last so many times as long as it may compute.
const BUSY: u32 = 4;

/// What comes after the walk, in the child: a look that takes longer is given up.
const REST_TIME: Duration = Duration::from_secs(3);

impl Look {
    /// Begins one, from what these shells and everybody else keep; an error says why there is none.
    pub fn begin(
        py: Python<'_>,
        shells: &[Bound<'_, PyAny>],
        question: &Question,
    ) -> Result<Self, NoAnswer> {
        if !gil::is_there() {
            return Err(NoAnswer::NoGil);
        }
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
        let registered = registered::registered(py, question.asks);
        if in_process::is_ordered() {
            let found = in_process::look(py, places, question, &registered)?;
            return Ok(Self::over(Ok(found)));
        }
        if question.urgency == Urgency::AfterRun && process::has_many_mappings() {
            return Err(NoAnswer::ManyMappings);
        }
        let turn = py.detach(|| CopyTurn::take(question.patience()));
        let turn = Arc::new(turn.ok_or(NoAnswer::Busy)?);
        let room = headroom::check()?;
        let registered = registered::registered(py, question.asks);
        let until = Instant::now() + question.longest(question.walk_time + REST_TIME);
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
                FirstEvent::new(next(py, &mut events, Instant::now() + READY_WITHIN))
            } else {
                let patience = question.patience().max(patience());
                first_event_with_gil(py, &mut events, &registered, patience)
            };
            match first {
                FirstEvent::Working => {
                    return Ok(Self {
                        state: LookState::Child {
                            events,
                            _wanted: wanted,
                        },
                    });
                }
                FirstEvent::Over(outcome) => return Ok(Self::over(outcome)),
                FirstEvent::Failed(why) => missed = why,
            }
        }
        Err(missed)
    }

    fn over(outcome: LookResult) -> Self {
        Self {
            state: LookState::Over(Some(outcome)),
        }
    }

    /// Ends it, and waits for its process to be gone: then another look may begin.
    pub fn end(self, py: Python<'_>) {
        drop(self);
        drop(py.detach(|| CopyTurn::take(ENDED_WITHIN)));
    }

    /// The outcome, if it is known within `patience`; other threads run meanwhile. It is returned
    /// once: later calls return `None`.
    pub fn wait(&mut self, py: Python<'_>, patience: Duration) -> Option<LookResult> {
        let until = Instant::now() + patience;
        let outcome = loop {
            let events = match &mut self.state {
                LookState::Over(outcome) => match outcome.take() {
                    Some(outcome) => break outcome,
                    None => return None,
                },
                LookState::Child { events, .. } => events,
            };
            match next(py, events, until) {
                Ok(CopyEvent::Done(outcome)) => break outcome,
                Ok(CopyEvent::Questions(questions, answer)) => {
                    // Objects were queried before anything else ran: only pools are left.
                    let answers = Answers {
                        objects: questions.objects.iter().map(|_| Vec::new()).collect(),
                        pools: free_in(py, &questions),
                    };
                    // A child that is gone needs no answer.
                    drop(answer.send(answers));
                }
                Ok(CopyEvent::Ready) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => break Err(NoAnswer::given_up()),
            }
        };
        Tries::answered(&outcome);
        self.state = LookState::Over(None);
        Some(outcome)
    }
}

thread_local! {
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// A look of this thread's is under way as long as this lives.
struct Looking;

impl Looking {
    /// Fails if a look is in progress: a user's adapter that looks would recurse without end.
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
pub enum Taken {
    /// What it found.
    Answered(Box<HeapSearchResult>),
    /// It is still under way.
    Late(Look),
    /// Why there is no answer.
    NoAnswer(NoAnswer),
}

/// Takes a look and waits for it at most for `patience`. One in vain is taken again: with all memory,
/// as it was, or without what a backward pass in another thread may have been changing.
pub fn take(
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

/// The patience for a look, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(250);

/// Something that is about to be shown depends on the answer.
pub fn patience() -> Duration {
    Duration::from_millis(PATIENCE.load(Ordering::Relaxed))
}

/// The end of a cell waits for answers that come at once: 20 ms. If the latest took longer, it does not
/// wait at all.
pub fn moment() -> Duration {
    let moment = patience() * 2 / 25;
    if budget::latest_answer() > moment {
        Duration::ZERO
    } else {
        moment
    }
}

/// How much of a core the walk of a look may take that nobody waits for any more: it costs what the user's
/// process writes to meanwhile.
pub fn walk_time() -> Duration {
    (patience() / 2).max(Duration::from_secs(2))
}

/// How long a look takes at most that has a core for itself.
pub fn answer_time() -> Duration {
    walk_time() + REST_TIME
}

/// Sets how long the process may wait for a look. Where nobody sits before it, as in CI, that may be
/// longer: its machine may be busy.
#[pyfunction]
pub fn _set_look_patience(milliseconds: u64) {
    PATIENCE.store(milliseconds, Ordering::Relaxed);
}

/// The next event; other threads run meanwhile.
fn next(
    py: Python<'_>,
    events: &mut Receiver<CopyEvent>,
    until: Instant,
) -> Result<CopyEvent, RecvTimeoutError> {
    // What is there already is worth no detour.
    if let Ok(event) = events.try_recv() {
        return Ok(event);
    }
    let left = until.saturating_duration_since(Instant::now());
    py.detach(move || {
        // The whole of it, which may go to another thread: a part may not.
        let events: &mut Receiver<CopyEvent> = events;
        events.recv_timeout(left)
    })
}

/// How a child began.
enum FirstEvent {
    /// It works.
    Working,
    /// It has answered already.
    Over(LookResult),
    /// It ended, or it hangs.
    Failed(NoAnswer),
}

impl FirstEvent {
    fn new(event: Result<CopyEvent, RecvTimeoutError>) -> Self {
        match event {
            Ok(CopyEvent::Ready | CopyEvent::Questions(..)) => Self::Working,
            Ok(CopyEvent::Done(Ok(found))) => Self::Over(Ok(found)),
            Ok(CopyEvent::Done(Err(why))) => Self::Failed(why),
            Err(RecvTimeoutError::Timeout) => {
                let words = "its process did not come to begin";
                Self::Failed(NoAnswer::Failed(words.to_owned()))
            }
            Err(RecvTimeoutError::Disconnected) => Self::Failed(NoAnswer::given_up()),
        }
    }
}

/// Waits for a child's first message where the user's adapters may be called. The GIL is kept until the
/// child has named the objects: they are alive only as long as nothing has run.
fn first_event_with_gil(
    py: Python<'_>,
    events: &mut Receiver<CopyEvent>,
    registered: &[Registered<'_>],
    patience: Duration,
) -> FirstEvent {
    let began = FirstEvent::new(events.recv_timeout(READY_WITHIN));
    if !matches!(began, FirstEvent::Working) {
        return began;
    }
    match events.recv_timeout(patience) {
        Ok(CopyEvent::Questions(questions, answer)) => {
            // A child that is gone needs no answer.
            drop(answer.send(call_adapters(py, &questions, registered)));
            FirstEvent::Working
        }
        // The child continues; later questions stay unanswered.
        Err(RecvTimeoutError::Timeout) => FirstEvent::Working,
        event => FirstEvent::new(event),
    }
}

/// Calls the user's adapters with the objects that a child named.
#[expect(unsafe_code, reason = "objects that the copy of this process named")]
fn call_adapters(py: Python<'_>, questions: &Questions, registered: &[Registered<'_>]) -> Answers {
    let borrow = |(address, adapter): &(usize, u8)| {
        let pointer = *address as *mut pyo3::ffi::PyObject;
        // SAFETY: the copy met it as a live object, and the GIL was kept since the copy was made.
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, pointer) };
        (object, *adapter)
    };
    // Take a reference to each before any of the user's code runs.
    let objects: Vec<_> = questions.objects.iter().map(borrow).collect();
    let ask = |(object, adapter): (Option<Bound<'_, PyAny>>, u8)| {
        let (_, function) = registered.get(usize::from(adapter))?;
        Some(registered::ask(function, &object?))
    };
    Answers {
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
pub fn ensure_room() -> PyResult<()> {
    match process::address_space() {
        Some(left) if left < REPORT => Err(PyMemoryError::new_err(format!(
            "only {left} of address space are left, and a report needs {REPORT}"
        ))),
        _ => Ok(()),
    }
}

/// What `work` returns, for which there is room; other threads run meanwhile.
pub fn with_room<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    ensure_room()?;
    Ok(py.detach(work))
}

/// The free bytes of the pools that a child asks about.
fn free_in(py: Python<'_>, questions: &Questions) -> Vec<Vec<(String, Bytes)>> {
    let pools = questions.pools.iter();
    pools.map(|pool| pools::free(py, *pool)).collect()
}
