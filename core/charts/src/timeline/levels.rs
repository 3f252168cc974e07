//! The known levels over time.

use super::super::device_view::DeviceView;
use super::super::m4::M4Reducer;
use super::super::{ChartView, Layers};
use super::level_of_detail::LevelsOfDetail;
use super::scale::{Stretch, TimeScale};
use super::{LEAST_PEAK, LONGEST_PEAK};
use gpumem_analyzer::{Metric, Peak, RunRow, of_points};
use gpumem_model::recording::{Column, Points, Series};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_scene::{Point, Role};

/// Levels by their place, from left to right: to the right in logical pixels, up in bytes.
type Polyline = Vec<Point>;

/// The highest level in a run.
pub(super) struct PeakBar {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) level: Bytes,
}

impl PeakBar {
    /// A part of its run's.
    pub(super) fn width(&self) -> f64 {
        (0.6 * (self.right - self.left)).clamp(LEAST_PEAK, LONGEST_PEAK)
    }
}

/// Everything that the timeline draws.
pub(super) struct Traces {
    /// The device's use, one unbroken line after the other.
    pub(super) device: Vec<Polyline>,
    /// This process's use.
    pub(super) process: Vec<Polyline>,
    /// The metric that growth is judged on: at the ends of runs, and where marks were set.
    pub(super) held: Vec<Polyline>,
    /// Allocated as the allocator's history tells it, change by change.
    pub(super) exact: Vec<Polyline>,
    metric: Metric,
    pub(super) peaks: Vec<PeakBar>,
    /// `None` where nothing is known.
    pub(super) highest: Option<Bytes>,
}

impl Traces {
    pub(super) fn new(
        session: &DeviceView<'_>,
        scale: &TimeScale,
        view: &ChartView,
        detail: &LevelsOfDetail,
    ) -> Self {
        let pixel = view.density.pixel();
        let mut traces = Self {
            device: Vec::new(),
            process: Vec::new(),
            held: Vec::new(),
            exact: Vec::new(),
            metric: session.metric(),
            peaks: Vec::new(),
            highest: None,
        };
        let [device, process, held] = [(); 3].map(|()| BrokenLine::drawn_in(pixel));
        let mut sampled = SampledLines {
            pixel,
            device,
            process,
            held,
        };
        for stretch in scale.stretches() {
            traces.add(session, stretch, detail, &mut sampled);
        }
        traces.device = sampled.device.into_traces();
        traces.process = sampled.process.into_traces();
        traces.held = sampled.held.into_traces();
        traces.keep(view.layers);
        let lines = [&traces.device, &traces.process, &traces.held, &traces.exact];
        let levels = lines.into_iter().flatten().flatten().map(|level| level.y);
        let peaks = traces.peaks.iter().map(|peak| peak.level.as_f64());
        let highest = levels.chain(peaks).reduce(f64::max);
        traces.highest = highest.map(|level| Bytes::new(level as u64));
        traces
    }

    /// Drops what is not to be drawn.
    fn keep(&mut self, layers: Layers) {
        let drops = [
            (layers.device, &mut self.device),
            (layers.process, &mut self.process),
            (layers.held, &mut self.held),
            (layers.held, &mut self.exact),
        ];
        for (_, metric) in drops.into_iter().filter(|(stays, _)| !stays) {
            metric.clear();
        }
        if !layers.peaks {
            self.peaks.clear();
        }
    }

    pub(super) fn held_role(&self) -> Role {
        match self.metric {
            Metric::Allocated => Role::Text,
            Metric::ProcessUsed => Role::Process,
            Metric::DeviceUsed => Role::Device,
        }
    }

