//! The thread that triggers looks at the stacks. It takes the GIL only for a look.

use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use gpumem_base::locks::{lock, unpoisoned};
use gpumem_base::threads::{self, Progress};

/// Shorter runs have no look.
const FIRST: Duration = Duration::from_millis(200);
/// The next look comes after this, or after a quarter of the time that the run has taken, …
const SHORTEST: Duration = Duration::from_millis(100);
const PART_OF_A_RUN: u32 = 4;
/// … but no later than this, …
const LONGEST: Duration = Duration::from_secs(30);
/// … and not before the run has lasted this many times as long as all of its looks.
const TIME_PER_LOOK: u32 = 100;

/// How long the end of the process waits for a running look.
const PATIENCE: Duration = Duration::from_secs(1);

static STATE: Mutex<WatcherState> = Mutex::new(WatcherState {
    run: None,
    n_begun: 0,
    sleep: Sleep::None,
    has_thread: false,
    is_over: false,
});
static CHANGED: Condvar = Condvar::new();

/// Held while the thread has the GIL or waits for it.
static LOOKING: Mutex<()> = Mutex::new(());

struct WatcherState {
    /// When the open run began.
    run: Option<Instant>,
    /// Tells one run from the next.
    n_begun: u64,
    sleep: Sleep,
    has_thread: bool,
    is_over: bool,
}

/// What a visit to the open run came to.
pub(super) struct Visited {
    /// How long counting and judging took.
    pub(super) took: Duration,
    /// An answer is to come.
    pub(super) is_looking: bool,
}

enum Sleep {
    None,
    Until(Instant),
    Forever,
}

/// A run begins. The first one starts the thread.
pub(super) fn begin(began: Instant, visit: fn(Python<'_>) -> Visited) -> std::io::Result<()> {
    let mut state = lock(&STATE);
    if state.is_over {
        return Ok(());
    }
    state.run = Some(began);
    state.n_begun += 1;
    let is_too_long = match state.sleep {
        Sleep::None => false,
        Sleep::Until(then) => then > began + FIRST,
        Sleep::Forever => true,
    };
    let is_first = !state.has_thread;
    if is_first {
        let mut pace = WatchPace::default();
        threads::start("gpumem-loops", move || attend(visit, &mut pace), wake)?;
        state.has_thread = true;
    }
    drop(state);
    if is_too_long {
        CHANGED.notify_one();
    }
    Ok(())
}

/// Ends the run without waking the thread.
pub(super) fn end() {
    lock(&STATE).run = None;
}

/// The process ends: from now on the thread does not ask for the GIL.
pub(super) fn stop(py: Python<'_>) {
    {
        let mut state = lock(&STATE);
        state.is_over = true;
        state.run = None;
    }
    CHANGED.notify_one();
    py.detach(|| {
        let until = Instant::now() + PATIENCE;
        while LOOKING.try_lock().is_err() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Which run the thread looked at last, and when it is to look at that again.
#[derive(Default)]
struct WatchPace {
    of_run: u64,
    /// What the looks at it took.
    spent: Duration,
    due: Option<Instant>,
}

/// A fork is near: the thread is to return.
fn wake() {
    let _state = lock(&STATE);
    CHANGED.notify_all();
}

fn attend(visit: fn(Python<'_>) -> Visited, pace: &mut WatchPace) -> Progress {
    loop {
        let (n_begun, began) = match wait(pace) {
            Ok(due) => due,
            Err(progress) => return progress,
        };
        let _looking = lock(&LOOKING);
        if lock(&STATE).is_over {
            return Progress::Done;
        }
        // Waiting for the GIL may take long but costs nothing.
        let visited = Python::try_attach(visit).unwrap_or(Visited {
            took: LONGEST,
            is_looking: false,
        });
        let now = Instant::now();
        let age = now.saturating_duration_since(began);
        let rest = if visited.is_looking {
            SHORTEST
        } else {
            (age / PART_OF_A_RUN).clamp(SHORTEST, LONGEST)
        };
        if pace.of_run != n_begun {
            *pace = WatchPace::default();
        }
        pace.of_run = n_begun;
        pace.spent += visited.took;
        let is_earned = began + pace.spent * TIME_PER_LOOK;
        pace.due = Some(is_earned.max(now + rest));
    }
}

/// Sleeps until it is time to look at a run, and says which; or until the thread is to return.
fn wait(pace: &WatchPace) -> Result<(u64, Instant), Progress> {
    let mut state = lock(&STATE);
    loop {
        if state.is_over {
            return Err(Progress::Done);
        }
        if threads::are_paused() {
            return Err(Progress::Paused);
        }
        let now = Instant::now();
        state = if let Some(began) = state.run {
            let is_known = state.n_begun == pace.of_run;
            let due = pace.due.filter(|_| is_known).unwrap_or(began + FIRST);
            if now >= due {
                return Ok((state.n_begun, began));
            }
            state.sleep = Sleep::Until(due);
            unpoisoned(CHANGED.wait_timeout(state, due - now)).0
        } else {
            state.sleep = Sleep::Forever;
            unpoisoned(CHANGED.wait(state))
        };
        state.sleep = Sleep::None;
    }
}
