//! Kept sessions: the last run of each, and how it ended.
//!
//! The store reports the process's state; [`SessionEnding::from_remains`] derives how its session ended.
//!
//! ```
//! use gpumem_jobs::history::{SessionEnding, LastRun, Remains};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let last = LastRun::new(&recording).expect("it has runs");
//! assert_eq!((last.execution_count, last.is_open), (Some(12), false));
//! let remains = Remains::default(); // no process, no word of farewell
//! assert_eq!(SessionEnding::from_remains(&remains, Some(&last)), SessionEnding::Lost);
//! ```

mod last_run;
mod pruning;

pub use last_run::{Fullest, LastRun};
pub use pruning::{MAX_SESSIONS, MAX_SIZE, PrunableFile, to_prune};

use serde::{Serialize, Serializer};

use gpumem_model::named;
use gpumem_model::units::{Bytes, Nanos};

named! {
    /// How a session ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SessionEnding {
        /// Its process is alive.
        Running = "running",
        /// The kernel was shut down or restarted.
        InOrder = "in_order",
        /// Memory ran out in its last run. The kernel may have been restarted afterwards.
        OutOfMemory = "out_of_memory",
        /// The system ran out of memory and killed it.
        KilledBySystem = "killed_by_system",
        /// It ended for an unknown reason.
        Lost = "lost",
    }
}

/// The state of a session's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remains {
    /// The process is alive.
    pub is_running: bool,
    /// Whether it recorded its end.
    pub ended_in_order: bool,
    /// Whether the system killed the process because memory ran out.
    pub was_killed: bool,
}

impl SessionEnding {
    /// How a session ended whose last run was `last`.
    pub fn from_remains(remains: &Remains, last: Option<&LastRun>) -> Self {
        if remains.is_running {
            Self::Running
        } else if remains.was_killed && !remains.ended_in_order {
            Self::KilledBySystem
        } else if last.is_some_and(|last| last.ran_out) {
            Self::OutOfMemory
        } else if remains.ended_in_order {
            Self::InOrder
        } else {
            Self::Lost
        }
    }
}

/// A session as a list shows it: `report::sessions`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSession {
    /// The id that opens it.
    pub id: String,
    /// The notebook's path, if the frontend gave it.
    pub notebook: Option<String>,
    /// The machine, if it is another one.
    pub host: Option<String>,
    /// Time since its end or, if it is running, since its start.
    #[serde(rename = "age_nanos", serialize_with = "as_text")]
    pub age: Option<Nanos>,
    /// How it ended.
    pub ending: SessionEnding,
    /// Its last run; none if it cannot be read.
    #[serde(rename = "last_run")]
    pub last: Option<LastRun>,
    /// The number of its runs.
    pub n_runs: usize,
    /// Its worst finding in words, with its sign.
    pub worst: Option<String>,
    /// Its name as a baseline.
    #[serde(skip)]
    pub baseline: Option<String>,
    /// The size of its file.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// Why it cannot be read, or what is missing.
    pub damage: Option<String>,
}

/// As text: it may not fit a JavaScript number.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_text<S: Serializer>(age: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    age.map(|age| age.get().to_string()).serialize(serializer)
}

impl StoredSession {
    /// Whether the notebook's next kernel should report it: it died in a run, or out of memory.
    pub fn died(&self) -> bool {
        match self.ending {
            SessionEnding::OutOfMemory | SessionEnding::KilledBySystem => true,
            SessionEnding::Lost => self.last.as_ref().is_some_and(|last| last.is_open),
            SessionEnding::Running | SessionEnding::InOrder => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(remains: [bool; 3], ran_out: bool, expected: SessionEnding) {
        let [is_running, ended_in_order, was_killed] = remains;
        let remains = Remains {
            is_running,
            ended_in_order,
            was_killed,
        };
        let last = LastRun {
            ran_out,
            ..LastRun::default()
        };
        assert_eq!(SessionEnding::from_remains(&remains, Some(&last)), expected);
        assert_eq!(SessionEnding::from_name(expected.name()), Some(expected));
    }

    #[test]
    fn an_ending_is_concluded_from_what_is_left() {
        check([true, false, true], true, SessionEnding::Running);
        check([false, false, true], false, SessionEnding::KilledBySystem);
        // Another process of the container was killed before this one ended.
        check([false, true, true], false, SessionEnding::InOrder);
        check([false, true, false], true, SessionEnding::OutOfMemory);
        check([false, false, false], true, SessionEnding::OutOfMemory);
        check([false, false, false], false, SessionEnding::Lost);
    }
}
