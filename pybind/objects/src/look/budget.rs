//! How much of a session's time looks may take: the time of the thread that makes the copy.

use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use super::{Tries, patience};
use gpumem_base::locks::lock;

/// Automatic looks take at most this share of the time: 1 %.
const SHARE: u32 = 100;
/// No thread is to stand longer than this.
const SLOW: Duration = Duration::from_millis(50);

/// What looks may take beyond that: 2 s.
fn allowance() -> Duration {
    patience() * 8
}

/// What slow looks may: 250 ms.
fn slow_allowance() -> Duration {
    patience()
}

struct LookBudget {
    began: Instant,
    spent: Duration,
    spent_on_slow: Duration,
    /// How long the latest answer took.
    latest_answer: Duration,
}

static BUDGET: LazyLock<Mutex<LookBudget>> = LazyLock::new(|| Mutex::new(LookBudget::begin()));

impl LookBudget {
    fn begin() -> Self {
        Self {
            began: Instant::now(),
            spent: Duration::ZERO,
            spent_on_slow: Duration::ZERO,
            latest_answer: Duration::ZERO,
        }
    }
}

/// A session begins.
pub fn begin() {
    *lock(&BUDGET) = LookBudget::begin();
}

/// A look took so much.
pub(super) fn spend(time: Duration) {
    let mut budget = lock(&BUDGET);
    budget.spent += time;
    if time > SLOW {
        budget.spent_on_slow += time;
    }
}

/// The look of an earlier run was waited for that long.
pub fn spend_waiting(time: Duration) {
    lock(&BUDGET).spent += time;
}

/// As if looks had taken all of their time for an hour to come.
#[pyo3::pyfunction]
pub fn use_up_looks() {
    lock(&BUDGET).spent = allowance() + Duration::from_secs(3600) / SHARE;
}

/// Time from the copy to its answer.
pub(super) fn answered_after(time: Duration) {
    lock(&BUDGET).latest_answer = time;
}

/// How long the latest answer took.
pub(super) fn latest_answer() -> Duration {
    lock(&BUDGET).latest_answer
}

/// Whether an automatic look may run now: after a slow one there is a pause.
pub fn is_due() -> bool {
    let is_due = is_left();
    if !is_due {
        Tries::rest();
    }
    is_due
}

/// Whether a look may be waited for.
pub fn is_left() -> bool {
    let budget = lock(&BUDGET);
    let share = budget.began.elapsed() / SHARE;
    budget.spent <= allowance() + share && budget.spent_on_slow <= slow_allowance() + share
}
