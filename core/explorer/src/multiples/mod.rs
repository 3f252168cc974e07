//! Many processes as small charts of one scale: each level over time, in front of what all have in common.
//!
//! ```
//! use gpumem_scene::Point;
//! use gpumem_explorer::multiples::{MultiplesView, multiples};
//! use gpumem_explorer::process_page::{PageRow, ProcessPage};
//! use gpumem_model::units::{Nanos, Units};
//!
//! let row = |name: &str| PageRow { name: name.to_owned(), ..PageRow::default() };
//! let page = ProcessPage {
//!     span: Nanos::millis(8),
//!     rows: vec![row("rank 0"), row("rank 1")],
//!     ..ProcessPage::default()
//! };
//! let view = MultiplesView {
//!     width: 400.0,
//!     rows: &[1, 0],
//!     cursor: None,
//!     pointed: None,
//!     chosen: &[],
//!     units: Units::Binary,
//! };
//! let multiples = multiples(&page, &[], &view);
//! assert_eq!(multiples.at(Point::new(2.0, 40.0), page.span).map(|it| it.0), Some(1));
//! ```

mod cell;
#[cfg(test)]
mod tests;

use crate::process_page::{LevelBand, ProcessPage};
use gpumem_model::units::count;
use gpumem_model::units::{Nanos, Units};
use gpumem_scene::plot::sheet;
use gpumem_scene::{Point, Rect, Role, Scene};

/// A chart is at least so wide, …
const MIN_WIDTH: f64 = 180.0;
/// … or so, if there is no room for two.
const NARROW: f64 = 150.0;
const GAP: f64 = 16.0;
const HEIGHT: f64 = 92.0;
const ROW_GAP: f64 = 10.0;
/// More charts than these are not described one by one.
const MAX_DESCRIBED: usize = 8;

/// What is shown of some processes.
#[derive(Debug, Clone, Copy)]
pub struct MultiplesView<'a> {
    /// In logical pixels.
    pub width: f64,
    /// The rows of the page, in the order in which they are drawn.
    pub rows: &'a [usize],
    /// The instant that is marked in all of them.
    pub cursor: Option<Nanos>,
    /// The row that is pointed at.
    pub pointed: Option<usize>,
    /// Rows that stand out because somebody chose them.
    pub chosen: &'a [usize],
    /// How sizes are shown.
    pub units: Units,
}

/// A picture of processes, and where each is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Multiples {
    /// The picture.
    pub scene: Scene,
    /// Where the charts are, with their rows.
    pub cells: Vec<(Rect, usize)>,
}

impl Multiples {
    /// The row and the instant at a point.
    pub fn at(&self, point: Point, span: Nanos) -> Option<(usize, Nanos)> {
        let mut cells = self.cells.iter();
        let (rect, row) = cells.find(|(rect, _)| rect.contains(point))?;
        let share = ((point.x - rect.x) / rect.width).clamp(0.0, 1.0);
        Some((*row, Nanos::new((span.as_f64() * share) as u64)))
    }
}

/// Small charts of one scale, as many beside each other as fit.
pub fn multiples(page: &ProcessPage, bands: &[LevelBand], view: &MultiplesView<'_>) -> Multiples {
    let n_columns = n_columns(view.width);
    let n_lines = view.rows.len().div_ceil(n_columns);
    let height = n_lines as f64 * (HEIGHT + ROW_GAP);
    let mut scene = sheet(view.width, height.max(1.0), Role::Panel);
    let cell_width = (scene.width - GAP * (n_columns - 1) as f64) / n_columns as f64;
    let cells = view.rows.iter().enumerate().map(|(place, row)| {
        let x = (place % n_columns) as f64 * (cell_width + GAP);
        let y = (place / n_columns) as f64 * (HEIGHT + ROW_GAP);
        (Rect::new(x, y, cell_width, HEIGHT), *row)
    });
    let cells: Vec<(Rect, usize)> = cells.collect();
    let drawing = cell::MultiplesDrawing::new(page, bands, view);
    drawing.draw(&mut scene, &cells);
    scene.description = description(page, view);
    Multiples { scene, cells }
}

/// How many charts stand beside each other.
fn n_columns(width: f64) -> usize {
    let fitting = |least: f64| ((width + GAP) / (least + GAP)) as usize;
    fitting(MIN_WIDTH).max(fitting(NARROW).min(2)).max(1)
}

fn description(page: &ProcessPage, view: &MultiplesView<'_>) -> String {
    let rows = view.rows.iter().map(|row| &page.rows[*row]);
    let named = rows.take(MAX_DESCRIBED).map(|row| {
        let level = row.latest.map(|it| view.units.size(it));
        let caption = Some(row.caption()).filter(|it| !it.is_empty());
        let parts = [Some(row.name.clone()), level, caption];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    });
    let named: Vec<String> = named.collect();
    let n_more = view.rows.len().saturating_sub(MAX_DESCRIBED);
    let more = match n_more {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    let charts = count(view.rows.len(), "chart");
    format!("{charts} of one scale: {}{more}", named.join("; "))
}
