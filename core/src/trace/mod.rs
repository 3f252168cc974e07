//! The allocator's own history of a run: every allocation and every free, with the
//! stack that asked for it.
//!
//! A recorder hands over a [`History`] of one device; [`Replay`] turns it into
//! blocks with a birth and an end, and tells of any part of the run what it adds
//! up to: a [`Trace`](crate::recording::Trace). [`labels()`] finds the parts that the
//! user's code gave a name.

mod history;
mod labels;
mod replay;
mod tally;

pub use history::{
    Action, Annotation, Event, FrameOrigin, History, Levels, Rounding, StackFrame, StackIdx, Stage,
};
pub use labels::{Labelled, labels};
pub use replay::{Limits, Replay};
