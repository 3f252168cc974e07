//! What happens to memory in a run, and what is kept of it.
//!
//! It knows neither the Python API nor what a shell shows.

pub(crate) mod child;
pub(crate) mod ending;
pub(crate) mod loops;
pub(crate) mod named_snapshot;
pub(crate) mod oom;
pub(crate) mod recorder;
pub(crate) mod run_end;
pub(crate) mod session;
pub(crate) mod store;
pub(crate) mod trace;
