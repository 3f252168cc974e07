//! The callback for each iteration, and the counters that it increments.
//!
//! The callback runs inside the user's loop. It takes no lock and allocates nothing. It reads the
//! clock about every 100 µs, and a level only then. All state is atomic and written under the GIL,
//! so relaxed ordering suffices.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::recording::session;
use gpumem_base::cpu_time;

/// The most loops and code objects that are counted in a run.
pub(super) const MAX_LOOPS: usize = 256;

/// The size of the table of jump targets, of which at most half is used.
const N_PLACES: usize = 1024;
pub(super) const MAX_PLACES: usize = N_PLACES / 2;

/// The most loops of a run whose levels are read, …
const MAX_SERIES: u32 = 16;
/// … and the most of them in libraries.
const MAX_LIBRARY_SERIES: u32 = 8;

/// What an event costs: measured in `bench loop`.
const EVENT_NANOS: u64 = 60;
/// How often the clock is read.
const LOOK_NANOS: u64 = 100_000;
const MAX_STEP: u32 = 1024;

/// A loop with more iterations per second is counted only part of the time: its events took 0.25 %.
const MAX_RATE: u64 = 1_000_000_000 / EVENT_NANOS / 400;
/// The fewest events for measuring the rate.
const MIN_WINDOW: u64 = 1000;
/// The period over which the rate is measured.
const WINDOW_NANOS: u64 = 100_000_000;

/// A loop whose iterations are shorter has no levels, only a count.
const MIN_PERIOD_NANOS: u64 = 1_000_000;
/// All readings of a run take at most this part of its time, …
const READING_SHARE: u64 = 400;
/// … plus this constant, so that short runs have readings, too.
const READING_START: u64 = 2_000_000;

/// The place of a function's calls; no jump goes there.
const CALLS: u32 = u32::MAX;

/// Where iterations of a loop jump to.
struct JumpTarget {
    /// The address of the code object, which is kept while it is counted; 0 for none.
    code: AtomicUsize,
    offset: AtomicU32,
    loop_idx: AtomicU32,
}

/// One loop's counter. Times are nanoseconds by [`now`]; 0 for never.
struct Counter {
    n: AtomicU64,
    /// Events until the clock is read again, …
    n_left: AtomicU32,
    /// … of this many.
    step: AtomicU32,
    looked_at: AtomicU64,
    first_at: AtomicU64,
    /// What [`MAX_RATE`] is compared with: since when, and the count then.
    window_from: AtomicU64,
    window_n: AtomicU64,
    /// When events were turned off because the loop was too fast.
    off_since: AtomicU64,
    /// Iterations per second before that.
    off_rate: AtomicU64,
    /// How long it was off before the window began; not yet added to the count.
    missed_nanos: AtomicU64,
    is_estimate: AtomicBool,
    is_library: AtomicBool,
    was_running: AtomicBool,
    /// Its levels may be read, …
    may_be_read: AtomicBool,
    /// … and are.
    has_series: AtomicBool,
    n_marks: AtomicU64,
    /// All marks of the process at the last event.
    marks_before: AtomicU64,
    /// The time that its readings took.
    spent: AtomicU64,
}

static PLACES: [JumpTarget; N_PLACES] = [const {
    JumpTarget {
        code: AtomicUsize::new(0),
        offset: AtomicU32::new(0),
        loop_idx: AtomicU32::new(0),
    }
}; N_PLACES];

static COUNTERS: [Counter; MAX_LOOPS] = [const {
    Counter {
        n: AtomicU64::new(0),
        n_left: AtomicU32::new(0),
        step: AtomicU32::new(0),
        looked_at: AtomicU64::new(0),
        first_at: AtomicU64::new(0),
        window_from: AtomicU64::new(0),
        window_n: AtomicU64::new(0),
        off_since: AtomicU64::new(0),
        off_rate: AtomicU64::new(0),
        missed_nanos: AtomicU64::new(0),
        is_estimate: AtomicBool::new(false),
        is_library: AtomicBool::new(false),
        was_running: AtomicBool::new(false),
        may_be_read: AtomicBool::new(false),
        has_series: AtomicBool::new(false),
        n_marks: AtomicU64::new(0),
        marks_before: AtomicU64::new(0),
        spent: AtomicU64::new(0),
    }
}; MAX_LOOPS];

/// When counting began in the open run, its readings and their cost.
static BEGAN: AtomicU64 = AtomicU64::new(0);
static SPENT: AtomicU64 = AtomicU64::new(0);
static SPENT_IN_LIBRARIES: AtomicU64 = AtomicU64::new(0);
static LAST_COST: AtomicU64 = AtomicU64::new(0);
static N_SERIES: AtomicU32 = AtomicU32::new(0);
static N_LIBRARY_SERIES: AtomicU32 = AtomicU32::new(0);
/// A level is being read, which may let other threads in.
static IS_READING: AtomicBool = AtomicBool::new(false);

