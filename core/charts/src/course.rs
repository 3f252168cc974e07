//! What a growing cell kept, run by run, and its forecast.

use super::ChartView;
use gpumem_analyzer::{Finding, FindingDetails, GrowthDetails};
use gpumem_scene::axis::ByteAxis;
use gpumem_scene::label::Label;
use gpumem_scene::plot::{Plot, crisp, sheet};
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};

const HEIGHT: f64 = 176.0;
const TOP: f64 = 22.0;
/// Below the plot: numbers of runs, and what they are.
const BELOW: f64 = 34.0;
/// Space between two bars, as a share of one.
const BETWEEN: f64 = 0.35;
const MAX_TICKS: usize = 4;
/// Columns under a forecast.
const N_AHEAD: usize = 24;
/// To the right of the plot, for the label at its end.
const BESIDE: f64 = 44.0;

/// What the finding kept, after each of its runs or steps; `None` if it is about no growth.
pub fn course(finding: &Finding, view: &ChartView) -> Option<Scene> {
    let course = GrowthSeries::new(finding)?;
    let mut scene = sheet(view.width, HEIGHT, Role::Panel);
    let plot = Plot::new(scene.width, TOP, HEIGHT - BELOW);
    let top = course.levels.iter().copied().fold(course.total, f64::max);
    let axis = ByteAxis::new(0.0..=top, plot.bottom, plot.top, view.units);
    plot.draw_axis(&mut scene, &axis, MAX_TICKS);
    let slot = plot.width() / course.levels.len() as f64;
    let width = (slot * (1.0 - BETWEEN)).max(1.0);
    let mut before = 0.0;
    for (idx, level) in course.levels.iter().enumerate() {
        let x = plot.left + slot * (idx as f64 + 0.5) - width / 2.0;
        let (from, to) = (axis.y(before), axis.y(*level));
        let rect = Rect::new(x, from, width, plot.bottom - from);
        scene.fill(rect, Role::LeakSpan, 0.0);
        let rect = Rect::new(x, to.min(from), width, (from - to).abs().max(1.0));
        scene.fill(rect, Role::Leak, 0.0);
        before = *level;
    }
    let numbers = [
        (0.5, "1".to_owned()),
        (course.levels.len() as f64 - 0.5, course.n.to_string()),
    ];
    for (place, number) in numbers {
        let at = Point::new(plot.left + slot * place, plot.bottom + 14.0);
        scene.text(Label::new(number, at).anchor(Anchor::Middle));
    }
    course.name_axis(&mut scene, &plot, "");
    let total = view.units.size(finding.growth()?.total.magnitude());
    let at = Point::new(plot.right, axis.y(course.total) - 6.0);
    let label = Label::new(&total, at).face(Face::Bold).role(Role::Text);
    scene.text(label.anchor(Anchor::End));
    scene.description = format!(
        "kept after each of {} {}s: {total} at the end",
        course.n, course.unit
    );
    Some(scene)
}

