//! The picture of one long run.

use super::course::IterationLevels;
use super::looks::InsideLook;
use super::scale::{Scale, time_ticks};
use super::{LongRun, unit};
use crate::columns::columns;
use gpumem_analyzer::LoopPlace;
use gpumem_model::units::{Bytes, Units, count};
use gpumem_scene::axis::ByteAxis;
use gpumem_scene::hatch::stripes_below;
use gpumem_scene::label::{Label, Occupied};
use gpumem_scene::plot::{Plot, crisp, sheet};
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene, Target};

/// A picture that is less wide has less in it.
const NARROW: f64 = 560.0;
const HEIGHT: f64 = 232.0;
const NARROW_HEIGHT: f64 = 210.0;
const TOP: f64 = 24.0;
/// Below the plot: both axes.
const BELOW: f64 = 46.0;
/// To the right of the plot: what stands at its end.
const BESIDE: f64 = 112.0;
const NARROW_BESIDE: f64 = 18.0;
/// From the axis of iterations to that of time.
const TIME: f64 = 27.0;
const MAX_TICKS: usize = 4;
/// A tick that is nearer to the end or to the forecast is left out.
const BETWEEN_TICKS: f64 = 34.0;
/// A forecast farther ahead than this many times the iterations so far is written, not drawn.
const FAR: f64 = 3.0;
/// Of more looks than this, those stand out at which the iterations had doubled.
const MANY_LOOKS: usize = 8;
/// Passes of an outer loop are numbered if each is this wide.
const PASS: f64 = 18.0;
/// Iterations of an inner loop have ticks if each is this wide.
const INNER: f64 = 4.0;
const DOT: f64 = 4.0;

pub(super) fn scene(run: &LongRun<'_>, width: f64, units: Units) -> Scene {
    let mut drawing = LongRunDrawing::new(run, width, units);
    drawing.draw_grid();
    drawing.draw_levels();
    drawing.draw_forecast();
    drawing.draw_iterations();
    drawing.draw_time();
    drawing.write_beside();
    drawing.draw_looks();
    drawing.write_names();
    drawing.draw_now();
    drawing.describe();
    drawing.scene
}

/// Where iterations stand in a picture of that width.
pub(super) fn scale(run: &LongRun<'_>, width: f64) -> Scale {
    LongRunDrawing::new(run, width, Units::default()).scale
}

struct LongRunDrawing<'a> {
    run: &'a LongRun<'a>,
    course: &'a IterationLevels,
    scene: Scene,
    plot: Plot,
    axis: ByteAxis,
    scale: Scale,
    taken: Occupied,
    units: Units,
    is_narrow: bool,
    /// The capacity, if the axis goes up to it.
    capacity: Option<Bytes>,
    /// What stands at the bottom of the axis.
    floor: Bytes,
    /// Where the device is full, if that is drawn, and how it is shown.
    full: Option<(f64, u64)>,
}

impl<'a> LongRunDrawing<'a> {
    fn new(run: &'a LongRun<'a>, width: f64, units: Units) -> Self {
        let course = &run.course;
        let is_narrow = width < NARROW;
        let height = if is_narrow { NARROW_HEIGHT } else { HEIGHT };
        let scene = sheet(width, height, Role::Panel);
        let mut plot = Plot::new(scene.width, TOP, height - BELOW);
        let beside = if is_narrow { NARROW_BESIDE } else { BESIDE };
        plot.right = scene.width - beside;
        let n_all = course.n_all as f64;
        let full = run
            .full_at()
            .filter(|(at, _)| *at <= FAR * n_all || run.is_running());
        let capacity = run.capacity.filter(|_| full.is_some() || run.is_running());
        let highest = course
            .levels()
            .chain(run.inner.iter().flat_map(IterationLevels::levels))
            .max();
        let highest = highest.max(capacity).unwrap_or_default();
        let floor = if capacity.is_some() {
            Bytes::ZERO
        } else {
            run.base
        };
        let lowest = course.levels().min().unwrap_or(floor).min(floor);
        let range = lowest.since(floor).as_f64()..=highest.since(floor).as_f64();
        Self {
            run,
            course,
            axis: ByteAxis::new(range, plot.bottom, plot.top, units),
            scale: Scale {
                left: plot.left,
                right: plot.right,
                end: full.map_or(n_all, |(at, _)| at),
            },
            scene,
            plot,
            taken: Occupied::default(),
            units,
            is_narrow,
            capacity,
            floor,
            full,
        }
    }

