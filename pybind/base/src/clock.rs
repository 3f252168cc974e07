//! The session's clock, which the recorder and the sampler share.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpumem_model::units::Nanos;

/// Monotonic nanoseconds since the recording's start, with one anchor on the wall.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    wall_anchor: Nanos,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            start: Instant::now(),
            wall_anchor: nanos(since_epoch.unwrap_or_default().as_nanos()),
        }
    }

    /// The clock of another process of this machine, parsed from [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Self> {
        let (monotonic, wall) = text.split_once(' ')?;
        let (monotonic, wall) = (monotonic.parse().ok()?, wall.parse().ok()?);
        let since = match monotonic_nanos() {
            Some(now) => now.checked_sub(monotonic)?,
            None => Self::start().wall_anchor.get().checked_sub(wall)?,
        };
        Some(Self {
            start: Instant::now().checked_sub(Duration::from_nanos(since))?,
            wall_anchor: Nanos::new(wall),
        })
    }

    /// Its start in nanoseconds: by the monotonic clock that all processes share (0 if there is
    /// none), and by the wall clock.
    pub fn to_text(self) -> String {
        let now = monotonic_nanos().unwrap_or_default();
        let monotonic = now.saturating_sub(self.now().get());
        format!("{monotonic} {}", self.wall_anchor.get())
    }

    /// Nanoseconds since its start.
    pub fn now(self) -> Nanos {
        nanos(self.start.elapsed().as_nanos())
    }

    /// When that was, in nanoseconds since its start; 0 if it was before.
    pub fn at(self, instant: Instant) -> Nanos {
        let since = instant.saturating_duration_since(self.start);
        nanos(since.as_nanos())
    }

    /// The wall clock at the start, nanoseconds since 1970 (UTC).
    pub fn wall_anchor(self) -> Nanos {
        self.wall_anchor
    }
}

fn nanos(n: u128) -> Nanos {
    Nanos::new(u64::try_from(n).unwrap_or(u64::MAX))
}

/// What [`Instant`] counts.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "an `Instant` cannot be handed to another process"
)]
fn monotonic_nanos() -> Option<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes nothing but this structure.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).ok()?;
    let nanos = u64::try_from(now.tv_nsec).ok()?;
    (answer == 0).then_some(seconds * 1_000_000_000 + nanos)
}

#[cfg(not(target_os = "linux"))]
fn monotonic_nanos() -> Option<u64> {
    None
}