/// Steps that the user's code has marked.
static N_MARKS: AtomicU64 = AtomicU64::new(0);

static DISABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A loop's count at one instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopCount {
    pub(super) n: u64,
    pub(super) is_estimate: bool,
    pub(super) last: Instant,
    pub(super) n_marks: u64,
}

/// The user's code has marked a step.
pub(crate) fn note_mark() {
    N_MARKS.fetch_add(1, Relaxed);
}

/// What a callback returns where it wants no more events of that instruction.
pub(super) fn set_disable(py: Python<'_>, disable: Py<PyAny>) {
    drop(DISABLE.set(py, disable));
}

/// Python calls this where code jumps.
#[pyfunction]
pub(super) fn jumped(
    py: Python<'_>,
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
    destination: u32,
) -> Option<&'static Py<PyAny>> {
    let is_wanted = find(code, destination).is_some_and(|idx| COUNTERS[idx].turns(py, idx));
    disabled(py, !is_wanted)
}

/// Python calls this where a function begins.
#[pyfunction]
pub(super) fn called(
    py: Python<'_>,
    code: &Bound<'_, PyAny>,
    _offset: &Bound<'_, PyAny>,
) -> Option<&'static Py<PyAny>> {
    let is_wanted = find(code, CALLS).is_some_and(|idx| COUNTERS[idx].turns(py, idx));
    disabled(py, !is_wanted)
}

fn disabled(py: Python<'_>, is_disabled: bool) -> Option<&'static Py<PyAny>> {
    if is_disabled { DISABLE.get(py) } else { None }
}

fn find(code: &Bound<'_, PyAny>, offset: u32) -> Option<usize> {
    let code = code.as_ptr() as usize;
    let place = places(code, offset).find(|it| {
        let found = it.code.load(Relaxed);
        found == 0 || (found == code && it.offset.load(Relaxed) == offset)
    })?;
    let idx = place.loop_idx.load(Relaxed) as usize;
    (place.code.load(Relaxed) != 0 && idx < MAX_LOOPS).then_some(idx)
}

/// The places where one may be, likeliest first.
fn places(code: usize, offset: u32) -> impl Iterator<Item = &'static JumpTarget> {
    let hash = (code >> 4)
        .wrapping_add(offset as usize >> 1)
        .wrapping_mul(0x9e37_79b9);
    (0..N_PLACES).map(move |n| &PLACES[(hash >> 7).wrapping_add(n) % N_PLACES])
}

/// Counts in a run that began then: nothing is counted yet.
pub(super) fn begin(began: Instant) {
    let places = PLACES.iter();
    for place in places.filter(|place| place.code.load(Relaxed) != 0) {
        place.code.store(0, Relaxed);
    }
    SPENT.store(0, Relaxed);
    SPENT_IN_LIBRARIES.store(0, Relaxed);
    N_SERIES.store(0, Relaxed);
    N_LIBRARY_SERIES.store(0, Relaxed);
    let age = u64::try_from(began.elapsed().as_nanos()).unwrap_or_default();
    BEGAN.store(now().saturating_sub(age), Relaxed);
}

/// How a loop was found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoopStart {
    pub(super) is_library: bool,
    pub(super) was_running: bool,
}

/// Counts a loop from now on: iterations that jump to these offsets of the code.
pub(super) fn add_loop(idx: usize, code: usize, heads: &[u32], start: LoopStart) {
    COUNTERS[idx].reset(start);
    confirm(idx);
    for offset in heads {
        add(idx, code, *offset);
    }
}

/// Counts the calls of a function from now on.
pub(super) fn add_calls(idx: usize, code: usize, start: LoopStart) {
    COUNTERS[idx].reset(start);
    add(idx, code, CALLS);
}

/// It is a loop: its levels may be read.
pub(super) fn confirm(idx: usize) {
    COUNTERS[idx].may_be_read.store(true, Relaxed);
}

fn add(idx: usize, code: usize, offset: u32) {
    let place = places(code, offset).find(|place| place.code.load(Relaxed) == 0);
    if let Some(place) = place {
        place.offset.store(offset, Relaxed);
        place
            .loop_idx
            .store(u32::try_from(idx).unwrap_or(u32::MAX), Relaxed);
        place.code.store(code, Relaxed);
    }
}

pub(super) fn count(idx: usize) -> LoopCount {
    let counter = &COUNTERS[idx];
    let last = EPOCH.checked_add(Duration::from_nanos(counter.looked_at.load(Relaxed)));
    LoopCount {
        n: counter.n.load(Relaxed),
        is_estimate: counter.is_estimate.load(Relaxed),
        last: last.unwrap_or(*EPOCH),
        n_marks: counter.n_marks.load(Relaxed),
    }
}

