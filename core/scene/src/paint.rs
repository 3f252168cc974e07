//! A scene on a plotters backend.
//!
//! What differs between backends is settled here: dashes and round corners are
//! ours, lines along an axis are rectangles on whole pixels, and letters are
//! drawn by their CSS size and baseline.

use std::convert::Infallible;

use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontFamily, FontStyle,
};

use crate::label::Label;
use crate::theme::{Rgb, Theme};
use crate::{Anchor, Face, Item, Point, Rect, Role, Scene, text};

/// The error of a plotters backend, from [`paint`].
pub type PaintError<B> = DrawingErrorKind<<B as DrawingBackend>::ErrorType>;

/// Paints `scene` with `scale` device pixels per logical pixel. [`svg`](crate::svg()) and `png` call it
/// with their own backends; the page calls it with its canvas.
///
/// The backend draws letters itself, in `draw_text`: the position is on the **baseline**, `style.size()`
/// is the CSS font size in device pixels, and only the horizontal part of the anchor counts. It never
/// has to measure a text, nor draw an outline of a rectangle or a circle.
///
/// # Errors
///
/// The first error of the backend.
pub fn paint<B: DrawingBackend>(
    scene: &Scene,
    theme: Theme,
    scale: f64,
    backend: &mut B,
) -> Result<(), PaintError<B>> {
    let mut brush = Brush {
        theme,
        scale,
        backend,
    };
    brush.backend.ensure_prepared()?;
    if scene.sheet != Role::Clear {
        brush.fill(scene.area(), scene.sheet, 0.0)?;
    }
    for item in &scene.items {
        brush.item(item)?;
    }
    brush.backend.present()
}

struct Brush<'a, B> {
    theme: Theme,
    scale: f64,
    backend: &'a mut B,
}

impl<B: DrawingBackend> Brush<'_, B> {
    fn item(&mut self, item: &Item) -> Result<(), PaintError<B>> {
        match item {
            Item::Fill { rect, role, radius } => self.fill(*rect, *role, *radius),
            Item::Line {
                points,
                role,
                width,
                dash: None,
            } => self.line(points, *role, *width),
            Item::Line {
                points,
                role,
                width,
                dash: Some(dash),
            } => dashes(points, *dash)
                .iter()
                .try_for_each(|dash| self.line(dash, *role, *width)),
            Item::Text(label) => {
                let letters = Letters {
                    label,
                    size: label.size * self.scale,
                    colour: self.pen(label.role, 1.0).colour,
                };
                let at = self.pixels(label.at);
                self.backend.draw_text(&label.text, &letters, at)
            }
        }
    }

    fn fill(&mut self, rect: Rect, role: Role, radius: f64) -> Result<(), PaintError<B>> {
        let pen = self.pen(role, 1.0);
        if radius * self.scale < 1.0 {
            let (left, top) = self.pixels(rect.top_left());
            let (right, bottom) = self.pixels(rect.bottom_right());
            // What is there is seen, however small.
            let corner = (right.max(left + 1), bottom.max(top + 1));
            return self.backend.draw_rect((left, top), corner, &pen, true);
        }
        let outline: Vec<_> = round_corners(rect, radius, self.scale)
            .into_iter()
            .map(|point| self.pixels(point))
            .collect();
        self.backend.fill_polygon(outline, &pen)
    }

    fn line(&mut self, points: &[Point], role: Role, width: f64) -> Result<(), PaintError<B>> {
        if let Some(rect) = along_an_axis(points, width) {
            return self.fill(rect, role, 0.0);
        }
        let pen = self.pen(role, width);
        let path: Vec<_> = points.iter().map(|point| self.pixels(*point)).collect();
        self.backend.draw_path(path, &pen)
    }

    fn pen(&self, role: Role, width: f64) -> Pen {
        let Rgb(red, green, blue) = self.theme.colour(role);
        Pen {
            colour: BackendColor {
                alpha: 1.0,
                rgb: (red, green, blue),
            },
            width: self.at_least_one(width),
        }
    }

    fn pixels(&self, point: Point) -> BackendCoord {
        (whole(point.x * self.scale), whole(point.y * self.scale))
    }

    fn at_least_one(&self, length: f64) -> u32 {
        whole(length * self.scale).max(1).unsigned_abs()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates far outside any screen"
)]
fn whole(pixels: f64) -> i32 {
    // One instruction each where the page paints; `round` is none.
    (pixels + 0.5).floor() as i32
}

/// The rectangle that a straight horizontal or vertical line covers.
fn along_an_axis(points: &[Point], width: f64) -> Option<Rect> {
    let [from, to] = points else {
        return None;
    };
    let (left, top) = (from.x.min(to.x), from.y.min(to.y));
    let (across, down) = ((from.x - to.x).abs(), (from.y - to.y).abs());
    if down == 0.0 {
        Some(Rect::new(left, top - width / 2.0, across, width))
    } else if across == 0.0 {
        Some(Rect::new(left - width / 2.0, top, width, down))
    } else {
        None
    }
}

/// The outline of a rectangle with round corners, clockwise.
fn round_corners(rect: Rect, radius: f64, scale: f64) -> Vec<Point> {
    let radius = radius.min(rect.width / 2.0).min(rect.height / 2.0);
    let n_steps = whole((radius * scale).sqrt() * 2.0).clamp(2, 16);
    let (left, right) = (rect.x + radius, rect.x + rect.width - radius);
    let (top, bottom) = (rect.y + radius, rect.y + rect.height - radius);
    let mut outline = Vec::new();
    for quarter in 0..4 {
        for step in 0..=n_steps {
            let (cos, sin) = quarter_circle(f64::from(step) / f64::from(n_steps));
            let (x, y, across, down) = match quarter {
                0 => (right, bottom, cos, sin),
                1 => (left, bottom, -sin, cos),
                2 => (left, top, -cos, -sin),
                _ => (right, top, sin, -cos),
            };
            outline.push(Point::new(x + radius * across, y + radius * down));
        }
    }
    outline
}