    fn add(
        &mut self,
        session: &DeviceView<'_>,
        stretch: &Stretch,
        detail: &LevelsOfDetail,
        sampled: &mut SampledLines,
    ) {
        let row = session.row(stretch.run);
        let run = session.recording.run(stretch.run);
        let in_view = |at: &Nanos| (stretch.from..=stretch.to).contains(at);
        let begun = Some(run.started).filter(in_view);
        let ended = run.ended.filter(in_view);
        let place = |at, level: Bytes| Point::new(stretch.x(at), level.as_f64());
        let draw =
            |line: &mut BrokenLine, points: &Points, levels: &Column, ends: fn(&RunRow) -> Ends| {
                let ends = row.map_or((None, None), ends);
                line.begin_run(stretch.left);
                if let Some(at) = begun {
                    line.push(ends.0.map(|level| place(at, level)));
                }
                for idx in points.between(stretch.from, stretch.to) {
                    line.push(levels.get(idx).map(|level| place(points.at()[idx], level)));
                }
                if let Some(at) = ended {
                    line.push(ends.1.map(|level| place(at, level)));
                }
            };
        let mut marks: Vec<(Nanos, Bytes)> = Vec::new();
        for (series, all) in session.recording.samples_of(stretch.run, session.device) {
            let points = detail.get(all, series, session.device, stretch);
            if *series == Series::Sampled {
                let (device, process) = (points.device_used(), points.process_used());
                draw(&mut sampled.device, points, device, |row| row.device_used);
                let used = |row: &RunRow| row.process_used;
                draw(&mut sampled.process, points, process, used);
            } else {
                let levels = of_points(points, self.metric);
                let inside = points.between(stretch.from, stretch.to);
                marks.extend(inside.filter_map(|idx| Some((points.at()[idx], levels.get(idx)?))));
            }
        }
        marks.sort_by_key(|(at, _)| *at);
        let ends = row.map_or((None, None), |row| (row.before, row.after));
        let inside = begun.zip(ends.0).into_iter();
        let inside = inside.chain(marks).chain(ended.zip(ends.1));
        let inside = inside.map(|(at, level)| place(at, level));
        let trace = session.recording.trace(stretch.run, session.device);
        if let Some(trace) = trace.filter(|_| self.metric == Metric::Allocated) {
            let steps = trace.steps.iter().filter(|step| in_view(&step.at));
            let steps = steps.filter_map(|step| Some(place(step.at, step.allocated?)));
            self.exact.push(staircase(steps, sampled.pixel));
            return;
        }
        sampled.held.begin_run(stretch.left);
        sampled.held.steps(inside);
        // A peak that is no higher than the ends is known from them.
        let news = |peak: &Peak| Some(peak.low()) > ends.0.max(ends.1);
        let peak = row.and_then(|row| row.peak).filter(news);
        self.peaks.extend(peak.map(|peak| PeakBar {
            left: stretch.left,
            right: stretch.right,
            level: peak.low(),
        }));
    }
}

/// A level at the beginning and at the end of a run.
type Ends = (Option<Bytes>, Option<Bytes>);

/// A level stays as it is until the next change.
fn staircase(steps: impl Iterator<Item = Point>, pixel: f64) -> Polyline {
    let mut stairs = BrokenLine::drawn_in(pixel);
    stairs.steps(steps);
    let stairs = stairs.current.map(M4Reducer::into_points);
    stairs.unwrap_or_default()
}

/// What the sampler read, run after run.
struct SampledLines {
    /// The width of a device pixel.
    pixel: f64,
    device: BrokenLine,
    process: BrokenLine,
    held: BrokenLine,
}

/// A line that breaks where the level was not read.
struct BrokenLine {
    /// Points nearer than this draw the same picture.
    pixel: f64,
    traces: Vec<Polyline>,
    current: Option<M4Reducer>,
    end: f64,
}

impl BrokenLine {
    fn drawn_in(pixel: f64) -> Self {
        Self {
            pixel,
            traces: Vec::new(),
            current: None,
            end: 0.0,
        }
    }

    /// Between runs nothing was read; of thousands of them the gaps are not seen.
    fn begin_run(&mut self, left: f64) {
        if left - self.end > self.pixel {
            self.end_trace();
        }
    }

    fn push(&mut self, level: Option<Point>) {
        match level {
            None => self.end_trace(),
            Some(level) => {
                self.end = level.x;
                self.current
                    .get_or_insert_with(|| M4Reducer::to(self.pixel))
                    .push(level);
            }
        }
    }

    /// A level stays as it is until the next one is known.
    fn steps(&mut self, levels: impl IntoIterator<Item = Point>) {
        let mut before: Option<Point> = None;
        for level in levels {
            if let Some(before) = before {
                self.push(Some(Point::new(level.x, before.y)));
            }
            self.push(Some(level));
            before = Some(level);
        }
    }

    /// A single reading makes no line.
    fn end_trace(&mut self) {
        let ended = self.current.take().filter(|it| it.n_pushed() > 1);
        self.traces.extend(ended.map(M4Reducer::into_points));
    }

    fn into_traces(mut self) -> Vec<Polyline> {
        self.end_trace();
        self.traces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[Option<u64>], traces: &[&[u64]]) {
        let mut line = BrokenLine::drawn_in(0.5);
        for (x, level) in levels.iter().enumerate() {
            line.push(level.map(|level| Point::new(x as f64, level as f64)));
        }
        let found: Vec<Vec<u64>> = line
            .into_traces()
            .iter()
            .map(|trace| trace.iter().map(|level| level.y as u64).collect())
            .collect();
        assert_eq!(found, traces);
    }

    #[test]
    fn only_a_gap_that_is_seen_parts_two_runs() {
        let n_traces = |gap: f64| {
            let mut line = BrokenLine::drawn_in(0.5);
            for left in [0.0, 3.0 + gap] {
                line.begin_run(left);
                for x in [left, left + 3.0] {
                    line.push(Some(Point::new(x, 1.0)));
                }
            }
            line.into_traces().len()
        };
        assert_eq!([0.0, 0.4, 0.6].map(n_traces), [1, 1, 2]);
    }

    #[test]
    fn no_line_is_drawn_over_what_was_not_read() {
        check(
            &[Some(1), Some(2), None, Some(4), Some(5)],
            &[&[1, 2], &[4, 5]],
        );
        check(&[None, Some(1), None, Some(3)], &[]);
        check(&[], &[]);
    }
}