/// Its levels are read.
pub(super) fn has_series(idx: usize) -> bool {
    COUNTERS[idx].has_series.load(Relaxed)
}

/// Events of the loop are off because it turned too fast.
pub(super) fn is_off(idx: usize) -> bool {
    COUNTERS[idx].off_since.load(Relaxed) != 0
}

/// Its events are on again: what it did meanwhile is estimated when it is known how fast it turns now.
pub(super) fn resume(idx: usize) {
    let (counter, now) = (&COUNTERS[idx], now());
    let off_since = counter.off_since.swap(0, Relaxed);
    counter
        .missed_nanos
        .store(now.saturating_sub(off_since), Relaxed);
    counter.open_window(now);
    counter.n_left.store(1, Relaxed);
    counter.step.store(1, Relaxed);
}

/// Makes up for what was missed until now, when the run is over.
pub(super) fn end(idx: usize) {
    let (counter, now) = (&COUNTERS[idx], now());
    counter.make_up(now);
    let off_since = counter.off_since.load(Relaxed);
    if off_since != 0 {
        counter.off_since.store(now, Relaxed);
        counter.add_missed(
            now.saturating_sub(off_since),
            counter.off_rate.load(Relaxed),
        );
    }
}

impl Counter {
    fn reset(&self, start: LoopStart) {
        for zero in [
            &self.n,
            &self.looked_at,
            &self.first_at,
            &self.off_since,
            &self.off_rate,
            &self.missed_nanos,
            &self.n_marks,
            &self.spent,
        ] {
            zero.store(0, Relaxed);
        }
        self.n_left.store(1, Relaxed);
        self.step.store(1, Relaxed);
        self.is_estimate.store(false, Relaxed);
        self.has_series.store(false, Relaxed);
        self.may_be_read.store(false, Relaxed);
        self.is_library.store(start.is_library, Relaxed);
        self.was_running.store(start.was_running, Relaxed);
        self.marks_before.store(N_MARKS.load(Relaxed), Relaxed);
        self.open_window(now());
    }

    fn open_window(&self, now: u64) {
        self.window_from.store(now, Relaxed);
        self.window_n.store(self.n.load(Relaxed), Relaxed);
    }

    /// One iteration more. False if there are to be no more events of it for now.
    fn turns(&self, py: Python<'_>, idx: usize) -> bool {
        let n = self.n.load(Relaxed) + 1;
        self.n.store(n, Relaxed);
        let marks = N_MARKS.load(Relaxed);
        let marks_before = self.marks_before.load(Relaxed);
        if marks != marks_before {
            self.marks_before.store(marks, Relaxed);
            let n_marks = self.n_marks.load(Relaxed) + marks.wrapping_sub(marks_before);
            self.n_marks.store(n_marks, Relaxed);
        }
        let n_left = self.n_left.load(Relaxed);
        if n_left > 1 {
            self.n_left.store(n_left - 1, Relaxed);
            return true;
        }
        self.looks(py, idx, n)
    }

    /// Looks at the clock.
    fn looks(&self, py: Python<'_>, idx: usize, n: u64) -> bool {
        // Another event of a loop that is off: of a second jump to its head, or of another thread.
        if self.off_since.load(Relaxed) != 0 {
            return false;
        }
        let now = now();
        let before = self.looked_at.swap(now, Relaxed);
        let step = self.step.load(Relaxed);
        let next = if before == 0 || now.saturating_sub(before) > LOOK_NANOS {
            step / 2
        } else {
            step * 2
        };
        let next = next.clamp(1, MAX_STEP);
        self.step.store(next, Relaxed);
        self.n_left.store(next, Relaxed);
        if self.first_at.load(Relaxed) == 0 {
            self.first_at.store(now, Relaxed);
        }
        if self.is_too_fast(now, n) {
            self.stop(now);
            return false;
        }
        let may_be_read = self.may_be_read.load(Relaxed);
        if may_be_read && self.is_slow(now, n) && self.can_afford(now) {
            return self.read(py, idx, n);
        }
        true
    }

    fn is_too_fast(&self, now: u64, n: u64) -> bool {
        let n = n - self.window_n.load(Relaxed).min(n);
        if n < MIN_WINDOW {
            return false;
        }
        let nanos = now.saturating_sub(self.window_from.load(Relaxed));
        if per_second(n, nanos) > MAX_RATE {
            return true;
        }
        if nanos > WINDOW_NANOS {
            self.make_up(now);
            self.open_window(now);
        }
        false
    }

