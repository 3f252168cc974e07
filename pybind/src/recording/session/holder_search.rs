//! When to search for holders: after a run that kept memory, or freed what was kept.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpumem_analyzer::inspection;
use gpumem_heap::{HeapSearchResult, Inventory};
use gpumem_model::holders::Allocated;
use gpumem_model::recording::{DeviceIdx, Reading, RunIdx};
use gpumem_model::units::{Bytes, Nanos};
use pyo3::prelude::*;

use super::reading::handed_out_of;
use super::{Session, is_owner, is_running, promises, with_session};
use crate::recording::recorder::SourceText;
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_base::modules::imported;
use gpumem_base::shells::shells;
use gpumem_machine::sources;
use gpumem_objects::adapters::registered::Asks;
use gpumem_objects::adapters::torch_is_imported;
use gpumem_objects::look::{self, Look, NoAnswer, Question, Reach, Taken, Urgency};

/// Held while a look begins.
static TAKING: Mutex<()> = Mutex::new(());

/// A look whose answer is pending.
pub(super) struct Late {
    look: Look,
    wanted: Wanted,
    question: Question,
    /// The heap has not changed: a failed look can be repeated.
    is_repeatable: bool,
}

/// A run without a look of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unseen {
    run: RunIdx,
    /// A cell has begun since: the one that reads the recording, if it is the only one.
    is_followed: bool,
}

/// What an answer is for.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// `None` before the first run.
    pub(super) run: Option<RunIdx>,
    /// When the look was taken, if the run went on.
    pub(super) inside_at: Option<Nanos>,
    /// The devices whose holders are recorded, with their labels.
    pub(super) devices: Vec<(DeviceIdx, String)>,
    /// The holders belong to the report of the run's out-of-memory error.
    pub(super) is_of_oom: bool,
}

impl Wanted {
    fn is_inside(&self, run: RunIdx) -> bool {
        self.run == Some(run) && self.inside_at.is_some()
    }
}

/// Before the first recorded run: takes stock, so that the look after the run shows what is new.
/// Does not wait for the answer.
pub(super) fn look_before(
    py: Python<'_>,
    before: &[(sources::SourceDevice, Reading)],
) -> PyResult<()> {
    let is_first = with_session(py, |session| {
        let keeps_names = session.recorder.source_text() == SourceText::Full;
        keeps_names && session.inventory.is_none() && session.late.is_none()
    })?;
    if !is_first {
        return Ok(());
    }
    let allocated = handed_out_of(before);
    let is_empty = if allocated.is_empty() {
        !holds_host_memory(py)
    } else {
        allocated.iter().all(|(_, it)| it.n_bytes == Bytes::ZERO)
    };
    if is_empty {
        let nothing = Arc::new(Inventory::default());
        return with_session(py, |session| session.inventory = Some(nothing));
    }
    let question = question(py, Reach::Names, allocated, None);
    let wanted = Wanted::default();
    match Look::begin(py, &shells(py), &question) {
        Ok(look) => with_session(py, |session| {
            session.late = Some(Late {
                look,
                wanted,
                question,
                is_repeatable: false,
            });
        }),
        Err(reason) => missed(py, &wanted, &reason),
    }
}

/// Whether the user has imported a library whose objects a look can measure.
fn holds_host_memory(py: Python<'_>) -> bool {
    torch_is_imported(py) || matches!(imported(py, "numpy"), Ok(Some(_)))
}

/// Looks for the names that hold memory, if the run makes it worth a look, and records them, with
/// what each holds more than at the look before. An answer that takes longer than a moment is
/// recorded when it comes.
///
/// If names do not explain most of the growth, everything else is looked at as well.
pub(crate) fn look_for_holders(py: Python<'_>, run: RunIdx) -> PyResult<()> {
    look_at(py, run, false)
}

/// What the latest look found, for comparison.
pub(crate) fn latest_inventory(py: Python<'_>) -> PyResult<Option<Arc<Inventory>>> {
    collect_look(py, look::patience())?;
    with_session(py, |session| session.inventory.clone())
}

/// The heap has changed outside of every run: the next reader of the recording triggers a look.
pub(crate) fn unseen_since(py: Python<'_>) -> PyResult<()> {
    with_session(py, |session| {
        let runs = session.recorder.recording().runs().iter();
        let latest = runs
            .rev()
            .find(|run| run.parent.is_none() && run.ended.is_some());
        if let Some(run) = latest {
            session.unseen = Some(Unseen {
                run: run.idx,
                is_followed: false,
            });
        }
    })
}

