//! How much of a session's time looks may take: the time of the thread that makes the copy.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Tries;

/// Looks that nobody asked for take at most this part of the time: 1 %, …
const SHARE: u32 = 100;
/// … and this much before that.
const ALLOWANCE: Duration = Duration::from_millis(250);

static LATEST_ANSWER: Mutex<Duration> = Mutex::new(Duration::ZERO);
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
static SPENT: Mutex<Duration> = Mutex::new(Duration::ZERO);

/// A look took so much.
pub(super) fn spend(time: Duration) {
    *SPENT.lock().unwrap_or_else(PoisonError::into_inner) += time;
}

/// An answer came so long after its copy was made.
pub(super) fn answered_after(time: Duration) {
    *LATEST_ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = time;
}

/// How long the latest answer took.
pub(super) fn latest_answer() -> Duration {
    *LATEST_ANSWER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there is time for a look that nobody asked for: after a slow one there is none for a while.
pub(crate) fn is_due() -> bool {
    let spent = *SPENT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = spent <= ALLOWANCE + BEGAN.elapsed() / SHARE;
    if !is_due {
        Tries::rest();
    }
    is_due
}