    fn x(&self, iteration: f64) -> f64 {
        self.scale.x(iteration)
    }

    fn y(&self, level: Bytes) -> f64 {
        self.axis.y(level.since(self.floor).as_f64())
    }

    /// Where the last iteration ended.
    fn end(&self) -> Point {
        let x = self.x(self.course.n_all as f64);
        Point::new(x, self.y(self.course.last_level()))
    }

    const fn line(&self) -> Role {
        if self.run.is_leak {
            Role::Leak
        } else {
            Role::Kept
        }
    }

    const fn area(&self) -> Role {
        if self.run.is_leak {
            Role::LeakFill
        } else {
            Role::KeptFill
        }
    }

    const fn text_role(&self) -> Role {
        if self.run.is_leak {
            Role::LeakText
        } else {
            Role::Kept
        }
    }

    /// Writes a label if its place is free.
    fn write(&mut self, label: Label) -> bool {
        let is_free = self.taken.take(&label);
        if is_free {
            self.scene.text(label);
        }
        is_free
    }

    fn draw_grid(&mut self) {
        self.plot.draw_axis(&mut self.scene, &self.axis, MAX_TICKS);
        let Some(capacity) = self.capacity else {
            return;
        };
        let y = crisp(self.y(capacity));
        let ends = (self.plot.left, self.plot.right);
        self.scene.horizontal(y, ends, Role::Text, 1.5);
        let is_near = |tick: &f64| (self.axis.y(*tick) - y).abs() <= 14.0;
        if !self.axis.ticks(MAX_TICKS).iter().any(is_near) {
            let at = Point::new(self.plot.left - 8.0, y + 4.0);
            let label = Label::new(self.units.size(capacity), at);
            self.scene.text(label.anchor(Anchor::End));
        }
        // What was there before the run.
        let top = self.y(self.run.base);
        let (width, height) = (self.plot.width(), self.plot.bottom - top);
        let rect = Rect::new(self.plot.left, top, width, height);
        self.scene.fill(rect, Role::KeptArea, 0.0);
    }

    /// The line of the levels, from left to right: each holds until the next is known.
    fn steps(&self) -> Vec<(f64, Bytes)> {
        let first = (0.0, self.course.start);
        let points = self.course.points.iter().map(|it| (it.iteration, it.level));
        let levels = std::iter::once(first).chain(points);
        let levels = levels.map(|(n, level)| (self.x(n), level.as_f64()));
        let shown = columns(&levels.collect::<Vec<_>>()).into_iter();
        let shown = shown.map(|(x, level)| (x, Bytes::new(level as u64)));
        shown.collect()
    }

    fn draw_levels(&mut self) {
        let (end, steps) = (self.end(), self.steps());
        let base = self.y(self.run.base);
        let mut line = Vec::new();
        for (idx, (x, level)) in steps.iter().enumerate() {
            let right = steps.get(idx + 1).map_or(end.x, |(x, _)| *x).min(end.x);
            let (left, y) = (x.min(end.x), self.y(*level));
            // At whole pixels, so that no seam is seen between two.
            let (from, to) = (left.round(), right.round());
            let area = Rect::new(from, y.min(base), to - from, (base - y).abs());
            if area.width > 0.0 {
                self.scene.fill(area, self.area(), 0.0);
            }
            line.extend([Point::new(left, y), Point::new(right, y)]);
        }
        self.draw_teeth();
        self.scene.line(line, self.line(), 2.0, None);
        if self.run.inner.is_some() && self.is_by_pass() {
            for point in &self.course.points {
                let at = Point::new(self.x(point.iteration), self.y(point.level));
                self.scene.dot(at, 2.5, self.line());
            }
        }
    }