/// Looks after the latest run when the recording is read, if there was no time for it before.
pub(crate) fn look_if_unseen(py: Python<'_>) -> PyResult<()> {
    if is_running() {
        return Ok(());
    }
    let unseen = with_session(py, |session| {
        let unseen = session.unseen.take().map(|it| it.run);
        unseen.or_else(|| session.recorder.run_to_look_after())
    })?;
    unseen.map_or(Ok(()), |run| look_at(py, run, true))
}

fn look_at(py: Python<'_>, run: RunIdx, is_shown: bool) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let patience = if is_shown {
        look::patience()
    } else {
        look::moment()
    };
    wait_for_promises(py, run)?;
    let gone = promises::broken_off(py)?;
    let mut is_promised = false;
    let prepared = with_session(py, |session| {
        // Names may be private, like source text.
        let keeps_names = session.recorder.source_text() == SourceText::Full;
        let mut devices = if keeps_names {
            session.recorder.holders_wanted(run)
        } else {
            Vec::new()
        };
        let of_gone = session.devices_of_names(&gone, run);
        is_promised = !of_gone.is_empty();
        let to_read = is_shown.then(|| session.recorder.holders_wanted_to_read());
        for (device, label) in of_gone.into_iter().chain(to_read.into_iter().flatten()) {
            if !devices.iter().any(|(it, _)| *it == device) {
                devices.push((device, label));
            }
        }
        let wanted = Wanted {
            run: Some(run),
            inside_at: None,
            is_of_oom: session.recorder.lacks_holders_of_oom(run),
            devices,
        };
        let is_worth = wanted.is_of_oom || !wanted.devices.is_empty();
        let recorder = &session.recorder;
        is_worth.then(|| (wanted, recorder.handed_out(run), recorder.host_growth(run)))
    })?;
    let Some((wanted, allocated, grown)) = prepared else {
        return Ok(());
    };
    // If the previous run's look is still running, this run has none. Its answer is kept, and the next run
    // has a look again.
    let is_free = collect_earlier(py, patience)?;
    let is_due = is_shown || wanted.is_of_oom || look::is_due();
    let is_free = is_free || is_due && end_look_inside(py, run)?;
    let unseen = (!is_free || !is_due).then_some(Unseen {
        run,
        is_followed: false,
    });
    with_session(py, |session| session.unseen = unseen)?;
    if unseen.is_some() {
        return Ok(());
    }
    // The new answer may show that a deleted variable held much.
    let gone = promises::broken_off(py)?;
    let before = with_session(py, |session| {
        is_promised |= !session.devices_of_names(&gone, run).is_empty();
        session.inventory.clone()
    })?;
    // The line below the cell says it.
    let patience = if is_promised {
        look::patience()
    } else {
        patience
    };
    let question = Question {
        grown,
        gone,
        is_kept: is_promised,
        ..question(py, Reach::NamesOrAll, allocated, before)
    };
    take(py, question, wanted, patience)
}

/// Ends a look inside of this run, which is over: the one after it tells what stays. Whether one was under way.
fn end_look_inside(py: Python<'_>, run: RunIdx) -> PyResult<bool> {
    let late = with_session(py, |session| {
        session.late.take_if(|late| late.wanted.is_inside(run))
    })?;
    let Some(late) = late else {
        return Ok(false);
    };
    let began = Instant::now();
    late.look.end(py);
    look::spend_waiting(began.elapsed());
    Ok(true)
}

/// A cell that says that it lets go of a name is compared with the look before it, whose answer may be late.
fn wait_for_promises(py: Python<'_>, run: RunIdx) -> PyResult<()> {
    let is_worth = with_session(py, |session| {
        let is_late = session
            .late
            .as_ref()
            .is_some_and(|it| it.wanted.inside_at.is_none());
        is_late && inspection::lets_go(session.recorder.recording(), run)
    })?;
    if is_worth {
        collect_earlier(py, look::moment())?;
    }
    Ok(())
}

/// Waits for the look of an earlier run, longer if looks have taken little of the session's time so far.
fn collect_earlier(py: Python<'_>, patience: Duration) -> PyResult<bool> {
    let patience = if look::is_left() {
        look::patience()
    } else {
        patience
    };
    let began = Instant::now();
    let is_free = collect_look(py, patience)?;
    look::spend_waiting(began.elapsed());
    Ok(is_free)
}

/// Takes a look, whose answer is recorded now or when it comes.
pub(super) fn take(
    py: Python<'_>,
    question: Question,
    wanted: Wanted,
    patience: Duration,
) -> PyResult<()> {
    // One at a time: a run may end while a look inside of it is being begun.
    let _taking = lock_attached(py, &TAKING);
    match look::take(py, &shells(py), &question, patience) {
        Taken::Answered(found) => record(py, &wanted, *found),
        Taken::Late(look) => with_session(py, |session| {
            session.late = Some(Late {
                look,
                wanted,
                question,
                is_repeatable: true,
            });
        }),
        Taken::NoAnswer(reason) => missed(py, &wanted, &reason),
    }
}

