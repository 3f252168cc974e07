//! Who holds device memory at the moment of the error: looked at before the frames go.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use gpumem_heap::HeldBy;
use pyo3::prelude::*;

use gpumem_base::guard;
use gpumem_base::locks::lock;
use gpumem_base::shells::shells;
use gpumem_objects::look::{self, Question, Reach, Taken, Urgency};

/// Beyond the first moment, looking takes no more than this part of the time of a cell that runs
/// out of memory over and over.
const SHARE: u32 = 20;

/// The runs in which an error is inspected as soon as its allocator reports it.
static WATCHED: Mutex<Option<Watch>> = Mutex::new(None);

struct Watch {
    n_runs: usize,
    since: Instant,
    /// What looking took so far.
    spent: Duration,
}

/// While this lives, an allocator's report triggers a search for holders.
#[derive(Debug)]
pub(crate) struct OomWatch(());

impl OomWatch {
    pub(crate) fn begin() -> Self {
        let mut watched = lock(&WATCHED);
        let watch = watched.get_or_insert_with(|| Watch {
            n_runs: 0,
            since: Instant::now(),
            spent: Duration::ZERO,
        });
        watch.n_runs += 1;
        Self(())
    }
}

impl Drop for OomWatch {
    fn drop(&mut self) {
        let mut watched = lock(&WATCHED);
        if let Some(watch) = watched.as_mut() {
            watch.n_runs -= 1;
        }
        watched.take_if(|watch| watch.n_runs == 0);
    }
}

/// Who holds memory now, in the middle of the call that did not get any: the error may be caught.
pub(super) fn at_this_moment(py: Python<'_>) -> Vec<HeldBy> {
    let found = in_time(|| guard::caught(py, || Ok(holders(py))));
    // The card does without; what failed has been said.
    found.and_then(Result::ok).flatten().unwrap_or_default()
}

/// What a look finds, as long as there is time for one.
pub(super) fn in_time<T>(look: impl FnOnce() -> T) -> Option<T> {
    if !Watch::has_time() {
        return None;
    }
    let started = Instant::now();
    let found = look();
    Watch::spend(started.elapsed());
    Some(found)
}

impl Watch {
    fn has_time() -> bool {
        let watched = lock(&WATCHED);
        let first = look::patience();
        let has_time = |it: &Self| it.spent <= first + it.since.elapsed() / SHARE;
        watched.as_ref().is_some_and(has_time)
    }

    fn spend(time: Duration) {
        let mut watched = lock(&WATCHED);
        if let Some(watch) = watched.as_mut() {
            watch.spent += time;
        }
    }
}

fn holders(py: Python<'_>) -> Vec<HeldBy> {
    // The user's code is running: no adapter is called.
    let question = Question::new(py, Reach::Names, Urgency::Error);
    match look::take(py, &shells(py), &question, look::patience()) {
        Taken::Answered(found) => found.held_by,
        Taken::Late(_) => {
            guard::log_once(
                py,
                "could not search for holders when memory ran out: it took too long",
            );
            Vec::new()
        }
        Taken::NoAnswer(reason) => {
            let message = format!("could not search for holders when memory ran out: {reason}");
            guard::log_once(py, &message);
            Vec::new()
        }
    }
}
