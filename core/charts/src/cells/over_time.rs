//! All cells over time: from zero to the capacity, with leaks at the bottom.

use super::super::columns::{columns, highest};
use super::level::{CellPoint, TransientUse};
use super::{CellChart, CellLayout};
use gpumem_model::units::{ByteDelta, Bytes, Units, count};
use gpumem_scene::axis::ByteAxis;
use gpumem_scene::hatch::hatch;
use gpumem_scene::label::{Label, MEDIUM, Occupied, SMALL};
use gpumem_scene::plot::{NO_RUNS, crisp, say, sheet};
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};

const TOP: f64 = 24.0;
const BOTTOM: f64 = 124.0;
const FOOT: f64 = 24.0;
/// Between two names at the right edge.
const NAME_LINE: f64 = 14.0;
const SWATCH: f64 = 9.0;
const LEADER: f64 = 9.0;
/// Between two numbers of runs.
const NUMBER: f64 = 46.0;
/// A tick this near to the capacity would overlap its label.
const NEAR: f64 = 0.86;
/// Above the highest level, where the capacity is not known.
const ABOVE: f64 = 1.1;
const WIDEST_BLOCK: f64 = 10.0;

/// A part of the device's memory now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldingBand {
    /// `leaks`, `kept`, `cache`, `free`.
    pub name: &'static str,
    /// Its bytes.
    pub size: Bytes,
    pub(super) role: Role,
}

/// The device's memory now, from the bottom up. Leaks are part of what is kept, and come first.
pub(super) fn bands(cells: &CellChart) -> Vec<HoldingBand> {
    let last = cells.levels.last();
    let Some((last, level)) = last.and_then(|last| Some((last, last.level?))) else {
        return Vec::new();
    };
    let size = |n_bytes: f64| ByteDelta::from_f64(n_bytes.max(0.0)).magnitude();
    let free = cells.capacity.map_or(0.0, |it| it - level - last.cache);
    let bands = [
        ("leaks", last.leaks, Role::Leak),
        ("kept", level - last.leaks, Role::KeptArea),
        ("cache", last.cache, Role::CacheArea),
        ("free", free, Role::Panel),
    ];
    let bands = bands.into_iter().map(|(name, n_bytes, role)| HoldingBand {
        name,
        size: size(n_bytes),
        role,
    });
    bands.filter(|band| band.size > Bytes::ZERO).collect()
}

pub(super) fn scene(cells: &CellChart, layout: CellLayout, units: Units) -> Scene {
    let mut scene = sheet(layout.width, BOTTOM + FOOT, Role::Panel);
    let highest = highest_level(cells);
    let missing = match (cells.slots.runs().is_empty(), highest) {
        (true, _) => Some(NO_RUNS.to_owned()),
        (_, None) => {
            let device = &cells.device;
            Some(format!("what these runs kept on {device} is not known"))
        }
        _ => None,
    };
    if let Some(sentence) = missing {
        say(&mut scene, &sentence);
        return scene;
    }
    let highest = highest.unwrap_or_default();
    let top = cells.capacity.filter(|capacity| *capacity >= highest);
    let top = top.unwrap_or(highest * ABOVE);
    let mut chart = OverTimeChart {
        cells,
        left: layout.chart_left(),
        right: layout.chart_right().min(scene.width),
        axis: ByteAxis::new(0.0..=top, BOTTOM, TOP, units),
        units,
        occupied: Occupied::default(),
        labels: Vec::new(),
        scene,
    };
    chart.draw_axis(layout, top);
    chart.draw_areas();
    chart.draw_given_back();
    chart.draw_line();
    for label in std::mem::take(&mut chart.labels) {
        chart.scene.text(label);
    }
    chart.draw_running();
    chart.draw_numbers();
    chart.draw_ooms();
    if !layout.is_narrow() {
        chart.draw_bands();
    }
    chart.scene.description = description(cells, units);
    chart.scene
}

