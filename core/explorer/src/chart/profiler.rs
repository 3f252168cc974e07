//! A profiler's trace over time: memory, the calls of one operator, steps and labelled ranges.

use super::write_below;
use gpumem_model::units::{ByteDelta, Nanos, Units, trimmed};
use gpumem_readers::chrome_trace::{TraceLevels, TraceRange};
use gpumem_scene::Density;
use gpumem_scene::axis::ByteAxis;
use gpumem_scene::label::Label;
use gpumem_scene::plot::{Plot, crisp, sheet, steps};
use gpumem_scene::{Anchor, Point, Rect, Role, Scene};

const LEVELS: f64 = 150.0;
const TOP: f64 = 12.0;
const GAP: f64 = 6.0;
/// Height of the strip of calls.
const CALLS: f64 = 9.0;
/// Height of a range.
const LANE: f64 = 17.0;
/// At most this many ranges lie below each other.
const MAX_LANES: usize = 8;
/// Below the plot: when it was.
const BELOW: f64 = 20.0;
const MAX_TICKS: usize = 5;
/// About the room for each label below.
const LABEL_ROOM: f64 = 120.0;
/// From here on something is written in a range.
const LEAST_WORDS: f64 = 24.0;

const LEAST_LIGHT: f64 = 4.0;

/// What is shown of a trace.
#[derive(Debug, Clone, Copy)]
pub struct ProfilerView<'a> {
    /// In logical pixels.
    pub width: f64,
    /// How fine the picture is.
    pub density: Density,
    /// Visible time in nanoseconds after the trace's start.
    pub span: (f64, f64),
    /// Part of the time that is chosen.
    pub chosen: Option<(f64, f64)>,
    /// Where the keyboard is.
    pub cursor: Option<f64>,
    /// Begin and end of each call of the operator that is marked.
    pub calls: &'a [(Nanos, Nanos)],
    /// Steps and labelled ranges, in the order of their start.
    pub ranges: &'a [TraceRange],
    /// The lane of each range, from [`lanes`].
    pub lanes: &'a [usize],
    /// How sizes are shown.
    pub units: Units,
}

/// A picture of a trace, and where its ranges are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfilerChart {
    /// The picture.
    pub scene: Scene,
    /// The ranges that are drawn, by their index.
    pub ranges: Vec<(Rect, usize)>,
}

impl ProfilerChart {
    /// The range at a point, by its index.
    pub fn at(&self, point: Point) -> Option<usize> {
        let mut ranges = self.ranges.iter();
        ranges
            .find(|(rect, _)| rect.contains(point))
            .map(|(_, idx)| *idx)
    }
}

/// In which lane each range lies, so that none covers another: as deep as it is, or deeper. Ranges beyond the
/// eighth lane are not drawn.
pub fn lanes(ranges: &[TraceRange]) -> Vec<usize> {
    let mut ends = [Nanos::new(0); MAX_LANES];
    let lane = |range: &TraceRange| {
        let free = (range.depth..MAX_LANES).find(|lane| ends[*lane] <= range.start);
        let lane = free.unwrap_or(MAX_LANES);
        if let Some(end) = ends.get_mut(lane) {
            *end = range.start + range.duration;
        }
        lane
    };
    ranges.iter().map(lane).collect()
}

/// Levels over time with the columns marked in which a call runs, the calls, and the ranges.
pub fn profiler_chart(levels: Option<&TraceLevels>, view: &ProfilerView<'_>) -> ProfilerChart {
    let n_lanes = view.lanes.iter().filter(|lane| **lane < MAX_LANES).max();
    let n_lanes = n_lanes.map_or(0, |lane| lane + 1);
    let levels_bottom = if levels.is_some() { TOP + LEVELS } else { TOP };
    let lanes_top = levels_bottom + GAP + CALLS + GAP;
    let bottom = lanes_top + n_lanes as f64 * LANE;
    let scene = sheet(view.width, bottom + BELOW, Role::Panel);
    let plot = Plot::new(scene.width, TOP, levels_bottom);
    let mut drawing = ProfilerDrawing {
        plot,
        pixel: view.density.pixel(),
        view,
        bottom,
        chart: ProfilerChart {
            scene,
            ranges: Vec::new(),
        },
    };
    drawing.choose();
    let marks = drawing.marks();
    let highest = levels.map(|levels| drawing.levels(levels, &marks));
    drawing.calls(&marks, levels_bottom + GAP);
    drawing.ranges(lanes_top);
    drawing.times();
    drawing.edges();
    drawing.describe(highest);
    drawing.chart
}

/// An instant after the trace's start, as exact as a step in nanoseconds is seen.
pub fn instant_words(at: f64, step: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let unit = units.into_iter().find(|(unit, _)| at >= *unit);
    let (unit, name) = unit.unwrap_or((1.0, "ns"));
    let mut n_decimals = 0;
    let mut one = unit;
    while one > step && n_decimals < 6 && one > 1.0 {
        one /= 10.0;
        n_decimals += 1;
    }
    format!("{} {name}", trimmed(at / unit, n_decimals))
}

