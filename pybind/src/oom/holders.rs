//! Who holds device memory at the moment of the error: looked at before the frames go.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpumem_core::holders::HeldBy;
use pyo3::prelude::*;

use super::Told;
use crate::adapters::own::Asks;
use crate::walk::{self, Extent, Limits, Search};
use crate::{extension, trouble};

/// Beyond the first moment, looking takes no more than this part of the time of a cell that runs
/// out of memory over and over.
const SHARE: u32 = 20;

/// The run in which an error is looked at as soon as its allocator tells of it.
static WATCHED: Mutex<Option<Watch>> = Mutex::new(None);

struct Watch {
    since: Instant,
    /// What looking took so far.
    spent: Duration,
}

/// From now on an allocator's word is taken for a reason to look who holds memory; or no longer.
pub(crate) fn watch(yes: bool) {
    let watch = yes.then(|| Watch {
        since: Instant::now(),
        spent: Duration::ZERO,
    });
    *WATCHED.lock().unwrap_or_else(PoisonError::into_inner) = watch;
}

/// Who holds memory now, in the middle of the call that did not get any: the error may be caught.
pub(super) fn at_this_moment(py: Python<'_>) -> Vec<HeldBy> {
    let found = in_time(|| trouble::caught(py, || Ok(holders(py, Asks::Nobody))));
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
        let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        let first = Limits::at_a_prompt().time;
        let has_time = |it: &Self| it.spent <= first + it.since.elapsed() / SHARE;
        watched.as_ref().is_some_and(has_time)
    }

    fn spend(time: Duration) {
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = watched.as_mut() {
            watch.spent += time;
        }
    }
}

impl Told {
    /// The same with the names that hold memory now, where the error still has its frames.
    pub(crate) fn with_holders(self, py: Python<'_>) -> Self {
        if self.survived {
            return self;
        }
        Self {
            holders: holders(py, Asks::AfterRuns),
            ..self
        }
    }
}

fn holders(py: Python<'_>, asks: Asks) -> Vec<HeldBy> {
    let search = Search {
        extent: Extent::Names,
        limits: Limits::at_a_prompt(),
        asks,
    };
    match walk::find(py, &extension::shells(py), search) {
        Ok(found) => found.graph.by_preferred_name(),
        Err(error) => {
            let message = format!("who held memory is not known: {error}");
            trouble::log_once(py, &message);
            Vec::new()
        }
    }
}