/// The level so far, and its forecast up to a full device; `None` without a forecast.
pub fn outlook(finding: &Finding, view: &ChartView) -> Option<Scene> {
    let course = GrowthSeries::new(finding)?;
    let (n_more, left) = (course.n_more?, course.left?);
    let mut scene = sheet(view.width, HEIGHT, Role::Panel);
    let mut plot = Plot::new(scene.width, TOP, HEIGHT - BELOW);
    plot.right -= BESIDE;
    let full = course.base + course.total + left;
    let axis = ByteAxis::new(0.0..=full, plot.bottom, plot.top, view.units);
    plot.draw_axis(&mut scene, &axis, MAX_TICKS);
    let all = course.n as f64 + n_more;
    let x = |n: f64| plot.left + plot.width() * n / all;
    let (now, end) = (x(course.n as f64), x(all));
    let floor = axis.y(course.base);
    let rect = Rect::new(plot.left, floor, end - plot.left, plot.bottom - floor);
    scene.fill(rect, Role::CacheArea, 0.0);
    let n_levels = course.levels.len() as f64;
    for (idx, level) in course.levels.iter().enumerate() {
        let [from, to] = [idx, idx + 1].map(|idx| x(course.n as f64 * idx as f64 / n_levels));
        let top = axis.y(course.base + level);
        let column = Rect::new(from, top, to - from, floor - top);
        scene.fill(column, Role::Leak, 0.0);
    }
    let height = |share: f64| axis.y(course.base + course.total + left * share);
    let column = (end - now) / N_AHEAD as f64;
    for idx in 0..N_AHEAD {
        let top = height((idx as f64 + 0.5) / N_AHEAD as f64);
        let rect = Rect::new(now + column * idx as f64, top, column * 0.55, floor - top);
        scene.fill(rect, Role::LeakSpan, 0.0);
    }
    let ahead = vec![Point::new(now, height(0.0)), Point::new(end, height(1.0))];
    scene.line(ahead, Role::Leak, 2.0, Some((4.0, 3.0)));
    let roof = crisp(axis.y(full));
    scene.horizontal(roof, (plot.left, end), Role::Text, 1.5);
    scene.dot(Point::new(end, roof), 4.0, Role::Leak);
    let at = Point::new(end + 8.0, roof + 4.0);
    scene.text(Label::new("full", at).face(Face::Bold).role(Role::Leak));
    let numbers = [
        (plot.left, "1".to_owned(), Anchor::Start),
        (now, format!("{}, now", course.n), Anchor::Middle),
        (end, format!("≈ {all:.0}"), Anchor::Middle),
    ];
    for (place, number, anchor) in numbers {
        let at = Point::new(place, plot.bottom + 14.0);
        let label = Label::new(number, at).anchor(anchor);
        if anchor != Anchor::Middle || place - plot.left > 44.0 {
            scene.text(label);
        }
    }
    course.name_axis(&mut scene, &plot, ", if it goes on");
    let room = plot.bottom - floor;
    if room > 16.0 {
        let middle = f64::midpoint(floor, plot.bottom);
        let at = Point::new(f64::midpoint(now, end), middle + 4.0);
        let label = Label::new("everything else", at).role(Role::Text);
        scene.text(label.anchor(Anchor::Middle));
    }
    scene.description = format!(
        "{}, and if it goes on: full after about {n_more:.0} more {}s",
        view.units.size(finding.growth()?.total.magnitude()),
        course.unit
    );
    Some(scene)
}

/// A series as it is drawn, in bytes.
struct GrowthSeries {
    /// The level before it.
    base: f64,
    /// What it had kept after each point, above that.
    levels: Vec<f64>,
    total: f64,
    /// Number of runs or steps behind the points.
    n: usize,
    unit: &'static str,
    /// Number of further points until the device is full, and the bytes until then.
    n_more: Option<f64>,
    left: Option<f64>,
}

impl GrowthSeries {
    fn new(finding: &Finding) -> Option<Self> {
        let growth = finding.growth()?;
        let last = *growth
            .sparkline
            .last()
            .filter(|_| growth.sparkline.len() > 1)?;
        let total = growth.total.as_f64();
        let base = (last - total).max(0.0);
        let details = match &finding.details {
            FindingDetails::Growth(details) => Some(&**details),
            _ => None,
        };
        let stands = finding.withdrawn.is_none();
        let details = details.filter(|_| stands);
        let n_more = details.and_then(GrowthDetails::foreseen);
        Some(Self {
            base,
            levels: growth
                .sparkline
                .iter()
                .map(|level| (level - base).max(0.0))
                .collect(),
            total: last - base,
            n: finding.n_runs,
            unit: if finding.counts_steps() {
                "step"
            } else {
                "run"
            },
            n_more: n_more.filter(|n| *n > 0).map(|n| n as f64),
            left: details
                .and_then(|it| it.headroom)
                .map(gpumem_model::units::Bytes::as_f64),
        })
    }

    fn name_axis(&self, scene: &mut Scene, plot: &Plot, more: &str) {
        let at = Point::new(plot.left, plot.bottom + 29.0);
        scene.text(Label::new(format!("{}{more}", self.unit), at));
    }
}