fn highest_level(cells: &CellChart) -> Option<f64> {
    let levels = cells.levels.iter();
    let levels = levels.filter_map(|point| Some(point.level? + point.cache));
    let peaks = cells.given_back.iter().map(|back| back.to);
    let before = cells.before.iter().map(|(_, level)| *level);
    levels.chain(peaks).chain(before).reduce(f64::max)
}

fn description(cells: &CellChart, units: Units) -> String {
    let n_runs = count(cells.slots.runs().len(), "run");
    let bands = bands(cells).into_iter();
    let bands = bands.map(|band| format!("{} {}", band.name, units.size(band.size)));
    let bands: Vec<String> = bands.collect();
    let of = cells.capacity.map_or(String::new(), |capacity| {
        let capacity = ByteDelta::from_f64(capacity).magnitude();
        format!(" of {}", units.size(capacity))
    });
    let ooms = match cells.ooms.len() {
        0 => String::new(),
        1 => " One run ran out of memory.".to_owned(),
        n => format!(" {n} runs ran out of memory."),
    };
    format!(
        "What {} holds{of} after each of {n_runs}. Now: {}.{ooms}",
        cells.device,
        bands.join(", ")
    )
}

/// A size that is drawn over time.
type LevelOf = fn(&CellPoint) -> f64;

struct OverTimeChart<'a> {
    cells: &'a CellChart,
    left: f64,
    right: f64,
    axis: ByteAxis,
    units: Units,
    /// Above the plot.
    occupied: Occupied,
    /// Labels at the lines, over the areas.
    labels: Vec<Label>,
    scene: Scene,
}

