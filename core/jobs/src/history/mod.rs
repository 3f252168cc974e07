//! Sessions that are kept: what came last in each, and how it ended.
//!
//! Whoever keeps them says what is left of their processes; [`Ending::of`] concludes.
//!
//! ```
//! use gpumem_jobs::history::{Ending, LastRun, Remains};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let last = LastRun::of(&recording).expect("it has runs");
//! assert_eq!((last.execution_count, last.is_open), (Some(12), false));
//! let remains = Remains::default(); // no process, no word of farewell
//! assert_eq!(Ending::of(&remains, Some(&last)), Ending::Lost);
//! ```

mod last_run;
mod pruning;

pub use last_run::{Fullest, LastRun};
pub use pruning::{Kept, MAX_SESSIONS, MAX_SIZE, to_prune};

use serde::{Serialize, Serializer};

use gpumem_model::named;
use gpumem_model::units::{Bytes, Nanos};

named! {
    /// How a session ended. [`Ending::of`] concludes it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Ending {
        /// Its process is there.
        Running = "running",
        /// The kernel was shut down or restarted.
        InOrder = "in_order",
        /// Memory ran out in its last run. The kernel may have been restarted afterwards.
        OutOfMemory = "out_of_memory",
        /// The system ran out of memory and killed it.
        KilledBySystem = "killed_by_system",
        /// It ended without a word: nobody knows why.
        Lost = "lost",
    }
}

/// What is left of a session's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remains {
    /// The process is there.
    pub is_running: bool,
    /// It said that it ended.
    pub ended_in_order: bool,
    /// The system says that it killed the process because memory ran out.
    pub was_killed: bool,
}

impl Ending {
    /// How a session ended whose last run was `last`.
    pub fn of(remains: &Remains, last: Option<&LastRun>) -> Self {
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
    /// What people type to open it.
    pub id: String,
    /// The notebook's path, if the frontend told it.
    pub notebook: Option<String>,
    /// The machine, if it is another one.
    pub host: Option<String>,
    /// For how long it is over, or else for how long it has been going on.
    #[serde(rename = "age_nanos", serialize_with = "as_text")]
    pub age: Option<Nanos>,
    /// How it ended.
    pub ending: Ending,
    /// Its last run; none if it cannot be read.
    #[serde(rename = "last_run")]
    pub last: Option<LastRun>,
    /// The number of its runs.
    pub n_runs: usize,
    /// Its worst finding in words, with its sign.
    pub worst: Option<String>,
    /// The baseline that it is.
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
    /// The next kernel of its notebook should hear of it: it died in a run, or of memory.
    pub fn died(&self) -> bool {
        match self.ending {
            Ending::OutOfMemory | Ending::KilledBySystem => true,
            Ending::Lost => self.last.as_ref().is_some_and(|last| last.is_open),
            Ending::Running | Ending::InOrder => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(remains: [bool; 3], ran_out: bool, expected: Ending) {
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
        assert_eq!(Ending::of(&remains, Some(&last)), expected);
        assert_eq!(Ending::from_name(expected.name()), Some(expected));
    }

    #[test]
    fn an_ending_is_concluded_from_what_is_left() {
        check([true, false, true], true, Ending::Running);
        check([false, false, true], false, Ending::KilledBySystem);
        // Another process of the container was killed before this one ended.
        check([false, true, true], false, Ending::InOrder);
        check([false, true, false], true, Ending::OutOfMemory);
        check([false, false, false], true, Ending::OutOfMemory);
        check([false, false, false], false, Ending::Lost);
    }
}