    /// What the inner loop held above the level, and gave back by the end of each pass.
    fn draw_teeth(&mut self) {
        let Some(inner) = &self.run.inner else { return };
        let at = |n: f64| self.course.iteration_in_run(inner.instant(n));
        let mut teeth = Vec::new();
        for (idx, point) in inner.points.iter().enumerate() {
            let from = at(point.iteration);
            let passes = &self.course.points;
            let pass = passes.get(passes.partition_point(|it| it.iteration <= from));
            let ends = pass.map_or(self.scale.end, |it| it.iteration);
            let next = inner.points.get(idx + 1);
            let next = next.map_or(ends, |it| at(it.iteration));
            let (left, right) = (self.x(from), self.x(next.min(ends)));
            let (top, bottom) = (self.y(point.level), self.y(self.course.level(from)));
            if right > left && bottom > top {
                teeth.push(Rect::new(left, top, right - left, bottom - top));
            }
        }
        for tooth in &teeth {
            self.scene.fill(*tooth, Role::Back, 0.0);
        }
        for pass in teeth.chunk_by(|a, b| (a.x + a.width - b.x).abs() < 0.01) {
            let edge = |it: &Rect| [Point::new(it.x, it.y), Point::new(it.x + it.width, it.y)];
            let line = pass.iter().flat_map(edge).collect();
            self.scene.line(line, Role::BackCap, 1.2, None);
        }
    }

    /// The passes of an outer loop are few enough to be numbered.
    fn is_by_pass(&self) -> bool {
        let is_wide = self.x(1.0) - self.plot.left >= PASS;
        self.run.inner.is_some() && self.full.is_none() && is_wide
    }

    fn draw_forecast(&mut self) {
        let (Some((full, _)), Some(capacity)) = (self.full, self.capacity) else {
            return;
        };
        let (from, to) = (self.end(), Point::new(self.x(full), self.y(capacity)));
        let (base, area) = (self.y(self.run.base), self.area());
        stripes_below(&mut self.scene, (from, to), base, area);
        self.scene
            .line(vec![from, to], self.line(), 2.0, Some((5.0, 3.0)));
        let foot = Point::new(from.x, self.plot.bottom);
        self.scene
            .line(vec![from, foot], Role::Muted, 1.0, Some((2.0, 3.0)));
        self.scene.dot(to, DOT, self.line());
        let words = if self.is_narrow {
            "if it goes on"
        } else {
            "if it goes on as it did"
        };
        let middle = from.towards(to, 0.5);
        let at = Point::new(middle.x, f64::midpoint(middle.y, base) + 4.0);
        let label = Label::new(words, at).anchor(Anchor::Middle);
        let bounds = label.bounds();
        if bounds.width + 8.0 < to.x - from.x && base - middle.y > 28.0 {
            let behind = Rect::new(bounds.x - 3.0, bounds.y - 2.0, bounds.width + 6.0, 15.0);
            self.scene.fill(behind, Role::Panel, 2.0);
            self.write(label);
        }
    }

    /// The axis of iterations: the forecast and the end first, then what has room beside them.
    fn draw_iterations(&mut self) {
        let bottom = self.plot.bottom;
        let end = self.end().x;
        if self.is_by_pass() {
            return self.draw_passes();
        }
        let baseline = bottom + 15.0;
        let mut fixed = vec![end];
        if let Some((full, shown)) = self.full {
            let at = Point::new(self.x(full), baseline);
            let label = Label::new(shown.to_string(), at)
                .face(Face::Bold)
                .role(self.text_role());
            self.write(label.anchor(Anchor::Middle).between(0.0, self.scene.width));
            fixed.push(at.x);
        }
        let n_all = self.course.n_all;
        let long = if self.run.is_running() {
            "now"
        } else {
            "its end"
        };
        for words in [format!("{n_all}, {long}"), n_all.to_string()] {
            let label = Label::new(words, Point::new(end, baseline)).face(Face::Bold);
            let label = label.role(Role::Text).anchor(Anchor::Middle);
            if self.write(label.between(self.plot.left, self.scene.width)) {
                break;
            }
        }
        self.name_axis("", baseline);
        for tick in self.scale.ticks() {
            let x = self.x(tick);
            let is_near = fixed.iter().any(|it| (it - x).abs() < BETWEEN_TICKS);
            if is_near || (self.is_narrow && tick > 0.0) {
                continue;
            }
            let label = Label::new(format!("{tick:.0}"), Point::new(x, baseline));
            if self.write(label.anchor(Anchor::Middle)) {
                self.tick(x, (bottom, 4.0));
            }
        }
        for x in fixed {
            self.tick(x, (bottom, 4.0));
        }
    }