impl OverTimeChart<'_> {
    fn x(&self, at: f64) -> f64 {
        self.left + at * (self.right - self.left)
    }

    /// The places and sizes of a line through what is known.
    fn levels(&self, size: LevelOf) -> Vec<(f64, f64)> {
        let known = self.cells.levels.iter().filter(|it| it.level.is_some());
        known.map(|point| (point.at, size(point))).collect()
    }

    /// From the highest to the lowest: each covers the lower part of the one before.
    fn draw_areas(&mut self) {
        let areas: [(LevelOf, Role); 3] = [
            (CellPoint::with_cache, Role::CacheArea),
            (CellPoint::in_use, Role::KeptArea),
            (|point| point.leaks, Role::Leak),
        ];
        let has_cache = self.cells.levels.iter().any(|point| point.cache > 0.0);
        for (size, role) in areas.into_iter().skip(usize::from(!has_cache)) {
            let line = self.steps(self.levels(size));
            for ends in line.chunks_exact(2) {
                let (from, to) = (ends[0], ends[1]);
                if BOTTOM - from.y > 0.2 && to.x > from.x {
                    let area = Rect::new(from.x, from.y, to.x - from.x, BOTTOM - from.y);
                    self.scene.fill(area, role, 0.0);
                }
            }
        }
    }

    fn draw_line(&mut self) {
        let line = self.steps(self.levels(CellPoint::in_use));
        self.scene.line(line, Role::Kept, 1.2, None);
        let before = self.steps(self.cells.before.clone());
        self.scene.line(before, Role::Text, 1.4, Some((4.0, 3.0)));
    }

    /// A step line: both ends of each step.
    fn steps(&self, mut levels: Vec<(f64, f64)>) -> Vec<Point> {
        for (at, _) in &mut levels {
            *at = self.x(*at).min(self.right);
        }
        let levels = columns(&levels);
        let mut line = Vec::new();
        for (idx, (x, size)) in levels.iter().enumerate() {
            let right = levels.get(idx + 1).map_or(self.right, |(next, _)| *next);
            let y = self.axis.y(*size);
            line.push(Point::new(x.min(self.right), y));
            line.push(Point::new(right.min(self.right), y));
        }
        line
    }

    fn draw_given_back(&mut self) {
        let backs = &self.cells.given_back;
        let slot = |back: &TransientUse| back.extent.1 - back.extent.0;
        let narrowest = backs.iter().map(slot).fold(1.0, f64::min);
        let width = (narrowest * (self.right - self.left) * 0.7).clamp(2.0, WIDEST_BLOCK);
        let tops = backs.iter().map(|back| (self.x(back.at), back.to));
        let tops = highest(&tops.collect::<Vec<_>>());
        let mut caps = Vec::new();
        let mut from = backs.iter();
        for (x, to) in tops {
            let back = from.find(|back| self.x(back.at) >= x - 1e-9);
            let bottom = self.axis.y(back.map_or(0.0, |back| back.from));
            let top = self.axis.y(to).max(TOP);
            let left = (x - width / 2.0).max(self.left).min(self.right - width);
            if bottom - top >= 1.0 {
                let block = Rect::new(left, top, width, bottom - top);
                self.scene.fill(block, Role::Back, 0.0);
                caps.push(Rect::new(left, top, width, 1.5));
            }
        }
        for cap in caps {
            self.scene.fill(cap, Role::BackCap, 0.0);
        }
    }

    /// Lines at nothing, at the middle and at the capacity, with what stands at them; the areas stand on the
    /// lower ones.
    fn draw_axis(&mut self, layout: CellLayout, top: f64) {
        let mut ticks = self.axis.ticks(3);
        ticks.retain(|tick| *tick < NEAR * top);
        ticks.extend(self.cells.capacity.map(|_| top));
        for tick in ticks {
            let y = crisp(self.axis.y(tick));
            let is_capacity = self.cells.capacity.is_some() && tick >= top;
            let (role, width) = if is_capacity {
                (Role::Text, 1.5)
            } else {
                (Role::Line, 1.0)
            };
            let ends = (self.left, self.right);
            self.scene.horizontal(y, ends, role, width);
            let (at, anchor) = if layout.is_narrow() {
                (Point::new(self.left + 2.0, y - 3.0), Anchor::Start)
            } else {
                (Point::new(self.left - 6.0, y + 4.0), Anchor::End)
            };
            let label = Label::new(self.axis.label(tick), at).anchor(anchor);
            if !layout.is_narrow() || tick > 0.0 {
                self.occupied.take(&label);
                self.labels.push(label);
            }
        }
    }

    /// The slot of a run that goes on, if nothing else is known of it.
    fn draw_running(&mut self) {
        let slots = &self.cells.slots;
        let Some(run) = slots.runs().last().filter(|_| self.cells.is_hatched) else {
            return;
        };
        let (left, right) = slots.extent(*run);
        let (left, right) = (self.x(left), self.x(right));
        let level = self.cells.levels.last().and_then(|point| point.level);
        let top = self.axis.y(level.unwrap_or_default()).min(BOTTOM - 8.0);
        let rect = Rect::new(left, top, right - left, BOTTOM - top);
        self.scene.fill(rect, Role::Panel, 0.0);
        hatch(&mut self.scene, rect, Role::Kept);
    }

    /// `In [3]`, `[13]`, …, `now`.
    fn draw_numbers(&mut self) {
        let mut row = Occupied::default();
        let y = BOTTOM + 16.0;
        let now = Label::new("now", Point::new(self.right, y)).anchor(Anchor::End);
        row.take(&now);
        let runs = self.cells.slots.runs();
        let mut next = f64::NEG_INFINITY;
        let mut is_first = true;
        for (run, number) in runs.iter().zip(&self.cells.numbers) {
            let x = self.x(self.cells.slots.middle(*run));
            let Some(number) = number.filter(|_| x >= next) else {
                continue;
            };
            let words = if is_first {
                format!("In [{number}]")
            } else {
                format!("[{number}]")
            };
            let label = Label::new(words, Point::new(x, y)).anchor(Anchor::Middle);
            let label = label.between(self.left.min(x - 20.0).max(0.0), self.right);
            if row.take(&label) {
                self.scene.text(label);
                next = x + NUMBER;
                is_first = false;
            }
        }
        self.scene.text(now);
    }

    /// Marks runs that ran out of memory.
    fn draw_ooms(&mut self) {
        for oom in &self.cells.ooms {
            let x = crisp(self.x(oom.at));
            let ends = vec![Point::new(x, TOP - 12.0), Point::new(x, BOTTOM)];
            self.scene.line(ends, Role::Leak, 1.0, Some((2.0, 3.0)));
            for down in [-3.5, 3.5] {
                let (from, to) = (TOP - down, TOP + down);
                let (from, to) = (Point::new(x - 3.5, from), Point::new(x + 3.5, to));
                self.scene.rule(from, to, Role::Leak, 1.8);
            }
        }
        let Some(first) = self.cells.ooms.first() else {
            return;
        };
        let number = first.execution_count.map(|n| format!(", In [{n}]"));
        let more = match self.cells.ooms.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let words = format!("out of memory{}{more}", number.unwrap_or_default());
        let x = self.x(first.at);
        let is_left = first.at < 1.0 / 3.0;
        // As far as the words beside the chart.
        let reach = (self.left - 64.0).max(4.0);
        let (at, anchor) = if is_left {
            (Point::new(x + 8.0, TOP - 7.0), Anchor::Start)
        } else {
            (Point::new(x - 8.0, TOP - 7.0), Anchor::End)
        };
        let label = Label::new(words, at)
            .anchor(anchor)
            .face(Face::Bold)
            .size(MEDIUM)
            .role(Role::LeakText)
            .fitted(self.scene.width - reach - 4.0)
            .between(reach, self.scene.width - 4.0);
        if self.occupied.take(&label) {
            self.scene.text(label);
        }
    }

    /// The names with their sizes at the right edge.
    fn draw_bands(&mut self) {
        let bands = bands(self.cells);
        let mut base = 0.0;
        let middles = bands.iter().map(|band| {
            let middle = base + band.size.as_f64() / 2.0;
            base += band.size.as_f64();
            self.axis.y(middle).clamp(TOP - 4.0, BOTTOM)
        });
        let middles: Vec<f64> = middles.collect();
        let room = (TOP - 10.0, BOTTOM + FOOT - 8.0);
        for ((band, middle), y) in bands.iter().zip(&middles).zip(spread(&middles, room)) {
            let x = self.right + 3.0;
            let leader = [Point::new(x, *middle), Point::new(x + LEADER, y)];
            self.scene.line(leader.to_vec(), Role::Muted, 1.0, None);
            let swatch = Rect::new(x + LEADER + 4.0, y - SWATCH / 2.0, SWATCH, SWATCH);
            self.scene.fill(swatch, outline(band.role), 2.0);
            if band.role != outline(band.role) {
                self.scene.fill(swatch.inset(1.0), band.role, 1.0);
            }
            let is_leak = band.role == Role::Leak;
            let sign = if is_leak { "▲ " } else { "" };
            let words = format!("{sign}{} {}", band.name, self.units.size(band.size));
            let at = Point::new(swatch.x + SWATCH + 5.0, y + 4.0);
            let label = Label::new(words, at).size(SMALL);
            let label = if is_leak {
                label.face(Face::Bold).role(Role::LeakText)
            } else {
                label
            };
            self.scene.text(label.fitted(self.scene.width - at.x - 4.0));
        }
    }
}

/// Colours as light as the sheet have a frame.
const fn outline(role: Role) -> Role {
    match role {
        Role::CacheArea | Role::Panel => Role::BackCap,
        role => role,
    }
}

/// Heights at least one line apart, as near as possible to the wanted ones.
fn spread(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places = Vec::new();
    let mut below = bottom + NAME_LINE;
    for y in wanted {
        below = y.min(below - NAME_LINE);
        places.push(below);
    }
    let mut above = top - NAME_LINE;
    for y in places.iter_mut().rev() {
        *y = y.max(above + NAME_LINE);
        above = *y;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_line_apart() {
        assert_eq!(spread(&[90.0, 50.0], (10.0, 100.0)), [90.0, 50.0]);
        assert_eq!(
            spread(&[90.0, 88.0, 87.0], (10.0, 100.0)),
            [90.0, 76.0, 62.0]
        );
        assert_eq!(spread(&[12.0, 11.0], (10.0, 100.0)), [24.0, 10.0]);
    }
}
