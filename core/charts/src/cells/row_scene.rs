//! One row as a picture: a step line of what is kept so far, a tick for each run, and what was given
//! back above it. Or a bar for what each run kept.

use super::super::CellMeasure;
use super::super::columns::{columns, highest};
use super::CellChart;
use super::row::{CellRow, RunMark};
use gpumem_model::recording::Status;
use gpumem_scene::hatch::hatch;
use gpumem_scene::plot::crisp;
use gpumem_scene::{Point, Rect, Role, Scene};

const HEIGHT: f64 = 28.0;
const LEAK_HEIGHT: f64 = 34.0;
const TOP: f64 = 3.0;
/// From the line on which the runs stand to the lower edge.
const FOOT: f64 = 5.0;
/// What was given back has this share of the height above what was kept.
const HEADROOM: f64 = 0.26;
const TICK: f64 = 3.0;
/// The bar of a run, and the block of what it gave back, at most.
const WIDEST: f64 = 10.0;
const LINE: f64 = 1.6;
/// Where a run is by now: a dot, and around it.
const DOT: f64 = 3.5;
const HALO: f64 = 6.0;

pub(super) fn scene(cells: &CellChart, row: &CellRow, width: f64, measure: CellMeasure) -> Scene {
    let height = if row.is_leak { LEAK_HEIGHT } else { HEIGHT };
    let mut chart = RowChart {
        row,
        scale: RowScale::new(row, measure, (TOP, height - FOOT)),
        scene: Scene {
            width: width.max(1.0),
            height,
            sheet: Role::Clear,
            ..Scene::default()
        },
    };
    chart.draw_floor();
    match measure {
        CellMeasure::Total => {
            chart.draw_given_back();
            chart.draw_kept();
        }
        CellMeasure::PerRun => chart.draw_bars(),
    }
    chart.draw_ticks();
    for oom in &cells.ooms {
        // The middle of the last pixel may be outside of a sheet that ends in it.
        let x = crisp(oom.at * chart.scene.width).min(chart.scene.width);
        let ends = vec![Point::new(x, 0.0), Point::new(x, height)];
        chart.scene.line(ends, Role::Leak, 1.0, Some((2.0, 3.0)));
    }
    chart.draw_ends();
    chart.scene
}

struct RowChart<'a> {
    row: &'a CellRow,
    scale: RowScale,
    scene: Scene,
}

/// Bytes to heights.
struct RowScale {
    low: f64,
    high: f64,
    top: f64,
    bottom: f64,
    /// The height of what was given back is by itself, where nothing was kept.
    back: f64,
}

impl RowScale {
    fn new(row: &CellRow, measure: CellMeasure, (top, bottom): (f64, f64)) -> Self {
        let sizes: Vec<(f64, f64)> = match measure {
            CellMeasure::Total => row.kept_so_far(),
            CellMeasure::PerRun => row.marks.iter().flat_map(deltas).collect(),
        };
        let sizes: Vec<f64> = sizes.into_iter().map(|(_, kept)| kept).collect();
        let high = sizes.iter().copied().fold(0.0, f64::max);
        let low = sizes.iter().copied().fold(0.0, f64::min);
        let back = row.marks.iter().map(|mark| mark.back).fold(0.0, f64::max);
        let has_back = back > 0.0 && measure == CellMeasure::Total;
        let clipped = if has_back {
            HEADROOM * (bottom - top)
        } else {
            0.0
        };
        Self {
            low,
            high,
            top: top + clipped,
            bottom,
            back: if high > 0.0 { 0.0 } else { back },
        }
    }

    /// The height of a number of bytes.
    fn y(&self, n_bytes: f64) -> f64 {
        let range = (self.high - self.low).max(1.0);
        self.bottom - (n_bytes - self.low) / range * (self.bottom - self.top)
    }
}