struct ProfilerDrawing<'a> {
    plot: Plot,
    /// The width of a column.
    pixel: f64,
    view: &'a ProfilerView<'a>,
    bottom: f64,
    chart: ProfilerChart,
}

impl ProfilerDrawing<'_> {
    fn length(&self) -> f64 {
        (self.view.span.1 - self.view.span.0).max(1.0)
    }

    /// Where a time is, also beside the plot.
    fn x(&self, at: f64) -> f64 {
        let share = (at - self.view.span.0) / self.length();
        self.plot.left + share.clamp(-1.0, 2.0) * self.plot.width()
    }

    fn n_columns(&self) -> usize {
        (self.plot.width() / self.pixel).max(1.0) as usize
    }

    /// Where a column begins.
    fn column_x(&self, column: usize) -> f64 {
        self.plot.left + column as f64 * self.pixel
    }

    /// When a column begins.
    fn time(&self, column: usize) -> f64 {
        self.view.span.0 + column as f64 / self.n_columns() as f64 * self.length()
    }

    /// The part of the plot between two times; `None` if nothing of it is in view.
    fn between(&self, from: f64, to: f64) -> Option<(f64, f64)> {
        let left = self.x(from).max(self.plot.left);
        let right = self.x(to).min(self.plot.right);
        (left <= right).then_some((left, right))
    }

    fn choose(&mut self) {
        if let Some((from, to)) = self.view.chosen
            && let Some((left, right)) = self.between(from, to)
        {
            let rect = Rect::new(left, TOP - 4.0, right - left, self.bottom - TOP + 4.0);
            self.chart.scene.fill(rect, Role::Hover, 0.0);
        }
    }

    /// Whether a call runs in each column.
    fn marks(&self) -> Vec<bool> {
        let n_columns = self.n_columns();
        let mut changes = vec![0_i32; n_columns + 1];
        let column = |at: Nanos| {
            let share = (at.as_f64() - self.view.span.0) / self.length();
            share * n_columns as f64
        };
        for (start, end) in self.view.calls {
            let (first, last) = (column(*start), column(*end));
            if last >= 0.0 && first < n_columns as f64 {
                changes[first.max(0.0) as usize] += 1;
                changes[((last.max(0.0) as usize) + 1).min(n_columns)] -= 1;
            }
        }
        let mut n_running = 0;
        let running = changes.into_iter().take(n_columns).map(|change| {
            n_running += change;
            n_running > 0
        });
        running.collect()
    }

    /// The highest level of each column, and the highest of all.
    fn levels(&mut self, levels: &TraceLevels, marks: &[bool]) -> (ByteDelta, Option<ByteDelta>) {
        let allocated = self.columns(levels, &levels.allocated, levels.at_start);
        let has_reserved = !levels.reserved.is_empty();
        let reserved = if has_reserved {
            let first = levels.reserved.first().copied().unwrap_or_default();
            self.columns(levels, &levels.reserved, first)
        } else {
            Vec::new()
        };
        let highest = |levels: &[ByteDelta]| levels.iter().copied().max();
        let lowest = allocated.iter().copied().min().unwrap_or_default();
        let top = highest(&allocated)
            .max(highest(&reserved))
            .unwrap_or_default();
        let (view, plot) = (self.view, self.plot);
        let axis = ByteAxis::new(
            lowest.as_f64()..=top.as_f64(),
            plot.bottom,
            plot.top,
            view.units,
        );
        plot.draw_axis(&mut self.chart.scene, &axis, MAX_TICKS);
        let ground = axis.y(0.0);
        // Those of one colour in a row: they are painted as one path.
        for (is_marked, role) in [(false, Role::KeptArea), (true, Role::Kept)] {
            for (column, level) in allocated.iter().enumerate() {
                if marks[column] == is_marked {
                    let y = axis.y(level.as_f64());
                    let height = (ground - y).abs();
                    let rect = Rect::new(self.column_x(column), y.min(ground), self.pixel, height);
                    self.chart.scene.fill(rect, role, 0.0);
                }
            }
        }
        self.roof(&reserved, &axis);
        (highest(&allocated).unwrap_or_default(), highest(&reserved))
    }

    /// The highest level in each column.
    fn columns(
        &self,
        levels: &TraceLevels,
        after: &[ByteDelta],
        before: ByteDelta,
    ) -> Vec<ByteDelta> {
        let until = |at: f64| levels.times.partition_point(|time| time.as_f64() < at);
        let mut first = until(self.view.span.0);
        let columns = (0..self.n_columns()).map(|column| {
            let end = first + {
                let to = self.time(column + 1);
                levels.times[first..].partition_point(|time| time.as_f64() < to)
            };
            let held = first.checked_sub(1).map_or(before, |last| after[last]);
            let within = after[first..end].iter().copied().max();
            first = end;
            within.map_or(held, |within| within.max(held))
        });
        columns.collect()
    }

    fn roof(&mut self, reserved: &[ByteDelta], axis: &ByteAxis) {
        let points = reserved.iter().enumerate().map(|(column, level)| {
            let y = crisp(axis.y(level.as_f64()));
            Point::new(self.column_x(column), y)
        });
        let points = steps(points);
        self.chart.scene.line(points, Role::Muted, 1.5, None);
    }

    fn calls(&mut self, marks: &[bool], top: f64) {
        for (column, _) in marks
            .iter()
            .enumerate()
            .filter(|(_, is_marked)| **is_marked)
        {
            let rect = Rect::new(self.column_x(column), top, self.pixel, CALLS);
            self.chart.scene.fill(rect, Role::Kept, 0.0);
        }
        let at = Point::new(self.plot.left - 8.0, top + CALLS);
        let label = Label::new("calls", at).anchor(Anchor::End);
        self.chart.scene.text(label);
    }

    fn ranges(&mut self, top: f64) {
        let mut labels = Vec::new();
        let mut covered = [f64::MIN; MAX_LANES];
        for (idx, (range, lane)) in self.view.ranges.iter().zip(self.view.lanes).enumerate() {
            let start = range.start.as_f64();
            let Some(covered) = covered.get_mut(*lane) else {
                continue;
            };
            let Some((left, right)) = self.between(start, start + range.duration.as_f64()) else {
                continue;
            };
            // What is narrower than a pixel is drawn where nothing is yet.
            if right < *covered {
                continue;
            }
            let left = left.max(*covered);
            let width = (right - left - 1.0).max(self.pixel);
            *covered = left + width;
            let rect = Rect::new(left, top + *lane as f64 * LANE, width, LANE - 2.0);
            // What is too narrow for a light colour to be seen has that of steps.
            let is_back = range.is_step || width < LEAST_LIGHT;
            let role = if is_back { Role::Back } else { Role::KeptFill };
            self.chart.scene.fill(rect, role, 2.0);
            self.chart.ranges.push((rect, idx));
            if width > LEAST_WORDS {
                let at = Point::new(left + 4.0, rect.y + 11.5);
                let label = Label::new(&range.name, at).role(Role::Text);
                labels.push(label.legible_in(width - 8.0));
            }
        }
        for label in labels {
            self.chart.scene.text(label);
        }
    }

    fn times(&mut self) {
        let n_labels = (self.plot.width() / LABEL_ROOM).clamp(1.0, 8.0) as usize;
        let step = self.length() / n_labels as f64 / 20.0;
        let (start, length) = (self.view.span.0, self.length());
        let words = |share: f64| instant_words(start + share * length, step);
        let scene = &mut self.chart.scene;
        write_below(scene, self.plot, self.bottom + 14.0, n_labels, words);
    }

    /// Lines where the chosen part begins and ends, and where the keyboard is.
    fn edges(&mut self) {
        let chosen = self.view.chosen.into_iter();
        let edges = chosen.flat_map(|(from, to)| [(from, (3.0, 2.0)), (to, (3.0, 2.0))]);
        let cursor = self.view.cursor.map(|at| (at, (1.0, 2.0)));
        for (at, dash) in edges.chain(cursor) {
            if self.between(at, at).is_some() {
                let x = crisp(self.x(at));
                let points = vec![Point::new(x, TOP - 4.0), Point::new(x, self.bottom)];
                self.chart.scene.line(points, Role::Text, 1.0, Some(dash));
            }
        }
    }

    fn describe(&mut self, highest: Option<(ByteDelta, Option<ByteDelta>)>) {
        let (from, to) = self.view.span;
        let step = self.length() / 1000.0;
        let words = |at: f64| match at {
            0.0 => "0".to_owned(),
            at => instant_words(at, step),
        };
        let mut parts = Vec::new();
        if let Some((allocated, reserved)) = highest {
            let size = |level| level_words(level, self.view.units);
            parts.push(format!("allocated at most {}", size(allocated)));
            parts.extend(reserved.map(|level| format!("reserved at most {}", size(level))));
        }
        if !self.view.calls.is_empty() {
            let calls = gpumem_model::units::count(self.view.calls.len(), "call");
            parts.push(format!("{calls} marked"));
        }
        if !self.view.ranges.is_empty() {
            parts.push(gpumem_model::units::count(self.view.ranges.len(), "range"));
        }
        let span = format!("{} to {}", words(from), words(to));
        self.chart.scene.description = format!("{span}: {}", parts.join("; "));
    }
}

/// A level; with a sign if it is below zero.
fn level_words(level: ByteDelta, units: Units) -> String {
    if level < ByteDelta::ZERO {
        units.change(level)
    } else {
        units.size(level.magnitude())
    }
}
