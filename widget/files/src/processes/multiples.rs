//! The small charts: on several canvases, so that only those in view are painted again.

use gpumem_explorer::multiples::{Multiples, MultiplesView, multiples};
use gpumem_model::units::Nanos;
use gpumem_page_kit::canvas::Faces;
use gpumem_page_kit::dom::{Maker, add, describe, flag};
use gpumem_page_kit::paint::paint_scene;
use gpumem_scene::Point;
use web_sys::{Element, HtmlCanvasElement};

use super::ProcessesModel;
use super::state::ProcessesState;
use crate::UNITS;

/// The charts of a canvas: a full one is never too high for a browser.
const N_ON_CANVAS: usize = 24;
/// Prefix of the names of canvases, before their number.
const NAME: &str = "processes-";

/// Some of the charts.
struct ChartTile {
    canvas: HtmlCanvasElement,
    drawn: Multiples,
    /// It shows an instant.
    has_cursor: bool,
}

/// The canvases.
pub(crate) struct Grid {
    figure: Element,
    parts: Vec<ChartTile>,
}

impl Grid {
    pub(crate) fn build(make: &Maker) -> Self {
        Self {
            figure: make.empty("figure", &[]),
            parts: Vec::new(),
        }
    }

    pub(crate) fn element(&self) -> &Element {
        &self.figure
    }

    /// Creates or removes canvases to match the charts.
    pub(crate) fn fit(&mut self, make: &Maker, known: &ProcessesModel, state: &ProcessesState) {
        let n_parts = state.n_charts(&known.page).div_ceil(N_ON_CANVAS);
        while self.parts.len() > n_parts {
            if let Some(part) = self.parts.pop() {
                part.canvas.remove();
            }
        }
        while self.parts.len() < n_parts {
            let number = self.parts.len();
            let name = format!("{NAME}{number}");
            // Keys go through the charts of all canvases: one of them takes the keyboard.
            let tab = if number == 0 { "0" } else { "-1" };
            let attributes = [("role", "img"), ("tabindex", tab), ("data-chart", &*name)];
            let canvas: HtmlCanvasElement = make.typed("canvas", &attributes);
            add(&self.figure, &canvas);
            self.parts.push(ChartTile {
                canvas,
                drawn: Multiples::default(),
                has_cursor: false,
            });
        }
        flag(&self.figure, "hidden", n_parts == 0);
    }

    /// All of them.
    pub(crate) fn paint(&mut self, known: &ProcessesModel, state: &ProcessesState, faces: &Faces) {
        for number in 0..self.parts.len() {
            self.paint_part(number, known, state, faces);
        }
    }

    /// Those in view, and those that were and show an instant still.
    pub(crate) fn follow(&mut self, known: &ProcessesModel, state: &ProcessesState, faces: &Faces) {
        let height = web_sys::window().and_then(|window| window.inner_height().ok());
        let height = height.and_then(|it| it.as_f64()).unwrap_or(f64::MAX);
        for number in 0..self.parts.len() {
            let part = &self.parts[number];
            let place = part.canvas.get_bounding_client_rect();
            let is_seen = place.bottom() >= 0.0 && place.top() <= height;
            if is_seen || part.has_cursor {
                self.paint_part(number, known, state, faces);
            }
        }
    }

    fn paint_part(
        &mut self,
        number: usize,
        known: &ProcessesModel,
        state: &ProcessesState,
        faces: &Faces,
    ) {
        let part = &mut self.parts[number];
        let first = number * N_ON_CANVAS;
        let end = (first + N_ON_CANVAS).min(state.n_charts(&known.page));
        let rows: Vec<usize> = (first..end).collect();
        let view = MultiplesView {
            width: state.width,
            rows: &rows,
            cursor: state.place().map(|place| place.1),
            pointed: state.pointed_row(),
            chosen: state.chosen(&known.page),
            units: UNITS,
        };
        part.has_cursor = view.cursor.is_some() || view.pointed.is_some();
        part.drawn = multiples(&known.page, &known.bands, &view);
        let scene = &part.drawn.scene;
        describe(&part.canvas, "aria-label", &scene.description);
        paint_scene(&part.canvas, scene, state.theme, state.scale, faces);
    }

    /// The row and the instant at a point of a canvas.
    pub(crate) fn place(&self, chart: &str, at: Point, span: Nanos) -> Option<(usize, Nanos)> {
        self.part(chart)?.drawn.at(at, span)
    }

    pub(crate) fn has(&self, chart: &str) -> bool {
        self.part(chart).is_some()
    }

    fn part(&self, chart: &str) -> Option<&ChartTile> {
        let number: usize = chart.strip_prefix(NAME)?.parse().ok()?;
        self.parts.get(number)
    }
}
