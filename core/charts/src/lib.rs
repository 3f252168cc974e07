//! Pictures: a pure function turns data and view state into a [`Scene`](gpumem_scene::Scene), and [`paint()`](gpumem_scene::paint()) puts a scene on
//! any plotters backend.
//!
//! All sizes are logical pixels. Nothing here measures text or knows a screen, so a scene is the same
//! natively and in the browser, and tests compare scenes instead of pixels.
//!
//! ```
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_charts::{CellLayout, cells, default_device};
//! use gpumem_scene::{Theme, svg};
//! use gpumem_model::units::Units;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let analysis = analyze(&recording, &Rules::default());
//! let device = default_device(&recording, &analysis).expect("a device");
//! let scene = cells(&recording, &analysis, device).over_time(CellLayout::new(600.0), Units::Binary);
//! assert!(scene.description.starts_with("What cuda:0 holds"));
//! assert!(svg(&scene, Theme::Dark).starts_with("<svg"));
//! ```
#![forbid(unsafe_code)]

mod alarm;
mod cells;
mod columns;
mod course;
mod device_view;
mod long_run;
mod m4;
mod minimap;
mod now;
mod oom;
mod picture;
mod reading;
mod segments;
mod timeline;
mod treemap;

pub use cells::{CellChart, CellLayout, CellRow, HiddenRows, HoldingBand, Slots, cells, ended};
pub use course::{course, outlook};
pub use device_view::{default_device, draw_alike};
pub use long_run::{InsideLook, LongRun, LookedHolder};
pub use minimap::minimap;
pub use now::{BarSegment, DeviceTile, Usage, device_tiles, in_use, now, segments};
pub use oom::oom;
pub use picture::{PictureExtent, picture, report};
pub use reading::RunDescription;
pub use segments::{Bar, BlockStyle, DrawnBlock, SegmentMap};
pub use timeline::{LevelsOfDetail, TimeScale, time_scale, timeline, timeline_from};
pub use treemap::{Map, Tile, holder_map, treemap};

use gpumem_model::recording::{DeviceIdx, RunIdx};
use gpumem_model::units::{Nanos, Units};
use gpumem_scene::Density;

/// The view state of a picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartView {
    /// Width of the picture in logical pixels.
    pub width: f64,
    /// The pixel density.
    pub density: Density,
    /// The device that is shown.
    pub device: DeviceIdx,
    /// The runs of the selected finding or cell, in order; empty if nothing is selected.
    pub selected: Vec<RunIdx>,
    /// The visible part of the time; `None` for all.
    pub span: Option<(Nanos, Nanos)>,
    /// What the rows of cells show.
    pub measure: CellMeasure,
    /// How the timeline shows pauses.
    pub pace: Pace,
    /// What the timeline draws.
    pub layers: Layers,
    /// What the map of holders shows.
    pub moment: Moment,
    /// How sizes are shown.
    pub units: Units,
    /// The fields that the map of holders is zoomed into, by name, outermost first.
    pub inside: Vec<String>,
}

impl ChartView {
    /// The default view of a device.
    pub(crate) fn for_device(device: DeviceIdx) -> Self {
        Self {
            device,
            ..Self::default()
        }
    }

    fn is_selected(&self, run: RunIdx) -> bool {
        self.selected.binary_search(&run).is_ok()
    }
}

/// What the map of holders shows: [`ChartView::moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    /// Memory before the run.
    Before,
    /// Memory after the run.
    #[default]
    After,
    /// The change.
    Change,
}

/// What the rows of cells show: [`ChartView::measure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellMeasure {
    /// What the cell kept so far.
    #[default]
    Total,
    /// What each run kept.
    PerRun,
}

/// How time runs along the timeline: [`ChartView::pace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// Pauses are folded, and short runs are wide enough to be seen.
    #[default]
    Runs,
    /// To scale.
    Clock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each layer is drawn or not, whatever the others are"
)]
/// What the timeline draws, if it is known: [`ChartView::layers`]. The default is everything.
pub struct Layers {
    /// The use of all processes together.
    pub device: bool,
    /// This process's use.
    pub process: bool,
    /// The metric that growth is judged on, at the ends of runs and at marks.
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
mod tests;

#[cfg(test)]
/// The first device, nothing pointed at.
pub(crate) fn view(width: f64) -> ChartView {
    ChartView {
        width,
        device: DeviceIdx(0),
        ..ChartView::default()
    }
}
