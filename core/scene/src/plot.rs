//! The part of a chart that is measured: between an axis of bytes and the right edge.

use crate::axis::ByteAxis;
use crate::label::{Label, SMALL};
use crate::{Anchor, Face, Point, Role, Scene, text};

/// What a chart of nothing says.
pub const NO_RUNS: &str = "no run recorded yet: put %%gpumem on a cell and run it";

/// Space for the labels of the axis.
const GUTTER: f64 = 66.0;
const RIGHT_MARGIN: f64 = 12.0;
/// Below this a chart is cut rather than squeezed further.
const MIN_WIDTH: f64 = 160.0;

/// Edges in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plot {
    /// Where the axis ends.
    pub left: f64,
    /// Where the margin begins.
    pub right: f64,
    /// The highest level.
    pub top: f64,
    /// Level 0, or the least that is shown.
    pub bottom: f64,
}

impl Plot {
    /// In a picture `width` logical pixels wide.
    pub fn new(width: f64, top: f64, bottom: f64) -> Self {
        Self {
            left: GUTTER,
            right: width - RIGHT_MARGIN,
            top,
            bottom,
        }
    }

    /// From the axis to the margin.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// Grid lines with what stands at them.
    pub fn draw_axis(&self, scene: &mut Scene, axis: &ByteAxis, max_ticks: usize) {
        for tick in axis.ticks(max_ticks) {
            let y = crisp(axis.y(tick));
            let role = if tick == 0.0 { Role::Line } else { Role::Grid };
            scene.horizontal(y, (self.left, self.right), role, 1.0);
            let at = Point::new(self.left - 8.0, y + 4.0);
            scene.text(Label::new(axis.label(tick), at).anchor(Anchor::End));
        }
    }
}

/// The middle of the pixel, so that a line one pixel wide covers it and no other.
pub fn crisp(place: f64) -> f64 {
    place.floor() + 0.5
}

/// Steps: each height holds until the next point.
pub fn steps(points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    let mut line: Vec<Point> = Vec::new();
    for point in points {
        let before = line.last().map_or(point.y, |last| last.y);
        if (before - point.y).abs() > f64::EPSILON {
            line.push(Point::new(point.x, before));
        }
        line.push(point);
    }
    line
}

/// An empty picture; widths that no chart fits are made to fit.
pub fn sheet(width: f64, height: f64, sheet: Role) -> Scene {
    let width = if width.is_finite() {
        width.max(MIN_WIDTH)
    } else {
        MIN_WIDTH
    };
    Scene {
        width,
        height,
        sheet,
        ..Scene::default()
    }
}

/// A sentence in place of a chart, on as many lines as it needs.
pub fn say(scene: &mut Scene, sentence: &str) {
    const LINE: f64 = 18.0;
    const MAX_LINES: usize = 6;
    let room = scene.width - 24.0;
    let lines = text::lines(sentence, Face::Sans, SMALL, room, MAX_LINES);
    let first = (scene.height - LINE * (lines.len() - 1) as f64) / 2.0 + 4.0;
    for (idx, line) in lines.iter().enumerate() {
        let at = Point::new(scene.width / 2.0, first + LINE * idx as f64);
        scene.text(Label::new(line, at).anchor(Anchor::Middle));
    }
    sentence.clone_into(&mut scene.description);
}
