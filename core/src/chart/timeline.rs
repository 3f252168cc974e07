//! The timeline: draws only what is known.

use super::View;
use super::scene::Scene;
use crate::analyze::Analysis;
use crate::recording::Recording;

/// The timeline of the view's device.
pub fn timeline(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    let _ = (recording, analysis, view);
    unimplemented!("chart")
}
