//! The model of GPU memory in a notebook session, and every verdict on it.
//!
//! The data goes one way: frames build a [`recording::Recording`],
//! [`analyze::analyze`] turns it into an [`analyze::Analysis`], [`chart`] turns
//! both into a scene and paints it, [`report`] and [`json`] put it into words.
//!
//! This crate is told; it never looks. It has no clock, no file, no environment,
//! no GPU, no Python and no JavaScript, and runs the same natively and in the
//! browser.
#![forbid(unsafe_code)]

pub mod allocator;
pub mod analyze;
pub mod chart;
pub mod classic;
pub mod company;
pub mod downsample;
mod extremes;
pub mod footprint;
pub mod format;
pub mod holders;
pub mod inspection;
pub mod json;
pub mod printable;
pub mod read;
pub mod recording;
pub mod report;
pub mod rules;
pub mod segments;
mod severity;
pub mod sort;
pub mod source_text;
#[cfg(test)]
pub(crate) mod testing;
pub mod trace;
pub mod units;
mod vec_map;
pub mod wording;
