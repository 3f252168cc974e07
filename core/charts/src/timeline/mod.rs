//! The timeline: what is known of a device's levels, and when.
//!
//! Lines are drawn only inside runs, between instants that were read. What was known at the ends of runs
//! and at marks is a line of steps; what was traced is an exact one.

mod level_of_detail;
mod levels;
mod scale;

pub use level_of_detail::LevelsOfDetail;
use levels::{PeakBar, Traces};
pub use scale::TimeScale;

use super::ChartView;
use super::device_view::{DeviceView, end_mark};
use super::m4::m4;
use gpumem_analyzer::Analysis;
use gpumem_model::recording::Recording;
use gpumem_model::units::{Bytes, Units, count};
use gpumem_scene::axis::{ByteAxis, instant_label};
use gpumem_scene::label::{Label, MEDIUM, Occupied};
use gpumem_scene::plot::{NO_RUNS, Plot, crisp, say, sheet};
use gpumem_scene::{Anchor, Face, Item, Point, Rect, Role, Scene, Target};

const TOP: f64 = 16.0;
const BOTTOM: f64 = 132.0;
const TIMES: f64 = 16.0;
const FOOT: f64 = 24.0;
const MAX_TICKS: usize = 5;
/// How long the bar of a peak is at least and at most: it is a level, not a stretch of time.
const LEAST_PEAK: f64 = 2.0;
const LONGEST_PEAK: f64 = 48.0;
/// A capacity this many times above all use would press it to the ground.
const FAR_ABOVE: f64 = 2.5;
/// Bars nearer than this draw the same picture.
const COLUMN: f64 = 1.5;

/// The time scale of the timeline that [`timeline`] draws.
pub fn time_scale(recording: &Recording, view: &ChartView) -> TimeScale {
    let plot = Plot::new(sheet(view.width, 0.0, Role::Panel).width, TOP, BOTTOM);
    TimeScale::new(recording, view.span, view.pace, (plot.left, plot.right))
}

/// The timeline of the view's device, from every sample.
pub fn timeline(recording: &Recording, analysis: &Analysis, view: &ChartView) -> Scene {
    timeline_from(&LevelsOfDetail::default(), recording, analysis, view)
}

/// The timeline of the view's device, from as many samples as can be seen.
pub fn timeline_from(
    detail: &LevelsOfDetail,
    recording: &Recording,
    analysis: &Analysis,
    view: &ChartView,
) -> Scene {
    let session = DeviceView::new(recording, analysis, view.device);
    let scale = time_scale(recording, view);
    let traces = Traces::new(&session, &scale, view, detail);
    let mut scene = sheet(view.width, BOTTOM + FOOT, Role::Panel);
    let plot = Plot::new(scene.width, TOP, BOTTOM);
    let missing = match (session.runs().next(), traces.highest) {
        (None, _) => Some(NO_RUNS.to_owned()),
        (_, None) => {
            let label = session.device_label();
            Some(format!("nothing is known of {label} in this time"))
        }
        _ => None,
    };
    if let Some(sentence) = missing {
        say(&mut scene, &sentence);
        return scene;
    }
    let highest = traces.highest.unwrap_or_default();
    let capacity = session.capacity();
    let in_view = capacity.filter(|capacity| capacity.as_f64() <= FAR_ABOVE * highest.as_f64());
    let top = highest.max(in_view.unwrap_or_default()).as_f64() * 1.06;
    let mut chart = TimelineChart {
        axis: ByteAxis::new(0.0..=top, plot.bottom, plot.top, view.units),
        plot,
        occupied: Occupied::default(),
        scene,
    };
    chart.draw_bands(&session, &scale, view);
    chart
        .plot
        .draw_axis(&mut chart.scene, &chart.axis, MAX_TICKS);
    chart.draw_ends(&session, &scale);
    chart.draw_capacity(capacity, in_view.is_some(), view.units);
    chart.draw_traces(&traces);
    chart.draw_times(&scale);
    chart.scene.description = description(&session, &scale, (highest, capacity), view.units);
    chart.scene
}

fn description(
    session: &DeviceView<'_>,
    scale: &TimeScale,
    (highest, capacity): (Bytes, Option<Bytes>),
    units: Units,
) -> String {
    let stretches = scale.stretches();
    let of = capacity.map_or(String::new(), |capacity| {
        format!(" of {}", units.size(capacity))
    });
    format!(
        "Memory of {} over {}: at most {}{of}.",
        session.device_label(),
        count(stretches.len(), "run"),
        units.size(highest),
    )
}

struct TimelineChart {
    plot: Plot,
    axis: ByteAxis,
    /// By what stands in the plot.
    occupied: Occupied,
    scene: Scene,
}

impl TimelineChart {
    /// Where each run was, and what answers to the pointer.
    fn draw_bands(&mut self, session: &DeviceView<'_>, scale: &TimeScale, view: &ChartView) {
        let top = self.plot.top - 8.0;
        let mut drawn_to = f64::NEG_INFINITY;
        let mut bands = Vec::new();
        for stretch in scale.stretches() {
            let room = self.plot.right - stretch.left;
            let width = stretch.width().max(1.0).min(room);
            let rect = Rect::new(stretch.left, top, width, self.plot.bottom - top);
            let looked_at = view.is_selected(stretch.run);
            let role = match session.role(stretch.run) {
                _ if looked_at => Role::Hover,
                Some(Role::Leak) => Role::LeakSpan,
                _ => Role::Span,
            };
            // Bands that share a pixel are one.
            if looked_at || stretch.right - drawn_to >= 0.5 {
                bands.push((rect, role));
                drawn_to = stretch.right;
            }
            self.scene.respond(rect, Target::Run(stretch.run));
        }
        // What has one colour is drawn in a row: a page paints it at once.
        for role in [Role::Span, Role::LeakSpan, Role::Hover] {
            for (rect, _) in bands.iter().filter(|(_, of)| *of == role) {
                self.scene.fill(*rect, role, 0.0);
            }
        }
    }

