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