/// The answer of a run's look is still to come.
pub(super) fn is_late(py: Python<'_>, run: RunIdx) -> PyResult<bool> {
    with_session(py, |session| {
        let late = session.late.as_ref();
        late.is_some_and(|late| late.wanted.run == Some(run) && late.wanted.inside_at.is_none())
    })
}

/// A cell begins, recorded or not: from now on the heap is not as the run before left it.
pub(crate) fn heap_changes(py: Python<'_>) -> PyResult<()> {
    collect_look(py, Duration::ZERO)?;
    with_session(py, |session| {
        if let Some(late) = &mut session.late {
            late.is_repeatable = false;
        }
        // What a second cell makes is none of the run's.
        session.unseen = session.unseen.filter(|it| !it.is_followed);
        if let Some(unseen) = &mut session.unseen {
            unseen.is_followed = true;
        }
    })
}

/// A cell begins that is not recorded.
pub(crate) fn note_unrecorded(py: Python<'_>) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    with_session(py, |session| session.recorder.note_unrecorded())
}

/// Nothing is recorded so far.
pub(crate) fn is_before_first_run(py: Python<'_>) -> PyResult<bool> {
    with_session(py, |session| session.recorder.recording().runs().is_empty())
}

/// Records the answer of a look that was late, if it comes within `patience`. False where it is
/// still under way.
pub(crate) fn collect_look(py: Python<'_>, patience: Duration) -> PyResult<bool> {
    let Some(mut late) = with_session(py, |session| session.late.take())? else {
        return Ok(true);
    };
    match late.look.wait(py, patience) {
        None => {
            with_session(py, |session| session.late = Some(late))?;
            Ok(false)
        }
        Some(Ok(found)) => record(py, &late.wanted, found).map(|()| true),
        Some(Err(reason)) => match late.question.after(&reason) {
            Some(question) if late.is_repeatable => {
                take(py, question, late.wanted, patience)?;
                with_session(py, |session| session.late.is_none())
            }
            _ => missed(py, &late.wanted, &reason).map(|()| true),
        },
    }
}

pub(super) fn question(
    py: Python<'_>,
    reach: Reach,
    allocated: Vec<(String, Allocated)>,
    before: Option<Arc<Inventory>>,
) -> Question {
    Question {
        allocated,
        before,
        asks: Asks::AfterRuns,
        ..Question::new(py, reach, Urgency::AfterRun)
    }
}

fn record(py: Python<'_>, wanted: &Wanted, found: HeapSearchResult) -> PyResult<()> {
    // A look inside of a run may meet autograd at work; the one after it is whole.
    for note in found.notes.iter().filter(|_| wanted.inside_at.is_none()) {
        guard::log_failure(py, "a look for holders is not whole", &note);
    }
    with_session(py, |session| session.record(wanted, found))
}

impl Session {
    fn record(&mut self, wanted: &Wanted, found: HeapSearchResult) {
        if let Some(run) = wanted.run {
            if wanted.is_of_oom {
                self.recorder.held_at_oom(run, found.held_by);
            }
            for (device, label) in &wanted.devices {
                let holders = found.holders.on(label).cloned();
                self.recorder
                    .held(run, *device, wanted.inside_at, label.clone(), holders);
            }
        }
        // The look before a run shows what the run has made since.
        if wanted.inside_at.is_none() {
            self.keep(found.inventory);
        }
    }

    /// Keeps what a look found for the one after it.
    fn keep(&mut self, inventory: Inventory) {
        self.promised = self.names_with_much(&inventory);
        self.inventory = Some(Arc::new(inventory));
    }
}

fn missed(py: Python<'_>, wanted: &Wanted, reason: &NoAnswer) -> PyResult<()> {
    // The next look has both time and memory, and the one after a run stands still. The recording says itself
    // that it lacks holders.
    if wanted.inside_at.is_some() || *reason == NoAnswer::NoGil {
        return Ok(());
    }
    if matches!(reason, NoAnswer::Busy | NoAnswer::LacksMemory) {
        // There may be no next run: the next reader of the recording triggers it.
        return with_session(py, |session| {
            session.unseen = wanted.run.map(|run| Unseen {
                run,
                is_followed: false,
            });
        });
    }
    guard::log_failure(py, "could not search for holders after a run", &reason);
    Ok(())
}
