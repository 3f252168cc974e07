//! Pictures: a pure function turns data and view state into a [`Scene`], and
//! [`paint()`] puts a scene on any plotters backend.

mod axis;
#[cfg(feature = "bitmap")]
mod bitmap;
mod growth;
mod label;
mod m4;
mod paint;
mod picture;
mod plot;
mod scene;
mod session;
mod svg;
mod text;
mod theme;
mod timeline;

#[cfg(feature = "bitmap")]
pub use bitmap::png;
pub use growth::growth;
pub use paint::{PaintError, paint};
pub use picture::report;
pub use scene::{Anchor, Face, Hit, Item, Point, Rect, Role, Scene, Target};
pub use session::default_device;
pub use svg::svg;
pub use theme::{Rgb, Theme};
pub use timeline::{TimeScale, time_scale, timeline};

use crate::recording::{DeviceIdx, RunIdx};
use crate::units::Nanos;

/// What is looked at: the view state that a picture depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Logical pixels.
    pub width: f64,
    /// The device that is shown.
    pub device: DeviceIdx,
    /// The run under the pointer or the keyboard.
    pub hovered: Option<RunIdx>,
    /// The runs of the selected finding or cell; empty when nothing is selected.
    pub selected: Vec<RunIdx>,
    /// The part of the time that the timeline shows; `None` for all.
    pub span: Option<(Nanos, Nanos)>,
}

#[cfg(test)]
mod draw_log;
#[cfg(test)]
mod tests;
