//! What a thread of ours takes of a core.

use std::time::Duration;

/// What the turns of a thread cost, each with the waking and the falling asleep.
pub struct Expense {
    turns_per_look: u32,
    spent: Duration,
    n_turns: u32,
    latest: Duration,
    per_turn: Duration,
}

impl Expense {
    /// CPU time of the calling thread, read once in this many turns.
    pub fn new(turns_per_look: u32) -> Self {
        Self {
            turns_per_look,
            spent: spent(),
            n_turns: 0,
            latest: Duration::ZERO,
            per_turn: Duration::ZERO,
        }
    }

    /// One more turn has ended.
    pub fn note_turn(&mut self) {
        self.n_turns += 1;
        if self.n_turns >= self.turns_per_look {
            let now = spent();
            let before = self.latest;
            self.latest = now.saturating_sub(self.spent) / self.n_turns;
            self.per_turn = before.min(self.latest);
            (self.spent, self.n_turns) = (now, 0);
        }
    }

    /// CPU time per turn: the smaller of the last two measurements. Zero if unknown. (Slow readings
    /// are limited separately.)
    pub fn per_turn(&self) -> Duration {
        self.per_turn
    }
}

/// What this thread has spent of a core.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only libc reports the CPU time of a thread")]
pub fn spent() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer, and is read after the call alone.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if failed != 0 {
        return Duration::ZERO;
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

/// Elsewhere the interval alone bounds it.
#[cfg(not(target_os = "linux"))]
pub fn spent() -> Duration {
    Duration::ZERO
}
