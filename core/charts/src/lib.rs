//! Pictures: a pure function turns data and view state into a [`Scene`](gpumem_scene::Scene), and [`paint()`](gpumem_scene::paint()) puts a scene on
//! any plotters backend.
//!
//! All sizes are logical pixels. Nothing here measures text or knows a screen, so a scene is the same
//! natively and in the browser, and tests compare scenes instead of pixels.
//!
//! ```
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_charts::{Layout, cells, default_device};
//! use gpumem_scene::{Theme, svg};
//! use gpumem_model::units::Units;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let analysis = analyze(&recording, &Rules::default());
//! let device = default_device(&recording, &analysis).expect("a device");
//! let scene = cells(&recording, &analysis, device).over_time(Layout::new(600.0), Units::Binary);
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

pub use cells::{Band, CellRow, Cells, Layout, Rest, Slots, cells, ended};
pub use course::{course, outlook};
pub use device_view::{default_device, draw_alike};
pub use long_run::{InsideLook, LongRun, LookedHolder};
pub use minimap::minimap;
pub use now::{DeviceTile, Segment, Usage, device_tiles, in_use, now, segments};
pub use oom::oom;
pub use picture::{Extent, picture, report};
pub use reading::Reading;
pub use segments::{Bar, DrawnBlock, Look, SegmentMap};
pub use timeline::{LevelsOfDetail, TimeScale, time_scale, timeline, timeline_from};
pub use treemap::{Field, Map, holder_map, treemap};

use gpumem_model::recording::{DeviceIdx, RunIdx};
use gpumem_model::units::{Nanos, Units};
use gpumem_scene::Density;

/// What a picture shows: the view state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct View {
    /// Width of the picture in logical pixels.
    pub width: f64,
    /// How fine the picture is.
    pub density: Density,
    /// The device that is shown.
    pub device: DeviceIdx,
    /// The runs of the selected finding or cell, in order; empty if nothing is selected.
    pub selected: Vec<RunIdx>,
    /// The visible part of the time; `None` for all.
    pub span: Option<(Nanos, Nanos)>,
    /// What the rows of cells show.
    pub measure: Measure,
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

impl View {
    fn is_selected(&self, run: RunIdx) -> bool {
        self.selected.binary_search(&run).is_ok()
    }
}

/// What the map of holders shows: [`View::moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    /// What was held before the run.
    Before,
    /// What was held when it had ended.
    #[default]
    After,
    /// What is held more, or less, than before.
    Change,
}

/// What the rows of cells show: [`View::measure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// What the cell kept so far.
    #[default]
    Total,
    /// What each run kept.
    PerRun,
}

/// How time runs along the timeline: [`View::pace`].
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
/// What the timeline draws, if it is known: [`View::layers`]. The default is everything.
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
pub(crate) fn view(width: f64) -> View {
    View {
        width,
        device: DeviceIdx(0),
        ..View::default()
    }
}
