//! Many processes, and many sessions: ranks of a job, a cluster's workers, child processes, who else uses
//! a device, and the sessions that are kept.
//!
//! Their recordings are compared here: who failed, grew or differs first. Not how it is said, and not
//! where files lie.
//!
//! ```
//! use gpumem_jobs::history::LastRun;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let last = LastRun::of(&leaking()).expect("it has runs");
//! assert_eq!(last.execution_count, Some(12));
//! ```
#![forbid(unsafe_code)]

pub mod company;
pub mod history;
pub mod processes;
pub mod ranks;
