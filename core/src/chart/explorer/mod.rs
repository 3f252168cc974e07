//! Charts of a snapshot that somebody explores: its levels over the trace, and who holds what.

mod icicle;
mod levels;
#[cfg(test)]
mod tests;

pub use icicle::{Icicle, IcicleView, icicle, part_words};
pub use levels::{TraceView, event_at, trace_levels};
