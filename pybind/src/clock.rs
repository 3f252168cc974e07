//! The session's one clock: what the recorder and the sampler tell time by.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gpumem_core::units::Nanos;

/// Monotonic nanoseconds since the recording's start, with one anchor on the wall.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    wall_anchor: Nanos,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            wall_anchor: nanos(since_epoch.unwrap_or_default().as_nanos()),
        }
    }

    /// Since the start.
    pub(crate) fn now(self) -> Nanos {
        nanos(self.start.elapsed().as_nanos())
    }

    /// An instant, since the start.
    pub(crate) fn at(self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.start);
        nanos(since.as_nanos())
    }

    /// The wall clock at the start, nanoseconds since 1970 (UTC).
    pub(crate) fn wall_anchor(self) -> Nanos {
        self.wall_anchor
    }
}

fn nanos(n: u128) -> Nanos {
    Nanos::new(u64::try_from(n).unwrap_or(u64::MAX))
}
