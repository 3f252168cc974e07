//! What lives on of a variable that is gone.

use super::{Keeper, LibraryObject, RootKind};
use crate::named;
use crate::units::Bytes;

/// A variable that was deleted, or is `None` now, while storages that it held live on. An entry of
/// [`DeviceHolders::outlived`](super::DeviceHolders::outlived).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlived {
    /// The variable.
    pub name: String,
    /// It was not deleted, but has a new object: this is about the old one.
    pub is_rebound: bool,
    /// What it held.
    pub had: Bytes,
    /// How much of that lives on.
    pub n_bytes: Bytes,
    /// What kind of name keeps the most of it.
    pub kind: RootKind,
    /// That name: `accelerator`.
    pub holder: String,
    /// The name keeps all of it, and no other name does.
    pub is_alone: bool,
    /// The Python expression of the object: `accelerator._models[0]`.
    pub path: String,
    /// What it is, in words: `Model of 6 tensors`.
    pub what: String,
    /// What has it, where that is no plain data.
    pub keeper: Option<Keeper>,
    /// How it can be let go of, if that is known.
    pub way_out: Option<WayOut>,
    /// The code that does so: `del trainer.models[0]`.
    pub code: String,
    /// The objects of libraries on the way to the object, the nearest to it first.
    pub library_objects: Vec<LibraryObject>,
}

named! {
    /// How what lives on can be let go of: [`Outlived::way_out`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WayOut {
        /// An exception whose frames have it is let go of.
        Exception = "exception",
        /// A hook is removed.
        Hook = "hook",
        /// The cache that has it is cleared.
        Cache = "cache",
        /// It is taken out of what has it.
        Part = "part",
        /// The name that has it is deleted.
        Name = "name",
        /// The garbage collector, which is off, is switched on.
        Collector = "collector",
        /// The thread that has it in a variable of its own ends, or drops it.
        Thread = "thread",
    }
}

impl Outlived {
    /// It lives on by accident: in the frames of an exception that a name keeps, through its own graph, or
    /// because the garbage collector is off.
    pub fn is_accident(&self) -> bool {
        let is_error = self.keeper == Some(Keeper::Traceback) && self.is_alone;
        is_error || self.kind.is_graph_cycle() || self.way_out == Some(WayOut::Collector)
    }
}
