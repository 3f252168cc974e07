//! The model of GPU memory in a notebook session, and every verdict on it.
//!
//! Data flows one way: frames build a [`recording::Recording`], [`analyze::analyze`] turns it into an
//! [`analyze::Analysis`], [`chart`] turns both into a scene and paints it, [`report`] and [`json`] put
//! it into words.
//!
//! The core has no clock, files, environment, GPU, Python or JavaScript: it only sees what its callers
//! pass in, so it runs the same natively and in the browser.
//!
//! ```
//! use gpumem_core::analyze::{Rules, analyze};
//! use gpumem_core::{format, report};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let bytes = format::encode(&leaking()); // a file, or what the page receives
//! let recording = format::decode(&bytes)?;
//! let analysis = analyze(&recording, &Rules::default());
//! let text = report::text(&recording, &analysis, 80);
//! assert!(text.contains("losses.append(step(batch))"));
//! # Ok::<(), format::ReadError>(())
//! ```
#![forbid(unsafe_code)]

pub mod allocator;
pub mod analyze;
pub mod chart;
pub mod chrome_trace;
pub mod classic;
pub mod company;
pub mod downsample;
pub mod explorer;
mod extremes;
mod figures;
pub mod footprint;
pub mod format;
pub mod heap;
pub mod history;
pub mod holders;
pub mod inspection;
pub mod json;
pub mod json_form;
pub mod named;
pub mod printable;
pub mod processes;
pub mod ranks;
pub mod read;
pub mod recording;
pub mod report;
pub mod rules;
pub mod scene;
pub mod segments;
mod severity;
pub mod source_text;
pub mod table;
#[cfg(test)]
pub(crate) mod testing;
pub mod trace;
pub mod units;
pub mod wording;