    /// No more events until [`resume`].
    fn stop(&self, now: u64) {
        self.make_up(now);
        let n = self.n.load(Relaxed) - self.window_n.load(Relaxed);
        let rate = per_second(n, now.saturating_sub(self.window_from.load(Relaxed)));
        self.off_rate.store(rate, Relaxed);
        self.off_since.store(now, Relaxed);
        self.is_estimate.store(true, Relaxed);
        // Its other jumps are off as soon as they come.
        self.n_left.store(1, Relaxed);
    }

    /// What it did while its events were off: as often as before and after, on average.
    fn make_up(&self, now: u64) {
        let missed = self.missed_nanos.swap(0, Relaxed);
        if missed == 0 {
            return;
        }
        let n = self.n.load(Relaxed) - self.window_n.load(Relaxed);
        let rate = per_second(n, now.saturating_sub(self.window_from.load(Relaxed)));
        self.add_missed(missed, self.off_rate.load(Relaxed).midpoint(rate));
    }

    fn add_missed(&self, nanos: u64, rate: u64) {
        let n = u128::from(nanos) * u128::from(rate) / 1_000_000_000;
        let n = u64::try_from(n).unwrap_or_default();
        for count in [&self.n, &self.window_n] {
            count.store(count.load(Relaxed) + n, Relaxed);
        }
    }

    /// Its iterations take long enough for levels; one that is met for the first time may not.
    fn is_slow(&self, now: u64, n: u64) -> bool {
        let (since, n_periods) = if n > 1 {
            (self.first_at.load(Relaxed), n - 1)
        } else if self.was_running.load(Relaxed) {
            (self.window_from.load(Relaxed), 1)
        } else {
            return false;
        };
        now.saturating_sub(since) >= MIN_PERIOD_NANOS.saturating_mul(n_periods)
    }

    /// One more reading keeps all of them within their share of the time. Beside the user's loops those of
    /// libraries have half of it, and the user's what they leave. In its second half it is for loops that have
    /// had less than their part: outer ones turn seldom.
    fn can_afford(&self, now: u64) -> bool {
        let age = now.saturating_sub(BEGAN.load(Relaxed));
        let allowed = READING_START + age / READING_SHARE;
        let of_libraries = SPENT_IN_LIBRARIES.load(Relaxed);
        let n_library = N_LIBRARY_SERIES.load(Relaxed);
        let n_users = N_SERIES.load(Relaxed) - n_library;
        let (allowed, spent, n_series) = if self.is_library.load(Relaxed) {
            let share = if n_users == 0 { 1 } else { 2 };
            (allowed / share, of_libraries, n_library)
        } else {
            let of_users = SPENT.load(Relaxed).saturating_sub(of_libraries);
            (allowed.saturating_sub(of_libraries), of_users, n_users)
        };
        let cost = LAST_COST.load(Relaxed);
        let spent = spent + cost;
        let part = allowed / u64::from(n_series.max(1));
        spent <= allowed / 2 || (spent <= allowed && self.spent.load(Relaxed) + cost <= part)
    }

    fn claims_series(&self) -> bool {
        if self.has_series.load(Relaxed) {
            return true;
        }
        let is_library = self.is_library.load(Relaxed);
        let n = N_SERIES.load(Relaxed);
        let n_library = N_LIBRARY_SERIES.load(Relaxed);
        if n >= MAX_SERIES || (is_library && n_library >= MAX_LIBRARY_SERIES) {
            return false;
        }
        N_SERIES.store(n + 1, Relaxed);
        N_LIBRARY_SERIES.store(n_library + u32::from(is_library), Relaxed);
        self.has_series.store(true, Relaxed);
        true
    }

    /// Reads the levels. False in a process that was forked: there nothing is counted.
    fn read(&self, py: Python<'_>, idx: usize, n: u64) -> bool {
        if !session::is_owner() {
            return false;
        }
        if !self.claims_series() || IS_READING.swap(true, Relaxed) {
            return true;
        }
        let (began, spent) = (Instant::now(), cpu_time::spent());
        super::read(py, idx, n);
        // Waiting for a core is no cost of the reading.
        let took = cpu_time::spent().saturating_sub(spent);
        let took = if took.is_zero() {
            began.elapsed()
        } else {
            took
        };
        let cost = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // One that took long says little of the next.
        LAST_COST.store(cost.min(MIN_PERIOD_NANOS), Relaxed);
        let is_library = self.is_library.load(Relaxed);
        let of_libraries = is_library.then_some(&SPENT_IN_LIBRARIES);
        for spent in [&SPENT, &self.spent].into_iter().chain(of_libraries) {
            spent.store(spent.load(Relaxed).saturating_add(cost), Relaxed);
        }
        IS_READING.store(false, Relaxed);
        true
    }
}

fn per_second(n: u64, nanos: u64) -> u64 {
    let rate = u128::from(n) * 1_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Never 0.
fn now() -> u64 {
    let nanos = EPOCH.elapsed().as_nanos() + 1;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
