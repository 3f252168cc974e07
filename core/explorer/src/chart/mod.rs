//! Charts that somebody explores: of a snapshot its levels over the trace, and who holds what; of a profiler's
//! trace its memory and ranges over time.
//!
//! ```
//! use gpumem_scene::Density;
//! use gpumem_explorer::chart::{TraceView, trace_levels};
//! use gpumem_readers::torch_snapshot::SnapshotLevels;
//! use gpumem_model::units::{Bytes, Units};
//!
//! let allocated = vec![Bytes::ZERO, Bytes::mib(8), Bytes::mib(4)];
//! let levels = SnapshotLevels { reserved: vec![Bytes::mib(20); 3], allocated };
//! let view = TraceView {
//!     width: 600.0,
//!     density: Density(1.0),
//!     span: (0.0, 2.0),
//!     moment: 1,
//!     failures: &[],
//!     allocations: &[],
//!     pointed: None,
//!     micros: &|_| None,
//!     units: Units::Binary,
//! };
//! let scene = trace_levels(&levels, &view).scene;
//! assert_eq!(scene.description, "In view: 8 MiB allocated and 20 MiB reserved at most");
//! ```

mod bands;
mod icicle;
mod levels;
mod profiler;
#[cfg(test)]
mod tests;

use gpumem_scene::label::Label;
use gpumem_scene::plot::Plot;
use gpumem_scene::{Anchor, Point, Scene};

pub use bands::{BandOf, TraceBand};
pub use icicle::{Icicle, IcicleView, icicle, part_words};
pub use levels::{TraceChart, TraceView, axis_value_at, trace_levels};
pub use profiler::{ProfilerChart, ProfilerView, instant_words, lanes, profiler_chart};

/// Labels below a plot, from edge to edge; `words` has what to write at a share of the width.
fn write_below(
    scene: &mut Scene,
    plot: Plot,
    baseline: f64,
    n_labels: usize,
    words: impl Fn(f64) -> String,
) {
    for idx in 0..=n_labels {
        let share = idx as f64 / n_labels as f64;
        let anchor = match idx {
            0 => Anchor::Start,
            _ if idx == n_labels => Anchor::End,
            _ => Anchor::Middle,
        };
        let at = Point::new(plot.left + share * plot.width(), baseline);
        scene.text(Label::new(words(share), at).anchor(anchor));
    }
}