    /// A pass of the outer loop from one long tick to the next, with its number between them.
    fn draw_passes(&mut self) {
        let bottom = self.plot.bottom;
        let n_all = self.course.n_all;
        let n_inner = self.run.inner.as_ref().map_or(0, |inner| inner.n_all);
        let inner = n_inner / n_all.max(1);
        let step = (self.x(1.0) - self.plot.left) / inner.max(1) as f64;
        if inner > 1 && step >= INNER {
            for n in 0..n_all * inner {
                self.tick(self.plot.left + step * n as f64, (bottom, 2.0));
            }
        }
        let baseline = bottom + 15.0;
        for n in 0..=n_all {
            self.tick(self.x(n as f64), (bottom, 5.0));
        }
        for n in 1..=n_all {
            let at = Point::new(self.x(n as f64 - 0.5), baseline);
            self.write(Label::new(n.to_string(), at).anchor(Anchor::Middle));
        }
        let more = if inner > 1 {
            format!(" ({inner} inside)")
        } else {
            String::new()
        };
        self.name_axis(&more, baseline);
    }

    fn name_axis(&mut self, more: &str, baseline: f64) {
        if !self.is_narrow {
            let words = format!("{}{more}", self.run.unit());
            let at = Point::new(self.scene.width, baseline);
            self.write(Label::new(words, at).anchor(Anchor::End));
        }
    }

    fn tick(&mut self, x: f64, (top, length): (f64, f64)) {
        let x = crisp(x).min(self.scene.width);
        self.scene
            .vertical(x, (top, top + length), Role::Device, 1.0);
    }

    /// The axis of time follows that of iterations: its ticks need not be even.
    fn draw_time(&mut self) {
        let y = crisp(self.plot.bottom + TIME);
        let ends = (self.plot.left, self.plot.right);
        self.scene.horizontal(y, ends, Role::Device, 1.0);
        let baseline = y + 14.0;
        if !self.is_narrow {
            let at = Point::new(self.scene.width, baseline);
            self.write(Label::new("time", at).anchor(Anchor::End));
        }
        let started = self.run.run.started;
        let [from, to] = [0.0, self.scale.end].map(|n| self.course.instant(n));
        let mut left = f64::NEG_INFINITY;
        for (after, words) in time_ticks(to.since(started)) {
            let at = started + after;
            let x = self.x(self.course.iteration(at));
            let is_before = at < from && after.as_f64() * 20.0 < from.since(started).as_f64();
            if is_before || x - left < BETWEEN_TICKS || x > self.plot.right + 1.0 {
                continue;
            }
            let label = Label::new(words, Point::new(x, baseline)).anchor(Anchor::Middle);
            if self.write(label.between(0.0, self.scene.width)) {
                self.tick(x, (y, 3.0));
                left = x;
            }
        }
    }

    /// What stands at the right end of the plot, or above it.
    fn write_beside(&mut self) {
        let (right, role) = (self.plot.right + 9.0, self.text_role());
        let bold = |words: String, at: Point| Label::new(words, at).face(Face::Bold).role(role);
        if let (Some((_, shown)), Some(capacity)) = (self.full, self.capacity) {
            let y = self.y(capacity);
            if self.is_narrow {
                let at = Point::new(self.plot.right, y - 9.0);
                let label = bold(format!("full at about {shown}"), at);
                self.write(label.anchor(Anchor::End));
            } else {
                self.write(bold("full at".to_owned(), Point::new(right, y)));
                self.write(bold(format!("about {shown}"), Point::new(right, y + 14.0)));
            }
        }
        if self.is_narrow {
            return;
        }
        if self.capacity.is_some() {
            let words = format!("all else {}", self.units.size(self.run.base));
            let at = Point::new(right, self.plot.bottom + 1.0);
            self.write(Label::new(words, at));
        }
        if self.full.is_none() {
            let y = self
                .end()
                .y
                .clamp(self.plot.top + 10.0, self.plot.bottom - 26.0);
            let kept = self.course.last_level().since(self.run.base);
            let so_far = match kept.get() {
                0.. => format!("kept {}", self.units.size(kept.magnitude())),
                _ => format!("kept {}", self.units.change(kept)),
            };
            self.write(bold(so_far, Point::new(right, y)));
            let rate = self.run.growth().map(|growth| growth.series.bytes_per_run);
            if let Some(rate) = rate {
                let each = format!("{} each", self.units.change(rate));
                self.write(bold(each, Point::new(right, y + 14.0)));
            }
        }
    }

