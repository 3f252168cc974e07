//! Allocated and reserved bytes over the events of a trace: a band for each large block.

use std::cmp::Reverse;

use super::bands::{BandOf, Living, TraceBand, goes_on, to_the_end_of};
use super::write_below;
use gpumem_model::units::{Bytes, Nanos, Units};
use gpumem_readers::torch_snapshot::{Allocation, SnapshotLevels};
use gpumem_scene::Density;
use gpumem_scene::axis::ByteAxis;
use gpumem_scene::label::Label;
use gpumem_scene::plot::{Plot, crisp, sheet, steps};
use gpumem_scene::text;
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};

const HEIGHT: f64 = 220.0;
const TOP: f64 = 22.0;
/// Below the plot: numbers of events, and when they were.
const BELOW: f64 = 22.0;
const MAX_TICKS: usize = 5;
/// About the room for each label below.
const LABEL_ROOM: f64 = 150.0;
/// A smaller block has no band of its own.
const MIN_BAND: f64 = 1.0;
/// Bands as high as this have a gap between them.
const MIN_BAND_WITH_GAP: f64 = 3.0;
/// Of bands, by the line that allocated them.
const SHADES: [Role; 3] = [Role::Kept, Role::Back, Role::BackCap];

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
    /// Number of events before the selected instant.
    pub moment: usize,
    /// Number of events before each failed request.
    pub failures: &'a [usize],
    /// The blocks of the device, the oldest first.
    pub allocations: &'a [Allocation],
    /// What stands out.
    pub pointed: Option<BandOf>,
    /// Microseconds from the first event of the trace to an event.
    pub micros: &'a dyn Fn(usize) -> Option<u64>,
    /// How sizes are shown.
    pub units: Units,
}

/// A picture of a trace, and where its bands are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceChart {
    /// The picture.
    pub scene: Scene,
    /// The bands.
    pub bands: Vec<TraceBand>,
}

impl TraceChart {
    /// The band at a point.
    pub fn at(&self, point: Point) -> Option<TraceBand> {
        let mut bands = self.bands.iter();
        bands.find(|band| band.rect.contains(point)).copied()
    }
}

