//! Allocated and reserved bytes over the events of a trace.

use gpumem_model::units::{Bytes, Nanos, Units};
use gpumem_readers::torch_snapshot::Levels;
use gpumem_scene::Density;
use gpumem_scene::axis::ByteAxis;
use gpumem_scene::label::Label;
use gpumem_scene::plot::{Plot, crisp, sheet};
use gpumem_scene::text;
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};

const HEIGHT: f64 = 190.0;
const TOP: f64 = 22.0;
/// Below the plot: numbers of events, and when they were.
const BELOW: f64 = 22.0;
const MAX_TICKS: usize = 5;
/// About so much room for each label below.
const LABEL_ROOM: f64 = 150.0;

/// What is shown of a trace.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it lends a function")]
pub struct TraceView<'a> {
    /// In logical pixels.
    pub width: f64,
    /// How fine the picture is.
    pub density: Density,
    /// Visible events, by how many were before: `0..=n` is all of them.
    pub span: (f64, f64),
    /// After so many events somebody looks.
    pub moment: usize,
    /// After so many events requests failed.
    pub failures: &'a [usize],
    /// Microseconds from the first event of the trace to an event.
    pub micros: &'a dyn Fn(usize) -> Option<u64>,
    /// How sizes are shown.
    pub units: Units,
}

/// The levels that are visible: the highest one of each pixel.
pub fn trace_levels(levels: &Levels, view: &TraceView<'_>) -> Scene {
    let mut scene = sheet(view.width, HEIGHT, Role::Panel);
    let plot = Plot::new(scene.width, TOP, HEIGHT - BELOW);
    let place = Place {
        plot,
        span: view.span,
        pixel: view.density.pixel(),
    };
    let highest = |levels: &[Bytes]| {
        let seen = &levels[place.indices(levels.len(), plot.left, plot.right)];
        seen.iter().copied().max().unwrap_or_default()
    };
    let (allocated, reserved) = (highest(&levels.allocated), highest(&levels.reserved));
    let top = allocated.max(reserved);
    let axis = ByteAxis::new(0.0..=top.as_f64(), plot.bottom, plot.top, view.units);
    plot.draw_axis(&mut scene, &axis, MAX_TICKS);
    place.draw_area(&mut scene, &levels.allocated, &axis);
    place.draw_roof(&mut scene, &levels.reserved, &axis);
    place.draw_below(&mut scene, view);
    for &failure in view.failures {
        if let Some(x) = place.x(failure as f64) {
            place.draw_mark(&mut scene, x, Role::Leak);
            let at = Point::new(x, plot.top - 8.0);
            let label = Label::new("✕", at).face(Face::Bold).role(Role::LeakText);
            scene.text(label.anchor(Anchor::Middle));
        }
    }
    if let Some(x) = place.x(view.moment as f64) {
        place.draw_mark(&mut scene, x, Role::Text);
        let level = levels.allocated.get(view.moment).copied();
        let words = view.units.size(level.unwrap_or_default());
        let width = text::width(&words, Face::Bold, 12.0);
        let is_left = x + width + 8.0 > plot.right;
        let at = Point::new(if is_left { x - 6.0 } else { x + 6.0 }, plot.top - 8.0);
        let label = Label::new(&words, at).face(Face::Bold).role(Role::Text);
        let anchor = if is_left { Anchor::End } else { Anchor::Start };
        scene.text(label.anchor(anchor));
    }
    scene.description = format!(
        "In view: {} allocated and {} reserved at most",
        view.units.size(allocated),
        view.units.size(reserved)
    );
    scene
}

/// After how many events it is at a place of the chart of that width; `None` beside the chart.
pub fn event_at(x: f64, width: f64, span: (f64, f64)) -> Option<f64> {
    let plot = Plot::new(width, TOP, HEIGHT - BELOW);
    let reach = plot.left - 6.0..=plot.right + 6.0;
    let share = ((x - plot.left) / plot.width()).clamp(0.0, 1.0);
    reach
        .contains(&x)
        .then_some(span.0 + share * (span.1 - span.0))
}

