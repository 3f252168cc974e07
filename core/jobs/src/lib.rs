//! Many processes, and many sessions: ranks of a job, a cluster's workers, child processes, who else uses
//! a device, and the sessions that are kept.
//!
//! This crate compares their recordings: which process failed, grew or differs first. It knows neither texts nor
//! files.
//!
//! ```
//! use gpumem_jobs::history::LastRun;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let last = LastRun::new(&leaking()).expect("it has runs");
//! assert_eq!(last.execution_count, Some(12));
//! ```
#![forbid(unsafe_code)]

pub mod gpu_processes;
pub mod history;
pub mod processes;
pub mod ranks;
pub mod tasks;

use gpumem_model::recording::Recording;

/// The fact of that name about a recording's process: `pid`, `rank`, `host`.
fn fact<'r>(recording: &'r Recording, name: &str) -> Option<&'r str> {
    let mut facts = recording.header().process.iter();
    let fact = facts.find(|(known, _)| known == name);
    fact.map(|(_, value)| value.as_str())
}
