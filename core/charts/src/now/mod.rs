//! The device's memory now: one bar by name and category.

mod segment;
#[cfg(test)]
mod tests;
mod tile;

use super::ChartView;
use gpumem_analyzer::Analysis;
use gpumem_model::recording::Recording;
use gpumem_model::units::{Bytes, Units};
use gpumem_scene::hatch::stripes;
use gpumem_scene::label::{Label, MEDIUM, Occupied};
use gpumem_scene::plot::{say, sheet};
use gpumem_scene::{Category, Face, Point, Rect, Role, Scene, Target};
use gpumem_wording as wording;
use gpumem_wording::Sign;

pub(super) use segment::segments_of_oom;
pub use segment::{BarSegment, segments};
pub use tile::{DeviceTile, device_tiles};

const MARGIN: f64 = 12.0;
const TOP: f64 = 2.0;
const BAR: f64 = 38.0;
/// Above the bar, for brackets over twins.
const TWINS: f64 = 20.0;
const RADIUS: f64 = 4.0;
/// From the bar to the first line of the legend, and from line to line.
const LEGEND: f64 = 19.0;
const LINE_HEIGHT: f64 = 18.0;
const SWATCH: f64 = 10.0;
const GAP: f64 = 15.0;
/// Every part is at least this wide, so that it can be seen.
const LEAST: f64 = 2.0;
/// From the edge of a segment to its words.
const PAD: f64 = 5.0;
/// A legend in two columns, below this width.
const NARROW: f64 = 632.0;

/// The memory of the view's device, by the latest levels of the recording.
pub fn now(recording: &Recording, analysis: &Analysis, view: &ChartView) -> Scene {
    let mut scene = sheet(view.width, TOP + BAR, Role::Panel);
    let mut top = TOP;
    let segments = segments(recording, analysis, view.device);
    let device = recording.devices().get(view.device.get());
    let label = device.map_or("this device", |device| &device.label);
    if segments.is_empty() {
        say(&mut scene, &format!("what fills {label} is not known"));
        return scene;
    }
    let twins = twins(analysis, view, &segments);
    if !twins.is_empty() {
        draw_twins(&mut scene, &twins, &segments);
        top += TWINS;
    }
    draw_bar(&mut scene, &segments, (top, view.units));
    let edges = (top + BAR, MARGIN);
    draw_legend(&mut scene, &segments, (edges, false), view.units);
    let share = |part: &BarSegment| format!("{} {}", part.name, view.units.size(part.size));
    let shares: Vec<String> = segments.iter().map(share).collect();
    scene.description = format!("What fills {label} now: {}.", shares.join(", "));
    scene
}

fn frame(scene: &Scene, top: f64) -> Rect {
    Rect::new(MARGIN, top, scene.width - 2.0 * MARGIN, BAR)
}

/// Where each part of the bar stands in its frame.
fn places(segments: &[BarSegment], frame: Rect) -> impl Iterator<Item = Rect> {
    let inside = frame.inset(1.0);
    let mut left = inside.x;
    let widths = widths(segments, inside.width).into_iter();
    widths.map(move |width| {
        let rect = Rect::new(left, inside.y, width, inside.height);
        left += width;
        rect
    })
}

fn draw_bar(scene: &mut Scene, segments: &[BarSegment], (top, units): (f64, Units)) {
    let frame = frame(scene, top);
    scene.fill(frame, Role::BackCap, RADIUS);
    scene.fill(frame.inset(1.0), Role::Panel, RADIUS - 1.0);
    for (idx, (segment, rect)) in segments.iter().zip(places(segments, frame)).enumerate() {
        draw_segment(scene, segment, rect, units);
        scene.respond(rect, Target::Part(idx));
    }
}

/// The parts of the bar that hold the same, and how much of it is the same.
fn twins(
    analysis: &Analysis,
    view: &ChartView,
    segments: &[BarSegment],
) -> Vec<((usize, usize), String)> {
    let idle = analysis.idle_on(view.device);
    let twins = idle.filter_map(|it| it.twin.as_ref()).filter_map(|twin| {
        let find = |name: &str| segments.iter().position(|it| it.is_name && it.name == name);
        let (one, other) = (find(&twin.name)?, find(&twin.other)?);
        Some(((one.min(other), one.max(other)), wording::twins(twin)))
    });
    twins.collect()
}

