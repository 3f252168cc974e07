//! What names hold that no cell has read for a while.

use super::{Prose, code, prose};
use gpumem_analyzer::{IdleMemory, LastUse};
use gpumem_model::holders::Twin;
use gpumem_model::recording::Recording;
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, count};

/// The heading of the list.
pub const IDLE: &str = "Held, but not read for a while";

/// Beside the heading.
pub const IDLE_NOTE: &str = "no alarm: a cell that you have yet to run may need it";

/// `not read for a while`, of what is in the list.
pub const NOT_READ: &str = "not read for a while";

/// ``last read in In [5], 17 runs ago · twin of `model`: 148 of 148 shapes``.
pub fn idle(recording: &Recording, idle: &IdleMemory) -> Prose {
    let since = since(recording, &idle.last_use);
    let more = match (&idle.twin, &idle.last_use.statement) {
        (Some(twin), _) => of_twin(twin),
        (None, Some(statement)) if !statement.contains('\n') => {
            prose!["by ", code(&source_text::abridged(statement))]
        }
        (None, _) => Prose::default(),
    };
    Prose::joined([&since, &more], " · ")
}

/// `last read in In [5], 17 runs ago`.
pub fn since(recording: &Recording, last: &LastUse) -> Prose {
    let run = recording.run(last.run);
    let place = match run.execution_count {
        Some(n) => format!("In [{n}]"),
        None => format!("run {}", last.run.0 + 1),
    };
    let ago = count(last.n_runs_since, "run");
    if last.is_read {
        prose![format!("last read in {place}, {ago} ago")]
    } else {
        prose![format!("made in {place}, {ago} ago, and not read since")]
    }
}

/// `the same 148 shapes, twice`.
pub fn twins(twin: &Twin) -> String {
    let what = if twin.by_shape { "shapes" } else { "sizes" };
    if twin.n_alike == twin.n_all {
        format!("the same {} {what}, twice", twin.n_all)
    } else {
        format!("{} of {} {what} twice", twin.n_alike, twin.n_all)
    }
}

pub(super) fn of_twin(twin: &Twin) -> Prose {
    let what = if twin.by_shape { "shapes" } else { "sizes" };
    let n = format!(": {} of {} {what}", twin.n_alike, twin.n_all);
    prose!["twin of ", code(&twin.other), n]
}

/// How many names those are, and how much they hold; `None` if there are none.
pub(super) fn sum<'i>(idle: impl Iterator<Item = &'i IdleMemory>) -> Option<(usize, Bytes)> {
    let sum = idle.fold((0, Bytes::ZERO), |(n, n_bytes), it| {
        (n + it.names.len(), n_bytes + it.n_bytes)
    });
    (sum.0 > 0).then_some(sum)
}
