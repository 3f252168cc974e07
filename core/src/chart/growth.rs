//! The growth chart: what each run kept, from zero, the peak behind it as a ghost.

use super::View;
use super::scene::Scene;
use crate::analyze::Analysis;
use crate::recording::Recording;

/// The growth chart of the view's device.
pub fn growth(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    let _ = (recording, analysis, view);
    unimplemented!("chart")
}