    /// The looks that have words: of many, the first, the last, and each at which the iterations had doubled.
    fn with_words(&self) -> Vec<usize> {
        let looks = self.run.looks();
        let (mut shown, mut last) = (Vec::new(), 0);
        for (idx, look) in looks.iter().enumerate() {
            let is_shown = looks.len() <= MANY_LOOKS || look.iteration >= 2 * last;
            if is_shown || idx + 1 == looks.len() {
                shown.push(idx);
                last = look.iteration;
            }
        }
        shown
    }

    /// A circle on the level for each look; of labels that would meet, the earlier goes.
    fn draw_looks(&mut self) {
        let run = self.run;
        let plot = Rect::new(
            self.plot.left,
            self.plot.top,
            (self.end().x - self.plot.left).max(0.0),
            self.plot.bottom - self.plot.top,
        );
        self.scene.respond(plot, Target::Run(run.run()));
        let places: Vec<Point> = run.looks().iter().map(|look| self.place(look)).collect();
        let with_words = self.with_words();
        for (idx, at) in places.iter().enumerate() {
            self.scene.dot(*at, DOT + 1.0, self.line());
            self.scene.dot(*at, DOT - 1.0, Role::Panel);
            self.scene
                .respond(Rect::around(*at, 10.0), Target::Look(idx));
        }
        for idx in with_words.into_iter().rev() {
            self.write_look(&run.looks()[idx], places[idx]);
        }
    }

    fn place(&self, look: &InsideLook) -> Point {
        let iteration = self.course.iteration_in_run(look.at);
        Point::new(self.x(iteration), self.y(self.course.level(iteration)))
    }

    fn write_look(&mut self, look: &InsideLook, at: Point) {
        let Some(holder) = look.holders.first() else {
            return;
        };
        let size = self.units.size(holder.n_bytes);
        let lines = match holder.n_shown() {
            n if n.is_empty() => vec![size],
            n if self.is_narrow => vec![n],
            n => vec![n, size],
        };
        let line = |idx: usize, at: Point, anchor: Anchor| {
            let label = Label::new(&lines[idx], at).anchor(anchor);
            let label = if idx == 0 {
                label.face(Face::Bold).role(Role::Text)
            } else {
                label
            };
            label.between(self.plot.left + 2.0, self.scene.width)
        };
        let above = |dx: f64, lowest: f64, anchor: Anchor| {
            let place = |idx: usize| {
                let above = 13.0 * (lines.len() - 1 - idx) as f64;
                line(idx, Point::new(at.x + dx, at.y - lowest - above), anchor)
            };
            (0..lines.len()).map(place).collect::<Vec<_>>()
        };
        let is_free = |labels: &Vec<Label>| labels.iter().all(|label| self.is_above_line(label));
        let centred = Some(above(0.0, 12.0, Anchor::Middle)).filter(|_| !self.is_narrow);
        let labels = centred.filter(is_free);
        let labels = labels.or_else(|| Some(above(-8.0, 6.0, Anchor::End)).filter(is_free));
        for label in labels.into_iter().flatten() {
            self.write(label);
        }
    }

    /// It stands over the levels, and in the picture.
    fn is_above_line(&self, label: &Label) -> bool {
        let bounds = label.bounds();
        let ends = [bounds.x, bounds.x + bounds.width].map(|x| self.scale.iteration(x));
        let level = ends.map(|n| self.course.level(n));
        let inner = self.run.inner.iter().flat_map(|inner| {
            let at = |n: f64| self.course.iteration_in_run(inner.instant(n));
            let points = inner.points.iter();
            let below = points.filter(move |it| (ends[0]..=ends[1]).contains(&at(it.iteration)));
            below.map(|it| it.level)
        });
        let highest = level.into_iter().chain(inner).max().unwrap_or_default();
        bounds.y > 0.0 && bounds.y + bounds.height < self.y(highest) - 2.0
    }

