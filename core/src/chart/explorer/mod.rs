//! Charts that somebody explores: of a snapshot its levels over the trace, and who holds what; of a profiler's
//! trace its memory and ranges over time.

mod icicle;
mod levels;
mod profiler;
#[cfg(test)]
mod tests;

pub use icicle::{Icicle, IcicleView, icicle, part_words};
pub use levels::{TraceView, event_at, trace_levels};
pub use profiler::{ProfilerChart, ProfilerView, instant_words, lanes, profiler_chart, time_at};