/// Where events are.
struct Place {
    plot: Plot,
    span: (f64, f64),
    /// The width of a column.
    pixel: f64,
}

impl Place {
    fn x(&self, event: f64) -> Option<f64> {
        let share = (event - self.span.0) / (self.span.1 - self.span.0).max(1.0);
        let is_seen = (-1e-9..=1.0 + 1e-9).contains(&share);
        is_seen.then_some(self.plot.left + share * self.plot.width())
    }

    /// The levels of the events between two places, and the one that holds on from before.
    fn indices(&self, n: usize, from: f64, to: f64) -> std::ops::Range<usize> {
        let event = |x: f64| {
            let share = (x - self.plot.left) / self.plot.width();
            self.span.0 + share * (self.span.1 - self.span.0).max(1.0)
        };
        let first = (event(from).max(0.0) as usize).min(n.saturating_sub(1));
        let end = (event(to).max(0.0).ceil() as usize).clamp(first + 1, n.max(first + 1));
        first.min(n)..end.min(n)
    }

    /// Each pixel with the highest level in it.
    fn columns(&self, levels: &[Bytes]) -> impl Iterator<Item = (f64, f64)> {
        let n_columns = (self.plot.width() / self.pixel).max(1.0) as usize;
        (0..n_columns).map(move |column| {
            let x = self.plot.left + column as f64 * self.pixel;
            let seen = &levels[self.indices(levels.len(), x, x + self.pixel)];
            let highest = seen.iter().copied().max().unwrap_or_default();
            (x, highest.as_f64())
        })
    }

    fn draw_area(&self, scene: &mut Scene, levels: &[Bytes], axis: &ByteAxis) {
        for (x, level) in self.columns(levels) {
            let top = axis.y(level);
            let rect = Rect::new(x, top, self.pixel, self.plot.bottom - top);
            scene.fill(rect, Role::KeptArea, 0.0);
        }
    }

    fn draw_roof(&self, scene: &mut Scene, levels: &[Bytes], axis: &ByteAxis) {
        let mut points = Vec::new();
        for (x, level) in self.columns(levels) {
            let y = crisp(axis.y(level));
            let before = points.last().map_or(y, |last: &Point| last.y);
            if (before - y).abs() > f64::EPSILON {
                points.push(Point::new(x, before));
            }
            points.push(Point::new(x, y));
        }
        scene.line(points, Role::Muted, 1.5, None);
    }

    fn draw_mark(&self, scene: &mut Scene, x: f64, role: Role) {
        let x = crisp(x);
        let points = vec![
            Point::new(x, self.plot.top - 4.0),
            Point::new(x, self.plot.bottom),
        ];
        scene.line(points, role, 1.0, Some((2.0, 2.0)));
    }

    fn draw_below(&self, scene: &mut Scene, view: &TraceView<'_>) {
        let n_labels = (self.plot.width() / LABEL_ROOM).clamp(1.0, 6.0) as usize;
        for idx in 0..=n_labels {
            let share = idx as f64 / n_labels as f64;
            let event = (self.span.0 + share * (self.span.1 - self.span.0)).round();
            let time = (view.micros)((event as usize).saturating_sub(1));
            let time = time.map(|micros| Nanos::new(micros.saturating_mul(1000)).to_string());
            let words = match time {
                Some(time) if event > 0.0 => format!("{event:.0} · {time}"),
                _ => format!("{event:.0}"),
            };
            let anchor = match idx {
                0 => Anchor::Start,
                _ if idx == n_labels => Anchor::End,
                _ => Anchor::Middle,
            };
            let x = self.plot.left + share * self.plot.width();
            let at = Point::new(x, self.plot.bottom + 15.0);
            scene.text(Label::new(words, at).anchor(anchor));
        }
    }
}