    /// The name that grows, in its area, and what the teeth are.
    fn write_names(&mut self) {
        let looks = self.run.looks().iter().rev();
        let holders = looks.filter_map(|look| look.holders.first());
        let of_finding = self.run.finding.and_then(|it| it.holders.first());
        let name = of_finding.map(|it| it.name.clone());
        let name = name.or_else(|| holders.map(|it| it.name.clone()).next());
        let n_all = self.course.n_all as f64;
        for share in [0.7, 0.85, 0.55] {
            let Some(name) = &name else { break };
            let top = self.y(self.course.level(n_all * share));
            let base = self.y(self.run.base);
            let at = Point::new(self.x(n_all * share), f64::midpoint(top, base) + 4.0);
            let label = Label::new(name, at).face(Face::Mono).role(Role::Text);
            let label = label.anchor(Anchor::Middle).fitted(0.4 * self.x(n_all));
            if base - top > 26.0 && self.write(label.between(self.plot.left + 4.0, self.end().x)) {
                break;
            }
        }
        self.write_teeth();
    }

    /// `line 2: 420 MiB, given back`.
    fn write_teeth(&mut self) {
        let (Some(inner), false) = (&self.run.inner, self.is_narrow) else {
            return;
        };
        let height = |it: &super::course::IterationLevel| {
            let n = self.course.iteration_in_run(inner.instant(it.iteration));
            (it.level.saturating_sub(self.course.level(n)), n, it.level)
        };
        let until = 0.75 * self.course.n_all as f64;
        let teeth = inner.points.iter().map(height);
        let teeth = teeth.filter(|(_, n, _)| *n < until);
        let Some((tooth, n, level)) = teeth.max_by_key(|(tooth, ..)| *tooth) else {
            return;
        };
        if tooth == Bytes::ZERO {
            return;
        }
        let name = self.run.inner_loop.map(|it| LoopPlace::new(it).name());
        let (name, size) = (name.unwrap_or_default(), self.units.size(tooth));
        let lines = [
            format!("{name}: {size}, given back"),
            format!("at the end of each {}", self.run.unit()),
        ];
        let tip = Point::new(self.x(n), self.y(level));
        let at = Point::new(tip.x - 40.0, (tip.y - 34.0).max(self.plot.top + 8.0));
        let labels = [0.0, 1.0].map(|n| Point::new(at.x, at.y + 13.0 * n));
        let labels = [0, 1].map(|idx| Label::new(&lines[idx], labels[idx]).anchor(Anchor::End));
        let is_inside = labels.iter().all(|it| {
            let bounds = it.bounds();
            bounds.x > self.plot.left && bounds.y + bounds.height < tip.y
        });
        if !is_inside {
            return;
        }
        let from = Point::new(at.x + 4.0, at.y + 4.0);
        self.scene.line(vec![from, tip], Role::Muted, 1.0, None);
        for label in labels {
            self.write(label);
        }
    }

    /// A dot at the level of an ongoing run.
    fn draw_now(&mut self) {
        if self.run.is_running() {
            let end = self.end();
            self.scene.dot(end, DOT + 4.0, self.area());
            self.scene.dot(end, DOT + 1.0, self.line());
        }
    }

    fn describe(&mut self) {
        let (run, units) = (self.run, self.units);
        let number = run.run.execution_count;
        let cell = number.map_or("the run".to_owned(), |n| format!("In [{n}]"));
        let n_all = usize::try_from(self.course.n_all).unwrap_or(usize::MAX);
        let n = count(n_all, unit(run.counted));
        let size = |level: Bytes| units.size(level);
        let held = format!(
            "What {cell} held over {n}: from {} to {}",
            size(self.course.start),
            size(self.course.last_level())
        );
        let full = run
            .full_at()
            .map(|(_, shown)| format!("at about {shown} the device would be full"));
        let looks = run.looks().iter().filter_map(|look| {
            let holder = look.holders.first()?;
            let what = holder.count_and_size(units);
            Some(format!("at {} {} {what}", look.iteration, holder.name))
        });
        let looks: Vec<String> = looks.collect();
        let looks = (!looks.is_empty()).then(|| format!("looks: {}", looks.join("; ")));
        let parts: Vec<String> = std::iter::once(held).chain(full).chain(looks).collect();
        self.scene.description = parts.join("; ") + ".";
    }
}