    fn draw_capacity(&mut self, capacity: Option<Bytes>, in_view: bool, units: Units) {
        let Some(capacity) = capacity else {
            return;
        };
        let text = format!("capacity {}", units.size(capacity));
        if !in_view {
            // How a run ended matters more: its mark has the place.
            let y = self.plot.top - 3.0;
            let [left, right] = [self.plot.left, self.plot.right].map(|x| Point::new(x, y));
            let label = Label::new(&text, right).anchor(Anchor::End);
            let labels = [label, Label::new(&text, left)];
            let free = labels.into_iter().find(|label| self.occupied.take(label));
            self.scene.items.extend(free.map(Item::Text));
            return;
        }
        let y = crisp(self.axis.y(capacity.as_f64()));
        let ends = [self.plot.left, self.plot.right].map(|x| Point::new(x, y));
        self.scene
            .line(ends.to_vec(), Role::Leak, 1.0, Some((2.0, 4.0)));
        self.write(Label::new(text, Point::new(self.plot.left + 6.0, y + 13.0)));
    }

    fn write(&mut self, label: Label) {
        self.occupied.take(&label);
        self.scene.text(label);
    }

    fn draw_traces(&mut self, traces: &Traces) {
        for (levels, role, width) in [
            (&traces.device, Role::Device, 1.2),
            (&traces.process, Role::Process, 1.6),
            (&traces.held, traces.held_role(), 1.4),
            (&traces.exact, Role::Text, 1.4),
        ] {
            for line in levels {
                let points = self.placed(line).collect();
                self.scene.line(points, role, width, None);
            }
        }
        self.draw_peaks(&traces.peaks);
    }

    fn draw_peaks(&mut self, peaks: &[PeakBar]) {
        let (wide, narrow): (Vec<_>, Vec<_>) =
            peaks.iter().partition(|peak| peak.width() > LEAST_PEAK);
        let middle = |peak: &PeakBar| {
            let x = f64::midpoint(peak.left, peak.right);
            Point::new(x, self.axis.y(peak.level.as_f64()))
        };
        let wide = wide.into_iter().map(|peak| (middle(peak), peak.width()));
        let narrow = m4(narrow.into_iter().map(middle), COLUMN);
        let narrow = narrow.into_iter().map(|middle| (middle, LEAST_PEAK));
        let bars: Vec<(Point, f64)> = wide.chain(narrow).collect();
        for (middle, width) in bars {
            let place =
                |x: f64| Point::new(x.max(self.plot.left).min(self.plot.right), crisp(middle.y));
            let (left, right) = (place(middle.x - width / 2.0), place(middle.x + width / 2.0));
            self.scene.rule(left, right, Role::Muted, 2.0);
        }
    }

    /// At the head of each run that did not end well: where, and how.
    fn draw_ends(&mut self, session: &DeviceView<'_>, scale: &TimeScale) {
        for stretch in scale.stretches() {
            let run = session.recording.run(stretch.run);
            // The word may stand over the run before, where that leaves it the room.
            let marks = [f64::INFINITY, 0.0].map(|room| end_mark(run.status, room));
            let marks = marks.into_iter().flatten();
            let x = crisp(stretch.right);
            let labels = marks.filter(|_| run.ended.is_some()).map(|(mark, role)| {
                let label = Label::new(mark, Point::new(x - 2.0, self.plot.top - 2.0))
                    .anchor(Anchor::End)
                    .face(Face::Bold)
                    .size(MEDIUM)
                    .role(role)
                    .between(self.plot.left, self.plot.right);
                (label, role)
            });
            let free = labels
                .into_iter()
                .find(|(label, _)| self.occupied.take(label));
            if let Some((label, role)) = free {
                let ends = [self.plot.top - 8.0, self.plot.bottom].map(|y| Point::new(x, y));
                self.scene.line(ends.to_vec(), role, 1.0, Some((2.0, 3.0)));
                self.scene.text(label);
            }
        }
    }

    /// Where these levels are in the picture.
    fn placed<'a>(&self, levels: &'a [Point]) -> impl Iterator<Item = Point> + use<'a, '_> {
        let place = |level: &Point| Point::new(level.x, self.axis.y(level.y));
        levels.iter().map(place)
    }

    /// Under the runs, when they began.
    fn draw_times(&mut self, scale: &TimeScale) {
        let mut occupied = Occupied::default();
        let mut last = String::new();
        let mut free_from = f64::NEG_INFINITY;
        for stretch in scale.stretches() {
            if stretch.left < free_from {
                continue;
            }
            let time = instant_label(stretch.from);
            if time == last {
                continue;
            }
            if let Some(end) = self.draw_time(&mut occupied, stretch.left, &time) {
                free_from = end + Occupied::GAP;
                last = time;
            }
        }
    }

    /// Where it ends, if there was room for it.
    fn draw_time(&mut self, occupied: &mut Occupied, x: f64, time: &str) -> Option<f64> {
        let label = Label::new(time, Point::new(x, self.plot.bottom + TIMES))
            .between(self.plot.left, self.plot.right);
        if !occupied.take(&label) {
            return None;
        }
        let x = crisp(x);
        let (top, bottom) = (self.plot.bottom, self.plot.bottom + 3.0);
        self.scene.vertical(x, (top, bottom), Role::Line, 1.0);
        let end = label.bounds().bottom_right().x;
        self.scene.text(label);
        Some(end)
    }
}

#[cfg(test)]
mod tests;