/// The levels that are visible: the highest one of each pixel. Below it are the blocks of that moment, the oldest
/// at the bottom; above them those that are too small for a band each, by line; on top what nothing is known of.
pub fn trace_levels(levels: &SnapshotLevels, view: &TraceView<'_>) -> TraceChart {
    let mut scene = sheet(view.width, HEIGHT, Role::Panel);
    let plot = Plot::new(scene.width, TOP, HEIGHT - BELOW);
    let place = EventPlacement {
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
    let bands = place.draw_bands(&mut scene, &levels.allocated, &axis, view);
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
    TraceChart { scene, bands }
}

/// What of the visible part is at a place of a chart of that width: a number of events, or nanoseconds; `None` beside
/// the chart.
pub fn axis_value_at(x: f64, width: f64, span: (f64, f64)) -> Option<f64> {
    let plot = Plot::new(width, TOP, HEIGHT - BELOW);
    let reach = plot.left - 6.0..=plot.right + 6.0;
    let share = ((x - plot.left) / plot.width()).clamp(0.0, 1.0);
    reach
        .contains(&x)
        .then_some(span.0 + share * (span.1 - span.0))
}

/// Where events are.
struct EventPlacement {
    plot: Plot,
    span: (f64, f64),
    /// The width of a column.
    pixel: f64,
}

impl EventPlacement {
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

    /// Each pixel with the event after which the level is highest in it, and that level.
    fn columns(&self, levels: &[Bytes]) -> impl Iterator<Item = (f64, usize, Bytes)> {
        let n_columns = (self.plot.width() / self.pixel).max(1.0) as usize;
        (0..n_columns).map(move |column| {
            let x = self.plot.left + column as f64 * self.pixel;
            let seen = self.indices(levels.len(), x, x + self.pixel);
            let of_event = |event: usize| (levels[event], Reverse(event));
            let event = seen.max_by_key(|event| of_event(*event)).unwrap_or(0);
            (x, event, levels.get(event).copied().unwrap_or_default())
        })
    }

    fn draw_bands(
        &self,
        scene: &mut Scene,
        levels: &[Bytes],
        axis: &ByteAxis,
        view: &TraceView<'_>,
    ) -> Vec<TraceBand> {
        let is_high = |bytes: Bytes| axis.y(0.0) - axis.y(bytes.as_f64()) >= MIN_BAND;
        let mut living = Living::new(view.allocations, is_high);
        let mut open: Vec<TraceBand> = Vec::new();
        let mut bands = Vec::new();
        let mut rest: Vec<Rect> = Vec::new();
        for (x, event, level) in self.columns(levels) {
            living.go_to(event);
            let mut sum = Bytes::ZERO;
            let before = std::mem::take(&mut open);
            let mut before = before.into_iter().peekable();
            for (of, bytes) in living.now(&is_high) {
                let bottom = sum;
                sum = (sum + bytes).min(level);
                let rect = self.column(x, bottom, sum, axis);
                // Both are in one order: what is not here any more is over.
                while let Some(over) = before.next_if(|band| band.of < of) {
                    bands.push(over);
                }
                let same = before.next_if(|band| band.of == of);
                let mut band = TraceBand { rect, of, bytes };
                if let Some(same) = same {
                    if goes_on(same.rect, rect) {
                        band.rect = to_the_end_of(same.rect, rect);
                    } else {
                        bands.push(same);
                    }
                }
                open.push(band);
            }
            bands.extend(before);
            let above = self.column(x, sum, level, axis);
            match rest.last_mut().filter(|last| goes_on(**last, above)) {
                Some(last) => *last = to_the_end_of(*last, above),
                None => rest.push(above),
            }
        }
        bands.append(&mut open);
        bands.retain(|band| band.rect.height > 0.0);
        for band in &bands {
            let owner = match band.of {
                BandOf::Block(block) => view.allocations[block].owner,
                BandOf::Line(owner) => owner,
            };
            let role = if view.pointed == Some(band.of) {
                Role::Watch
            } else {
                SHADES[owner % SHADES.len()]
            };
            let has_gap = band.rect.height >= MIN_BAND_WITH_GAP;
            let height = band.rect.height - f64::from(u8::from(has_gap));
            scene.fill(
                Rect {
                    height,
                    ..band.rect
                },
                role,
                0.0,
            );
        }
        for rect in rest.into_iter().filter(|rect| rect.height > 0.0) {
            scene.fill(rect, Role::KeptArea, 0.0);
        }
        bands
    }

    fn column(&self, x: f64, from: Bytes, to: Bytes, axis: &ByteAxis) -> Rect {
        let (bottom, top) = (axis.y(from.as_f64()), axis.y(to.as_f64()));
        Rect::new(x, top, self.pixel, bottom - top)
    }

    fn draw_roof(&self, scene: &mut Scene, levels: &[Bytes], axis: &ByteAxis) {
        let columns = self.columns(levels);
        let points = columns.map(|(x, _, level)| Point::new(x, crisp(axis.y(level.as_f64()))));
        scene.line(steps(points), Role::Muted, 1.5, None);
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
        write_below(
            scene,
            self.plot,
            self.plot.bottom + 15.0,
            n_labels,
            |share| {
                let event = (self.span.0 + share * (self.span.1 - self.span.0)).round();
                let time = (view.micros)((event as usize).saturating_sub(1));
                let time = time.map(|micros| Nanos::new(micros.saturating_mul(1000)).to_string());
                match time {
                    Some(time) if event > 0.0 => format!("{event:.0} · {time}"),
                    _ => format!("{event:.0}"),
                }
            },
        );
    }
}
