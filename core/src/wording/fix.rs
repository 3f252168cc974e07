//! Why a fix helps, and its limits.

use crate::holders::FixReason;

/// Why a fix helps, in one sentence.
///
/// ```
/// use gpumem_core::holders::FixReason;
/// use gpumem_core::wording::fix_reason;
///
/// assert!(fix_reason(FixReason::NotDisplayed).starts_with("IPython keeps what a cell displays"));
/// ```
pub const fn fix_reason(reason: FixReason) -> &'static str {
    match reason {
        FixReason::NotDisplayed => {
            "IPython keeps what a cell displays for the whole session; `%gpumem release outputs` \
             frees what is already kept"
        }
        FixReason::OutputsReleased => {
            "IPython keeps what a cell displays for the whole session; a `;` at the end of the \
             last line avoids it"
        }
        FixReason::TracebackReleased => {
            "the last exception keeps every local variable of the functions it passed through"
        }
        FixReason::CyclesCollected => {
            "the objects refer to each other and wait for a collection; with a `weakref` in one \
             direction they are freed at once"
        }
        FixReason::ScriptsForgotten => {
            "IPython keeps the namespace of every script that `%run` ran"
        }
        FixReason::OldCopyFirst => {
            "the name keeps the old copy until the new one is ready; with `None` it goes first, \
             even in a first run, when `del` would fail"
        }
        FixReason::NameWithGraph => {
            "the graph for the backward pass is kept with it: `.detach()` what is kept, or compute it under `no_grad()` if no backward pass follows"
        }
        FixReason::Name => "once it is not needed: only this name keeps it alive",
        FixReason::CacheBounded => {
            "without a bound the cache keeps every result, and its arguments"
        }
        FixReason::CacheCleared => {
            "the cache keeps its results, and their arguments; `functools.lru_cache(maxsize=…)` \
             bounds how many"
        }
        FixReason::Number => {
            "a plain number keeps neither device memory nor a graph; `.item()` waits for the device"
        }
        FixReason::Detached => {
            "without its graph each keeps only its own values; they still add up, so keep only as many as you need, and compute under `no_grad()` if no backward pass follows"
        }
        FixReason::LatestKept => {
            "keeps the latest 100 and frees the rest; a `deque(maxlen=100)` does it by itself"
        }
    }
}
