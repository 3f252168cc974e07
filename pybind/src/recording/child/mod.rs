//! Child processes record themselves, each into a file of its own beside the session's.
//!
//! A child knows from its `place` where: a fork inherits it, another process reads it from an
//! environment variable. A fork begins once it shows what it is for: `multiprocessing` gives it work, or
//! it records a step or a block. Until then no thread of ours is in it, in which the system would
//! refuse some of its calls. `record` is the child's thread, `level` what it reads, `found` reads the files
//! of all children, and `watch` is how their parent sees them end.
//!
//! A forked child may use nothing that another thread of its parent had locked when it forked: neither
//! the session nor its sources, nor SQLite, which has locks of its own. All state here is made anew in
//! the child and belongs to one process id.

mod found;
mod level;
mod place;
mod record;
#[cfg(target_os = "linux")]
mod watch;

use std::process;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

pub(crate) use found::{delete, folder, found, note_codes, note_device_used, prune};
pub(crate) use place::{ChildFolder, move_to};
use record::ChildShared;

use gpumem_base::text::Text;

#[cfg(not(target_os = "linux"))]
pub(crate) fn watch(_: &std::path::Path, _: gpumem_base::clock::Clock) {}
#[cfg(target_os = "linux")]
pub(crate) use watch::watch;

/// A child that ends waits for its last words to be written: no longer than that.
const PATIENCE: Duration = Duration::from_millis(50);

/// What this process records of itself, if it is a child. Never freed: a fork may have a copy.
static CHILD: AtomicPtr<ForkedChild> = AtomicPtr::new(ptr::null_mut());

struct ForkedChild {
    pid: u32,
    shared: Arc<ChildShared>,
}

#[expect(unsafe_code, reason = "what is behind the pointer is never freed")]
fn here() -> Option<&'static ForkedChild> {
    // SAFETY: it is null or was leaked by `begin`.
    let child = unsafe { CHILD.load(Ordering::Acquire).as_ref() };
    child.filter(|child| child.pid == process::id())
}

/// This process is a child that could record itself.
#[pyfunction(name = "_child_forked")]
pub(crate) fn may_record() -> bool {
    place::current().is_some_and(|place| place.session_pid != process::id())
}

/// A block begins, if this is a child: it records itself from now on.
pub(crate) fn record_block() {
    begin(None);
}

/// A step of a loop ended. The child records itself from now on.
pub(crate) fn mark() {
    if begin(None)
        && let Some(child) = here()
    {
        child.shared.mark();
    }
}

/// The child ends in order: its file gets its last words.
pub(crate) fn end() {
    if let Some(child) = here() {
        child.shared.end(PATIENCE);
    }
}

/// Where the variable of the environment says that a child records itself.
#[pyfunction(name = "_child_place")]
pub(crate) fn read_place(words: Text) {
    let Text(words) = words;
    if let Some(place) = ChildFolder::from_text(&words) {
        move_to(Some(place));
    }
}

/// Records this process from now on, under a name and with what else is known of it; it is named anew
/// if it is recorded already. False if there is nowhere to.
#[pyfunction(name = "_child_begin")]
pub(crate) fn begin_named(name: Text, facts: Vec<(Text, Text)>) -> bool {
    let Text(name) = name;
    if !begin(Some(&name)) {
        return false;
    }
    if let Some(child) = here() {
        let facts = facts
            .into_iter()
            .map(|(Text(name), Text(value))| (name, value));
        child.shared.rename(&name, facts.collect());
    }
    true
}

/// The child ends in order.
#[pyfunction(name = "_child_ended")]
pub(crate) fn ended(py: Python<'_>) {
    py.detach(end);
}

fn begin(name: Option<&str>) -> bool {
    if here().is_some() {
        return true;
    }
    let Some(place) = place::current() else {
        return false;
    };
    let pid = process::id();
    if place.session_pid == pid {
        return false;
    }
    let name = name.map_or_else(|| format!("process {pid}"), str::to_owned);
    let shared = Arc::new(ChildShared::new(name, place.clock));
    if record::start(&shared, place).is_err() {
        return false;
    }
    let child = Box::leak(Box::new(ForkedChild { pid, shared }));
    CHILD.store(child, Ordering::Release);
    true
}