/// Cosine and sine of an angle that grows from 0° to 90° as `t` grows from 0 to 1: the rational
/// parametrisation of the circle.
fn quarter_circle(t: f64) -> (f64, f64) {
    let below = 1.0 + t * t;
    ((1.0 - t * t) / below, 2.0 * t / below)
}

/// The dashes of a line, `dash` long and `gap` apart.
fn dashes(points: &[Point], (dash, gap): (f64, f64)) -> Vec<Vec<Point>> {
    let mut dashes: Vec<Vec<Point>> = Vec::new();
    let mut drawing = true;
    let mut left = dash;
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        if drawing {
            push_or_start(&mut dashes, from);
        }
        loop {
            let (across, down) = (to.x - from.x, to.y - from.y);
            let way = (across * across + down * down).sqrt();
            if way <= left {
                left -= way;
                if drawing {
                    push_or_start(&mut dashes, to);
                }
                break;
            }
            from = from.towards(to, left / way);
            if drawing {
                push_or_start(&mut dashes, from);
            } else {
                dashes.push(vec![from]);
            }
            drawing = !drawing;
            left = if drawing { dash } else { gap };
        }
    }
    dashes.retain(|dash| dash.len() > 1);
    dashes
}

fn push_or_start(dashes: &mut Vec<Vec<Point>>, point: Point) {
    match dashes.last_mut() {
        Some(dash) if dash.last() == Some(&point) => {}
        Some(dash) => dash.push(point),
        None => dashes.push(vec![point]),
    }
}

#[derive(Clone, Copy)]
struct Pen {
    colour: BackendColor,
    width: u32,
}

impl BackendStyle for Pen {
    fn color(&self) -> BackendColor {
        self.colour
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}

/// How letters look; the backend draws them.
struct Letters<'a> {
    label: &'a Label,
    /// In device pixels.
    size: f64,
    colour: BackendColor,
}

impl BackendTextStyle for Letters<'_> {
    type FontError = Infallible;

    fn color(&self) -> BackendColor {
        self.colour
    }

    fn size(&self) -> f64 {
        self.size
    }

    fn style(&self) -> FontStyle {
        match self.label.face {
            Face::Bold => FontStyle::Bold,
            Face::Sans | Face::Mono => FontStyle::Normal,
        }
    }

    fn anchor(&self) -> Pos {
        let h_pos = match self.label.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        Pos::new(h_pos, VPos::Bottom)
    }

    fn family(&self) -> FontFamily<'_> {
        match self.label.face {
            Face::Sans | Face::Bold => FontFamily::SansSerif,
            Face::Mono => FontFamily::Monospace,
        }
    }

    fn layout_box(&self, text: &str) -> Result<(BackendCoord, BackendCoord), Infallible> {
        let width = text::width(text, self.label.face, self.size);
        Ok(((0, -whole(self.size)), (whole(width), 0)))
    }

    fn draw<E, DrawFunc: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        _text: &str,
        _pos: BackendCoord,
        _draw: DrawFunc,
    ) -> Result<Result<(), E>, Infallible> {
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use crate::paint::*;

    #[track_caller]
    fn check(points: &[(f64, f64)], dash: (f64, f64), expected: &[&[(f64, f64)]]) {
        let points: Vec<Point> = points.iter().map(|&(x, y)| Point::new(x, y)).collect();
        let drawn: Vec<Vec<(f64, f64)>> = dashes(&points, dash)
            .iter()
            .map(|dash| dash.iter().map(|point| (point.x, point.y)).collect())
            .collect();
        assert_eq!(drawn, expected);
    }

    #[test]
    fn dashes_go_round_corners() {
        check(
            &[(0.0, 0.0), (10.0, 0.0)],
            (4.0, 2.0),
            &[&[(0.0, 0.0), (4.0, 0.0)], &[(6.0, 0.0), (10.0, 0.0)]],
        );
        check(
            &[(0.0, 0.0), (3.0, 0.0), (3.0, 9.0)],
            (4.0, 4.0),
            &[
                &[(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)],
                &[(3.0, 5.0), (3.0, 9.0)],
            ],
        );
        check(&[(1.0, 1.0), (1.0, 1.0)], (4.0, 4.0), &[]);
    }

    #[test]
    fn corners_stay_inside_their_rectangle() {
        let rect = Rect::new(10.0, 20.0, 6.0, 3.0);
        let outline = round_corners(rect, 5.0, 2.0);
        let grown = Rect::new(9.999, 19.999, 6.002, 3.002);
        assert!(outline.iter().all(|point| grown.contains(*point)));
    }

    #[test]
    fn corners_are_round_and_clockwise() {
        let centre = Point::new(4.0, 4.0);
        let outline = round_corners(Rect::new(0.0, 0.0, 8.0, 8.0), 4.0, 2.0);
        for pair in outline.windows(2) {
            let (x, y) = (pair[0].x - centre.x, pair[0].y - centre.y);
            let (next_x, next_y) = (pair[1].x - centre.x, pair[1].y - centre.y);
            assert!((x * x + y * y - 16.0).abs() < 1e-9, "{:?}", pair[0]);
            assert!(x * next_y - y * next_x > -1e-9, "{pair:?}");
        }
        assert_eq!(outline.len(), 4 * 7);
    }
}