/// A bracket over each two, and what they are beside it, where there is room for that.
fn draw_twins(scene: &mut Scene, twins: &[((usize, usize), String)], segments: &[BarSegment]) {
    let middles = places(segments, frame(scene, TOP + TWINS));
    let middles: Vec<f64> = middles.map(|it| it.x + it.width / 2.0).collect();
    let mut taken = Occupied::default();
    for ((one, other), words) in twins {
        let (left, right) = (middles[*one], middles[*other]);
        let (top, bottom) = (TOP + 6.0, TOP + TWINS - 2.0);
        let corners = [(left, bottom), (left, top), (right, top), (right, bottom)];
        let corners = corners.map(|(x, y)| Point::new(x, y));
        scene.line(corners.to_vec(), Role::Text, 1.0, None);
        let words = format!("twins: {words}");
        let label = |x: f64| Label::new(&words, Point::new(x, TOP + 11.0)).size(MEDIUM);
        let width = label(0.0).width();
        let beside = [right + 8.0, left - 8.0 - width];
        let fits = |x: &f64| *x >= MARGIN && *x + width <= scene.width - MARGIN;
        let place = beside.into_iter().find(fits).map(label);
        if let Some(label) = place.filter(|label| taken.take(label)) {
            scene.text(label);
        }
    }
}

/// A part of a bar; says whether its name fits.
pub(super) fn draw_segment(
    scene: &mut Scene,
    segment: &BarSegment,
    rect: Rect,
    units: Units,
) -> bool {
    if segment.category.is_some() {
        // A hairline of the sheet between two parts tells equal colours apart.
        let gap = if rect.width > 2.0 * LEAST { 1.0 } else { 0.0 };
        let filled = Rect::new(rect.x, rect.y, rect.width - gap, rect.height);
        scene.fill(filled, segment.role(), 0.0);
        if segment.is_striped() {
            stripes(scene, filled, Role::Panel);
        }
    }
    write(scene, segment, rect, units)
}

/// Name and size where both fit; a sign where only that does.
fn write(scene: &mut Scene, segment: &BarSegment, rect: Rect, units: Units) -> bool {
    let role = match segment.category {
        Some(Category::Cache) | None => Role::Text,
        Some(_) => Role::Word,
    };
    let face = if segment.is_name {
        Face::Mono
    } else {
        Face::Sans
    };
    let at = |y: f64| Point::new(rect.x + PAD, rect.y + y);
    let sign = segment.sign().map(|sign| format!("{sign} "));
    let sign = sign.unwrap_or_default();
    let name = Label::new(format!("{sign}{}", segment.name), at(15.0));
    let name = name.size(MEDIUM).face(face).role(role);
    let idle = segment.is_idle.then(|| Sign::Note.glyph());
    let size = units.size(segment.size);
    let size = idle.map_or(size.clone(), |sign| format!("{sign} {size}"));
    let size = Label::new(size, at(30.0)).size(MEDIUM).role(role);
    let room = rect.width - 2.0 * PAD;
    let width = name.width().max(size.width());
    let fits = width <= room;
    if fits {
        if segment.is_striped() {
            // Words on stripes are hard to read.
            let behind = Rect::new(rect.x + PAD - 3.0, rect.y + 3.0, width + 6.0, BAR - 8.0);
            scene.fill(behind, segment.role(), 0.0);
        }
        scene.text(name);
        scene.text(size);
    } else if let Some(sign) = segment.sign().or(idle) {
        let sign = Label::new(sign, Point::new(rect.x + 2.0, rect.y + 14.0));
        let sign = sign.size(MEDIUM).face(Face::Bold).role(role);
        if sign.width() + 3.0 <= rect.width {
            scene.text(sign);
        }
    }
    fits
}

