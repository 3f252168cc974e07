//! The allocator's own history of a run: every allocation and free, with the stack that requested it.
//!
//! A recorder passes in a [`History`] of one device. [`Replay`] turns it into blocks with a birth and an
//! end, and sums up any part of the run as a [`Trace`](crate::recording::Trace). [`labels()`] finds the
//! parts that the user's code named.
//!
//! ```
//! use gpumem_model::recording::{DeviceIdx, RunIdx};
//! use gpumem_model::trace::{Action, AllocatorEvent, History, HistoryLevels, TraceLimits, Replay, Rounding};
//! use gpumem_model::units::{Bytes, Nanos};
//!
//! let mut history = History::new(HistoryLevels::default(), Rounding::Exact);
//! let event = |ms, action, address| AllocatorEvent {
//!     at: Nanos::millis(ms),
//!     action,
//!     address,
//!     size: Bytes::mib(3),
//!     stack: None,
//! };
//! history.events = vec![
//!     event(1, Action::Alloc, 0),
//!     event(2, Action::Alloc, 4096),
//!     event(3, Action::FreeRequested, 0),
//! ];
//! let whole = (Nanos::ZERO, Nanos::millis(4));
//! let place = (RunIdx(0), DeviceIdx(0));
//! let trace = Replay::new(history).trace(place, whole.0, whole.1, TraceLimits::default());
//! assert_eq!((trace.peak.at, trace.peak.high), (Nanos::millis(2), Bytes::mib(6)));
//! assert_eq!(trace.total.retained, Bytes::mib(3));
//! ```

mod extents;
mod history;
mod labels;
mod replay;
mod tally;

pub use history::{
    Action, AllocatorEvent, AllocatorLayout, Annotation, History, HistoryLevels, Rounding,
    StackFrame, StackIdx, Stage,
};
pub use labels::{Labelled, labels};
pub use replay::{Replay, TraceLimits};
