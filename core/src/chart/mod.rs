//! Pictures: a pure function turns data and view state into a [`Scene`], and
//! [`paint()`] puts a scene on any plotters backend.

mod axis;
#[cfg(feature = "bitmap")]
mod bitmap;
mod composition;
mod device_view;
mod growth;
mod label;
mod m4;
mod minimap;
mod paint;
mod picture;
mod plot;
mod scene;
mod segments;
mod svg;
mod text;
mod theme;
mod timeline;
mod treemap;

#[cfg(feature = "bitmap")]
pub use bitmap::png;
pub use composition::composition;
pub use device_view::{default_device, draw_alike};
pub use growth::growth;
pub use minimap::minimap;
pub use paint::{PaintError, paint};
pub use picture::{as_seen, report};
pub use scene::{Anchor, Face, Hit, Item, Point, Rect, Role, Scene, Target};
pub use segments::{Bar, DrawnBlock, Look, SegmentMap};
pub use svg::svg;
pub use theme::{Rgb, Theme};
pub use timeline::{LevelsOfDetail, TimeScale, time_scale, timeline, timeline_from};
pub use treemap::{Field, Map, holder_map, treemap};

use crate::recording::{DeviceIdx, RunIdx};
use crate::units::{Nanos, Units};

/// What is looked at: the view state that a picture depends on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct View {
    /// Logical pixels.
    pub width: f64,
    /// How fine the picture is.
    pub density: Density,
    /// The device that is shown.
    pub device: DeviceIdx,
    /// The runs of the selected finding or cell, in order; empty when nothing is selected.
    pub selected: Vec<RunIdx>,
    /// The part of the time that is looked at; `None` for all.
    pub span: Option<(Nanos, Nanos)>,
    /// What the bars of the growth chart are.
    pub measure: Measure,
    /// How the timeline deals with pauses.
    pub pace: Pace,
    /// What the timeline draws.
    pub layers: Layers,
    /// Of what the map of holders tells.
    pub moment: Moment,
    /// How sizes are shown.
    pub units: Units,
    /// The names of the fields that the map of holders is inside of, outermost first.
    pub inside: Vec<String>,
}

impl View {
    fn is_selected(&self, run: RunIdx) -> bool {
        self.selected.binary_search(&run).is_ok()
    }
}

/// Device pixels to a logical pixel; as on a dense screen where nobody says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Density(pub f64);

impl Density {
    /// The width of a device pixel, in logical pixels: points nearer than that draw the same picture.
    fn pixel(self) -> f64 {
        1.0 / self.0.max(1.0)
    }
}

impl Default for Density {
    fn default() -> Self {
        Self(2.0)
    }
}

/// Of what the map of holders tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    /// What was held before the run.
    Before,
    /// What was held when it had ended.
    #[default]
    After,
    /// What is held more, or less.
    Change,
}

/// What the bars of the growth chart are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// What each run kept, from zero.
    #[default]
    Kept,
    /// The level after each run, and what it added to the level before.
    Level,
}

/// How time runs along the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// Pauses are folded, and short runs get room to be seen.
    #[default]
    Runs,
    /// As on a clock, to scale.
    Clock,
}

/// What the timeline draws, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each layer is drawn or not, whatever the others are"
)]
pub struct Layers {
    /// The use of every process together.
    pub device: bool,
    /// This process's use.
    pub process: bool,
    /// The layer that growth is judged on, at the ends of runs and at marks.
    pub held: bool,
    /// The highest levels inside runs.
    pub peaks: bool,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            device: true,
            process: true,
            held: true,
            peaks: true,
        }
    }
}

#[cfg(test)]
mod draw_log;
#[cfg(test)]
mod tests;
