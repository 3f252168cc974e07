//! The processes that the recorded one began and that live.

use super::RunIdx;
use crate::named;
use crate::units::{Bytes, Nanos};

/// Living descendants of the recorded process that runs of one cell began: an entry of
/// [`DriverLevels::children`](super::DriverLevels::children).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildGroup {
    /// The latest run that began one of them; `None` if they began outside of every recorded run.
    pub began_in: Option<RunIdx>,
    /// What leads to them in the recorded process.
    pub handle: ChildHandle,
    /// How many they are.
    pub n: u32,
    /// What they use of the device together; on the host what they share with no other process.
    pub n_bytes: Bytes,
    /// The number of the one that uses most.
    pub pid: u32,
    /// Its name: `EngineCore-1`, or its program and script.
    pub name: String,
    /// How long the oldest of them has lived.
    pub age: Nanos,
}

named! {
    /// What leads to a child in the process that began it.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ChildHandle {
        /// Nothing is known: Python did not start it, or has no object for it.
        #[default]
        Unknown = "unknown",
        /// An object of `multiprocessing` that code has.
        Held = "held",
        /// Nothing: only `multiprocessing` itself has its object.
        Lost = "lost",
        /// Nothing: its `subprocess.Popen` is gone. It may be a server that is meant to go on.
        Detached = "detached",
    }
}