/// Shares of the room by size, none of them too narrow to be seen.
fn widths(parts: &[BarSegment], room: f64) -> Vec<f64> {
    let total: Bytes = parts.iter().map(|part| part.size).sum();
    let fair = |part: &BarSegment| part.size.as_f64() / total.as_f64().max(1.0) * room;
    let raised: Vec<f64> = parts.iter().map(|part| fair(part).max(LEAST)).collect();
    let over = raised.iter().sum::<f64>() - room;
    let widest = raised.iter().copied().fold(0.0, f64::max);
    let mut paid = false;
    raised
        .into_iter()
        .map(|width| {
            let pays = !paid && width >= widest;
            paid |= pays;
            if pays {
                (width - over).max(LEAST)
            } else {
                width
            }
        })
        .collect()
}

/// What the colours mean, with the sum of each, below `top` and inside a margin.
pub(super) fn draw_legend(
    scene: &mut Scene,
    segments: &[BarSegment],
    ((top, margin), with_unused): ((f64, f64), bool),
    units: Units,
) {
    let right = scene.width - margin;
    let column = (scene.width - 2.0 * margin) / 2.0;
    let is_narrow = scene.width < NARROW;
    let (mut x, mut baseline) = (margin, top + LEGEND);
    for (place, entry) in segment::sums(segments, with_unused).iter().enumerate() {
        let origin = Point::new(0.0, 0.0);
        let label = |at: Point| Label::new(&entry.words, at).size(MEDIUM);
        let figure = |at: Point| {
            let figure = Label::new(units.size(entry.size), at);
            figure.size(MEDIUM).face(Face::Bold).role(Role::Text)
        };
        let words_width = label(origin).width() + 5.0;
        let swatch_width = entry.role.map_or(0.0, |_| SWATCH + 5.0);
        let width = swatch_width + words_width + figure(origin).width();
        if is_narrow {
            x = margin + column * (place % 2) as f64;
            baseline = top + LEGEND + LINE_HEIGHT * (place / 2) as f64;
        } else if x > margin && x + width > right {
            (x, baseline) = (margin, baseline + LINE_HEIGHT);
        }
        let swatch = Rect::new(x, baseline - 9.0, SWATCH, SWATCH);
        match entry.role {
            None => {}
            Some(Role::Panel) => {
                scene.fill(swatch, Role::BackCap, 2.0);
                scene.fill(swatch.inset(1.0), Role::Panel, 1.0);
            }
            Some(role) => scene.fill(swatch, role, 2.0),
        }
        if entry.is_striped {
            stripes(scene, swatch, Role::Panel);
        }
        let room = if is_narrow { x + column - 12.0 } else { right };
        let at = Point::new(x + swatch_width, baseline);
        let figure_left = if is_narrow {
            room - figure(origin).width()
        } else {
            at.x + words_width
        };
        scene.text(label(at).fitted(figure_left - at.x - 4.0));
        scene.text(figure(Point::new(figure_left, baseline)));
        let rect = Rect::new(x - 4.0, baseline - 13.0, width + 8.0, LINE_HEIGHT);
        scene.respond(rect, Target::Part(entry.first));
        x += width + GAP;
    }
    scene.height = baseline + 10.0;
}

/// The text over the bar.
pub fn in_use(segments: &[BarSegment]) -> Usage {
    let sum = |is_it: &dyn Fn(&BarSegment) -> bool| -> Bytes {
        let meant = segments.iter().filter(|it| is_it(it));
        meant.map(|it| it.size).sum()
    };
    let is_cache = |it: &BarSegment| it.category == Some(Category::Cache);
    let is_free = |it: &BarSegment| it.category.is_none();
    Usage {
        used: sum(&|it| !is_cache(it) && !is_free(it)),
        cache: sum(&is_cache),
        free: sum(&is_free),
        is_limited: segments.iter().any(is_free),
    }
}

/// How full a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Neither cache nor free.
    pub used: Bytes,
    /// Free in the allocator.
    pub cache: Bytes,
    /// What nobody uses.
    pub free: Bytes,
    /// The size of the device is known, so that what is free is.
    pub is_limited: bool,
}

impl Usage {
    /// `9.5 GiB of 16 GiB in use`: the cache is in use, as in every other place.
    pub fn describe(&self, units: Units) -> String {
        let in_use = self.used + self.cache;
        if !self.is_limited {
            return format!("{} in use", units.size(in_use));
        }
        let all = in_use + self.free;
        format!("{} of {} in use", units.size(in_use), units.size(all))
    }
}
