//! What the lines and dots mean: only those that are drawn.

use super::super::label::Label;
use super::super::plot::Plot;
use super::super::scene::{Point, Role, Scene};
use super::levels::Traces;
use crate::analyze::Metric;

const LINE_HEIGHT: f64 = 16.0;
const SWATCH: f64 = 12.0;
const GAP: f64 = 18.0;

#[derive(Debug, Clone, Copy)]
enum Mark {
    Line(Role),
    Dot(Role),
    Point(Role),
    Bar,
}

/// Marks with their words.
pub(super) struct Legend(Vec<(Mark, &'static str)>);

impl Legend {
    pub(super) fn new(traces: &Traces, is_host: bool) -> Self {
        let mut entries = Vec::new();
        if !traces.device.is_empty() {
            let words = if is_host {
                "this machine, sampled"
            } else {
                "device, sampled"
            };
            entries.push((Mark::Line(Role::Device), words));
        }
        if !traces.process.is_empty() {
            let words = if is_host {
                "resident, sampled"
            } else {
                "this process, sampled"
            };
            entries.push((Mark::Line(Role::Process), words));
        }
        if !traces.exact.is_empty() {
            entries.push((Mark::Line(Role::Text), "allocated, traced"));
        }
        if !traces.inside.is_empty() {
            let words = match traces.metric {
                Metric::Allocated => "allocated, at the ends of a run",
                Metric::ProcessUsed if is_host => "resident, at the ends of a run",
                Metric::ProcessUsed => "this process, at the ends of a run",
                Metric::DeviceUsed => "device, at the ends of a run",
            };
            entries.push((Mark::Dot(traces.dots_role()), words));
        }
        if traces.inside.iter().any(|run| run.len() > 2) {
            entries.push((Mark::Point(traces.dots_role()), "at a step"));
        }
        if !traces.peaks.is_empty() {
            entries.push((Mark::Bar, "peak"));
        }
        Self(entries)
    }

    /// What it takes below its first line.
    pub(super) fn height(&self, room: f64) -> f64 {
        let last_line = self.placed(room).last().map_or(0, |(_, _, line)| *line);
        LINE_HEIGHT * last_line as f64 + 6.0
    }

    pub(super) fn draw(&self, scene: &mut Scene, plot: &Plot, baseline: f64) {
        for ((mark, words), x, line) in self.placed(plot.width()) {
            let at = Point::new(plot.left + x, baseline + LINE_HEIGHT * line as f64);
            draw_mark(scene, mark, at);
            let text = Point::new(at.x + SWATCH + 5.0, at.y);
            scene.text(Label::new(words, text).fitted(plot.right - text.x));
        }
    }

    /// Each entry with its place from the left and its line.
    fn placed(&self, room: f64) -> Vec<((Mark, &'static str), f64, usize)> {
        let (mut x, mut line) = (0.0, 0);
        let mut placed = Vec::new();
        for entry in &self.0 {
            let words = Label::new(entry.1, Point::new(0.0, 0.0)).width();
            let width = SWATCH + 5.0 + words;
            if x > 0.0 && x + width > room {
                x = 0.0;
                line += 1;
            }
            placed.push((*entry, x, line));
            x += width + GAP;
        }
        placed
    }
}

fn draw_mark(scene: &mut Scene, mark: Mark, at: Point) {
    let y = at.y - 4.0;
    let ends = [Point::new(at.x, y), Point::new(at.x + SWATCH, y)];
    let middle = Point::new(at.x + SWATCH / 2.0, y);
    match mark {
        Mark::Line(role) => scene.rule(ends[0], ends[1], role, 2.0),
        Mark::Dot(role) => scene.dot(middle, 2.2, role),
        Mark::Point(role) => scene.dot(middle, 1.0, role),
        Mark::Bar => scene.rule(ends[0], ends[1], Role::Muted, 3.0),
    }
}