impl RowChart<'_> {
    fn x(&self, at: f64) -> f64 {
        at * self.scene.width
    }

    /// The line of nothing kept.
    fn draw_floor(&mut self) {
        let y = crisp(self.scale.y(0.0));
        let ends = (0.0, self.scene.width);
        self.scene.horizontal(y, ends, Role::Line, 1.0);
    }

    fn draw_kept(&mut self) {
        let mut points = self.row.kept_so_far();
        for (at, _) in &mut points {
            *at *= self.scene.width;
        }
        let levels = columns(&points);
        let end = match self.row.marks.last() {
            Some(mark) if mark.is_hatched() => self.x(mark.middle),
            _ => self.scene.width,
        };
        let floor = self.scale.y(0.0);
        let mut line = Vec::new();
        let mut before = floor;
        for (idx, (x, kept)) in levels.iter().enumerate() {
            let x = x.min(end);
            let right = levels.get(idx + 1).map_or(end, |(next, _)| next.min(end));
            let y = self.scale.y(*kept);
            let (upper, lower) = (y.min(floor), y.max(floor));
            if lower - upper > 0.5 && right > x {
                let area = Rect::new(x, upper, right - x, lower - upper);
                self.scene.fill(area, self.row.area(), 0.0);
            }
            if (y - before).abs() > 0.0 || !line.is_empty() {
                if line.is_empty() {
                    line.push(Point::new(x, before));
                }
                line.push(Point::new(x, y));
                line.push(Point::new(right, y));
            }
            before = y;
        }
        let line = line.into_iter().map(|point| self.inside(point)).collect();
        self.scene.line(line, self.row.line(), LINE, None);
    }

    /// Half a line from the upper edge.
    fn inside(&self, point: Point) -> Point {
        Point::new(point.x, point.y.max(1.0).min(self.scene.height - 1.0))
    }

    /// Above what was kept, as far as there is room.
    fn draw_given_back(&mut self) {
        let marks = self.row.marks.iter().filter(|mark| mark.back > 0.0);
        let blocks: Vec<(f64, f64, f64)> = marks
            .map(|mark| {
                let from = self.scale.y(mark.before.max(mark.so_far));
                let top = if self.scale.back > 0.0 {
                    from - mark.back / self.scale.back * (from - TOP)
                } else {
                    let higher = mark.before.max(mark.so_far) + mark.back;
                    self.scale.y(higher).max(TOP)
                };
                (self.x(mark.middle), from, top)
            })
            .collect();
        let width = self.block_width();
        let mut drawn_to = f64::NEG_INFINITY;
        let mut caps = Vec::new();
        for (x, from, top) in blocks {
            let left = (x - width / 2.0).max(0.0).min(self.scene.width - width);
            if left < drawn_to {
                continue;
            }
            drawn_to = left + width;
            let block = Rect::new(left, top, width, (from - top).max(1.0));
            self.scene.fill(block, Role::Back, 0.0);
            caps.push(Rect::new(left, top, width, 1.5));
        }
        for cap in caps {
            self.scene.fill(cap, Role::BackCap, 0.0);
        }
    }

    fn block_width(&self) -> f64 {
        (self.x(narrowest(self.row.marks.iter())) * 0.7).clamp(2.0, WIDEST)
    }

    /// What each run, or each of its steps, kept.
    fn draw_bars(&mut self) {
        let n_steps = self.row.marks.iter().map(|mark| mark.steps.len()).max();
        let steps = n_steps.unwrap_or_default().max(1) as f64;
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (at, kept) in self.row.marks.iter().flat_map(deltas) {
            let side = if kept > 0.0 { &mut up } else { &mut down };
            side.push((self.x(at), kept.abs()));
        }
        let width = self.bar_width(steps);
        let floor = self.scale.y(0.0);
        for (bars, sign, role) in [(up, 1.0, self.row.line()), (down, -1.0, Role::Ok)] {
            for (x, size) in highest(&bars).into_iter().filter(|(_, size)| *size > 0.0) {
                let y = self.scale.y(sign * size);
                let left = (x - width / 2.0).max(0.0).min(self.scene.width - width);
                let bar = Rect::new(left, y.min(floor), width, (y - floor).abs().max(1.5));
                self.scene.fill(bar, role, 0.0);
            }
        }
    }

    fn bar_width(&self, n_steps: f64) -> f64 {
        let marks = self.row.marks.iter();
        let marks = marks.filter(|mark| n_steps < 2.0 || !mark.steps.is_empty());
        (self.x(narrowest(marks)) / n_steps * 0.6).clamp(1.0, WIDEST)
    }

    /// A tick on the floor for each run; one with steps has a line.
    fn draw_ticks(&mut self) {
        let bottom = self.scene.height - FOOT + 2.0;
        let mut drawn_to = f64::NEG_INFINITY;
        for mark in &self.row.marks {
            let (left, right) = if mark.steps.is_empty() {
                let x = self.x(mark.middle);
                (x - TICK / 2.0, x + TICK / 2.0)
            } else {
                (self.x(mark.extent.0), self.x(mark.extent.1))
            };
            if left < drawn_to - 1.0 {
                continue;
            }
            drawn_to = right;
            let left = left.max(0.0).min(self.scene.width - TICK);
            let width = (right - left).max(TICK).min(self.scene.width - left);
            let tick = Rect::new(left, bottom - TICK, width, TICK);
            self.scene.fill(tick, self.row.line(), 0.0);
        }
    }

    /// Where a run went on, or ran out of memory.
    fn draw_ends(&mut self) {
        for mark in &self.row.marks {
            match mark.status {
                Status::OutOfMemory | Status::Died => self.draw_cross(mark),
                Status::Running if !mark.is_hatched() => self.draw_now(mark),
                Status::Running => {
                    let (left, right) = (self.x(mark.extent.0), self.x(mark.extent.1));
                    let floor = self.scale.y(0.0);
                    let rect = Rect::new(left, TOP, right - left, floor - TOP);
                    hatch(&mut self.scene, rect, self.row.line());
                }
                _ => {}
            }
        }
    }

    /// Where a run that goes on is by now.
    fn draw_now(&mut self, mark: &RunMark) {
        let x = self.x(mark.extent.1).min(self.scene.width - HALO);
        let y = self.scale.y(mark.so_far);
        let y = y.max(HALO).min(self.scene.height - HALO);
        for (radius, role) in [(HALO, self.row.area()), (DOT, self.row.line())] {
            self.scene.dot(Point::new(x, y), radius, role);
        }
    }

    fn draw_cross(&mut self, mark: &RunMark) {
        let reach = 3.0;
        let right = self.scene.width - reach - 1.0;
        let x = self.x(mark.middle).max(reach + 1.0).min(right);
        let y = TOP + reach + 1.0;
        for down in [-reach, reach] {
            let (from, to) = (y - down, y + down);
            let (from, to) = (Point::new(x - reach, from), Point::new(x + reach, to));
            self.scene.rule(from, to, Role::Leak, 1.8);
        }
    }
}

/// The width of the narrowest slot, as a share of the axis.
fn narrowest<'a>(marks: impl Iterator<Item = &'a RunMark>) -> f64 {
    let widths = marks.map(|mark| mark.extent.1 - mark.extent.0);
    widths.fold(1.0, f64::min)
}

/// What a run, or each of its steps, kept: places of the axis, and bytes.
fn deltas(mark: &RunMark) -> Vec<(f64, f64)> {
    if mark.steps.is_empty() {
        return Vec::from_iter(mark.kept.map(|kept| (mark.middle, kept)));
    }
    let half = (mark.extent.1 - mark.extent.0) / mark.steps.len() as f64 / 2.0;
    let mut before = 0.0;
    let steps = mark.steps.iter().map(|(at, kept)| {
        let delta = kept - before;
        before = *kept;
        (at - half, delta)
    });
    steps.collect()
}
