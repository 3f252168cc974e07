//! A look in the user's own process: where the system makes no copy of it, and only while that is
//! safe.
//!
//! Nothing else may run: no thread of the user's, no backward pass of torch's, whose engine frees
//! tensors without the GIL. Little is looked at, for this is the user's time; and few nodes of
//! torch's graphs, because each leaves a wrapper behind that lives as long as the node, and many
//! of them overflow the stack when the graph is freed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gpumem_heap::HeapSearchResult;
use gpumem_model::units::Bytes;
use pyo3::prelude::*;

use super::{Question, headroom, job, patience};
use crate::adapters::registered::Registered;
use crate::still::Section;
use crate::walk::{self, LocalBackend, Places, Search, WalkLimits, other_threads};

/// Set by a test: no copy is made.
static IS_ORDERED: AtomicBool = AtomicBool::new(false);

/// How many looks are in the section in which nothing of Python's may run.
static N_UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// The walk goes no further than this.
const MAX_NODES: usize = 400_000;
/// What that many nodes can come to take, with all that is worked out of them.
const ROOM: Bytes = Bytes::mib(512);

/// The walk goes no longer than this: 0.1 s, unless a test gives it more.
fn time() -> Duration {
    patience() * 2 / 5
}

/// Has looks be taken in the process, as on systems that make no copies.
#[pyfunction]
pub fn look_in_process(yes: bool) {
    IS_ORDERED.store(yes, Ordering::Relaxed);
}

/// A look is in the section in which nothing of Python's may run.
#[pyfunction]
pub fn looks_under_way() -> bool {
    N_UNDER_WAY.load(Ordering::Relaxed) > 0
}

pub(super) fn is_ordered() -> bool {
    IS_ORDERED.load(Ordering::Relaxed)
}

/// Counted among the looks under way as long as it lives.
struct UnderWay;

impl UnderWay {
    fn new() -> Self {
        N_UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        N_UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks here and now; an error says why that is not safe.
pub(super) fn look(
    py: Python<'_>,
    places: &Places<'_>,
    question: &Question,
    registered: &[Registered<'_>],
) -> Result<HeapSearchResult, String> {
    if let Some(left) = headroom::left().filter(|left| *left < ROOM) {
        return Err(format!("only {left} of host memory are left"));
    }
    let search = job::search_of(question);
    let search = Search {
        limits: WalkLimits {
            until: Instant::now() + question.walk_time.min(time()),
            cpu_until: None,
            n_nodes: MAX_NODES,
        },
        ..search
    };
    let walked = {
        let _under_way = UnderWay::new();
        let other = Section::enter(py, false, |section| other_threads(section, places));
        if let Some(other) = other {
            return Err(format!("a look in this process is not safe beside {other}"));
        }
        walk::find(py, places, search, registered)
    };
    let walked = walked.map_err(|error| error.to_string())?;
    let walked = walked.complete(py, &mut LocalBackend { registered });
    Ok(py.detach(|| {
        let held_by = walked.graph.by_preferred_name();
        let mut found = job::work_out(walked, question).0;
        found.held_by = held_by;
        found
    }))
}
