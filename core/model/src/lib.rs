//! What a recording is made of: devices, cells, runs, loops, levels, who holds memory, traces, and their units.
//!
//! Frames build a [`recording::Recording`]; everything else in `core` reads it. No verdict, no picture, no file, no
//! clock: a model sees what it is given, in the kernel and in the page alike.
//!
//! ```
//! use gpumem_model::recording::Recording;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording: Recording = leaking();
//! assert_eq!((recording.cells().len(), recording.runs().len()), (1, 12));
//! ```
#![forbid(unsafe_code)]

pub mod downsample;
pub mod extremes;
pub mod holders;
pub mod json_form;
pub mod named;
pub mod printable;
pub mod recording;
pub mod rules;
pub mod segments;
pub mod severity;
pub mod source_text;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trace;
pub mod units;
