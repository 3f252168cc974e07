//! One long run: its level over the iterations of a loop in it, the results of looks for holders, and the
//! forecast of its growth.

mod course;
mod drawing;
mod looks;
mod scale;
#[cfg(test)]
mod tests;

pub use looks::{InsideLook, LookedHolder};

use super::device_view::DeviceView;
use super::reading::RunDescription;
use course::IterationLevels;
use gpumem_analyzer::{
    Analysis, Finding, FindingDetails, FindingKind, GrowthDetails, LoopPlace, of_points,
};
use gpumem_model::recording::{
    CellIdx, DeviceIdx, Loop, LoopIdx, LoopKind, Points, Recording, Run, RunIdx, Series,
};
use gpumem_model::units::{Bytes, Nanos, Units, count};
use gpumem_scene::Scene;

/// Fewer iterations give no forecast.
const MIN_FORESEEING: u64 = 6;

/// One run of a cell, by the iterations of a loop in it.
///
/// ```
/// use gpumem_analyzer::{Rules, analyze};
/// use gpumem_charts::LongRun;
/// use gpumem_model::recording::{CellIdx, DeviceIdx};
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let analysis = analyze(&recording, &Rules::default());
/// let place = (CellIdx(0), DeviceIdx(0));
/// assert!(LongRun::of_cell(&recording, &analysis, place, None).is_none(), "no loop was counted");
/// ```
#[derive(Debug, Clone)]
pub struct LongRun<'a> {
    run: &'a Run,
    /// Those that can be the axis, outermost first.
    loops: Vec<&'a Loop>,
    /// The one that is.
    counted: &'a Loop,
    course: IterationLevels,
    /// Inside of it: the levels of the loop that turns most.
    inner: Option<IterationLevels>,
    inner_loop: Option<&'a Loop>,
    looks: Vec<InsideLook>,
    /// The finding about it, if it stands.
    finding: Option<&'a Finding>,
    is_leak: bool,
    /// The level before the run.
    base: Bytes,
    capacity: Option<Bytes>,
}

/// A loop with the levels where its iterations ended.
type WithLevels<'a> = (&'a Loop, &'a Points);

impl<'a> LongRun<'a> {
    /// The latest run of a cell with a loop; if a finding is in one, the run that it is about. The axis is
    /// the loop `chosen`, else that of the finding, else the outermost.
    pub fn of_cell(
        recording: &'a Recording,
        analysis: &'a Analysis,
        (cell, device): (CellIdx, DeviceIdx),
        chosen: Option<LoopIdx>,
    ) -> Option<Self> {
        let session = DeviceView::new(recording, analysis, device);
        let is_of_cell = |it: &Finding| it.cell.as_ref().is_some_and(|of| of.idx == cell);
        let mut judged = session.judged_in_loops().filter(|it| is_of_cell(it));
        judged
            .find_map(|it| Self::about(&session, it, chosen))
            .or_else(|| {
                let runs = recording.runs().iter().rev();
                let of_cell = runs.filter(|run| run.cell == cell && run.parent.is_none());
                let mut with_axis =
                    of_cell.filter_map(|run| Some((run, axis_loop(&session, run.idx)?)));
                let (run, axis) = with_axis.next()?;
                Self::new(&session, (run, axis), None, chosen)
            })
    }

    /// The run that a finding in a loop is about.
    pub fn of_finding(
        recording: &'a Recording,
        analysis: &'a Analysis,
        finding: &'a Finding,
    ) -> Option<Self> {
        let session = DeviceView::new(recording, analysis, finding.device);
        Self::about(&session, finding, None)
    }

    fn about(
        session: &DeviceView<'a>,
        finding: &'a Finding,
        chosen: Option<LoopIdx>,
    ) -> Option<Self> {
        let run = session.recording.run(*finding.runs.last()?);
        let mut loops = with_levels(session, run.idx).into_iter();
        let (axis, _) = loops.find(|(it, _)| is_about(finding, it))?;
        Self::new(session, (run, axis), Some(finding), chosen)
    }

    fn new(
        session: &DeviceView<'a>,
        (run, first): (&'a Run, &'a Loop),
        finding: Option<&'a Finding>,
        chosen: Option<LoopIdx>,
    ) -> Option<Self> {
        let all = with_levels(session, run.idx);
        let is_in = |inner: &Loop, outer: &Loop| is_inside(session.recording, inner, outer.idx);
        let is_of_chain =
            |it: &&'a Loop| it.idx == first.idx || is_in(it, first) || is_in(first, it);
        let mut loops: Vec<&Loop> = all.iter().map(|(it, _)| *it).filter(is_of_chain).collect();
        loops.sort_by_key(|it| around(session.recording, it).count());
        let counted = loops.iter().find(|it| Some(it.idx) == chosen);
        let counted = counted.copied().unwrap_or(first);
        let points = |of: &Loop| all.iter().find(|(it, _)| it.idx == of.idx);
        let metric = session.metric();
        let before = session.row(run.idx).and_then(|row| row.before);
        let course = |of: &Loop| {
            let (_, points) = points(of)?;
            IterationLevels::new(of, (points, of_points(points, metric)), before)
        };
        let inside = loops.iter().filter(|it| is_in(it, counted));
        let inner = inside.max_by_key(|it| points(it).map_or(0, |(_, points)| points.len()));
        let mut axis = course(counted)?;
        let base = axis.start;
        if counted.was_running && inner.is_none() {
            // What it held when counting began is nearer to what is known first than to the run's start.
            axis.start = axis.first_level();
        }
        let finding = finding.filter(|it| is_about(it, counted));
        Some(Self {
            run,
            counted,
            inner: inner.and_then(|it| course(it)),
            inner_loop: inner.copied(),
            base,
            is_leak: finding.is_some_and(|it| it.kind == FindingKind::Leak),
            looks: looks::looks(session, run, &axis, finding),
            course: axis,
            finding,
            capacity: session.capacity(),
            loops,
        })
    }

    /// Which run it is.
    pub fn run(&self) -> RunIdx {
        self.run.idx
    }

    /// It goes on.
    pub fn is_running(&self) -> bool {
        self.run.ended.is_none()
    }

    /// The loops that can be the axis, outermost first: which one, its name and how often it turned, and
    /// whether it is the axis.
    pub fn loops(&self) -> impl Iterator<Item = (LoopIdx, String, bool)> {
        self.loops.iter().map(|it| {
            let n = usize::try_from(it.n_iterations).unwrap_or(usize::MAX);
            let name = format!("{}, {}", LoopPlace::new(it).name(), count(n, unit(it)));
            (it.idx, name, it.idx == self.counted.idx)
        })
    }

    /// What stands above it: `Level over iterations`, and of what.
    pub fn title(&self) -> (String, String) {
        let number = self.run.execution_count;
        let cell = number.map_or(String::new(), |n| format!(" in In [{n}]"));
        let is_running = self.is_running();
        let as_it_runs = if is_running { ", as it runs" } else { "" };
        let name = LoopPlace::new(self.counted).name();
        let from = self.counted.counted_from.since(self.run.started);
        let from = if self.counted.was_running {
            format!(", counted from {from} on")
        } else {
            String::new()
        };
        (
            format!("Level over {}s", self.unit()),
            format!("of {name}{cell}{from}{as_it_runs}"),
        )
    }

    /// The results of looks during the run, in order.
    pub fn looks(&self) -> &[InsideLook] {
        &self.looks
    }

    /// The picture.
    pub fn scene(&self, width: f64, units: Units) -> Scene {
        drawing::scene(self, width, units)
    }

    /// What happened at a place of the picture of that width; `None` before the loop was counted and after
    /// what was recorded.
    pub fn instant_at(&self, x: f64, width: f64) -> Option<Nanos> {
        let iteration = drawing::scale(self, width).iteration(x);
        let is_there = (0.0..=self.course.n_all as f64).contains(&iteration);
        is_there.then(|| self.course.instant(iteration))
    }

    /// The place of an instant in a picture of that width.
    pub fn x(&self, at: Nanos, width: f64) -> f64 {
        drawing::scale(self, width).x(self.course.iteration_in_run(at))
    }

    /// An instant in words: iteration, time, level, and who held it at the look before.
    pub fn reading(&self, at: Nanos, name: &str, units: Units) -> RunDescription {
        let iteration = self.course.iteration_in_run(at);
        let level = self.course.level(iteration);
        let now = format!(
            "{} {:.0} of {}, {}: {} in use",
            self.unit(),
            iteration.floor(),
            self.course.n_all,
            at.since(self.run.started),
            units.size(level),
        );
        let look = self.looks.iter().rev().find(|look| look.at <= at);
        let found = look.and_then(|look| {
            let holder = look.holders.first()?;
            let (unit, n) = (self.unit(), look.iteration);
            let (name, what) = (&holder.name, holder.count_and_size(units));
            Some(format!("at {unit} {n} {name} had {what}"))
        });
        let words: Vec<String> = std::iter::once(now).chain(found).collect();
        RunDescription {
            place: match self.run.execution_count {
                Some(n) => format!("In [{n}]"),
                None => format!("run {}", self.run.idx.0 + 1),
            },
            name: name.to_owned(),
            words: words.join("; "),
        }
    }

    /// `iteration`, `call`.
    pub fn unit(&self) -> &'static str {
        unit(self.counted)
    }

    /// How many iterations of the axis ended.
    pub fn n_iterations(&self) -> u64 {
        self.course.n_all
    }

    fn growth(&self) -> Option<&'a GrowthDetails> {
        match &self.finding?.details {
            FindingDetails::Growth(details) => Some(details),
            _ => None,
        }
    }

    /// At which iteration the device is full, if that is foreseen: exactly as far as it is drawn, and as it
    /// is shown.
    fn full_at(&self) -> Option<(f64, u64)> {
        let n_all = self.course.n_all;
        let n_more = self.growth()?.foreseen()?;
        let is_foreseen = n_all >= MIN_FORESEEING && n_more > 0 && self.capacity.is_some();
        is_foreseen.then(|| {
            let shown = n_all + gpumem_wording::two_digits(n_more);
            ((n_all + n_more) as f64, shown)
        })
    }
}

/// The loops of a run whose levels are known on the device.
fn with_levels<'a>(session: &DeviceView<'a>, run: RunIdx) -> Vec<WithLevels<'a>> {
    let (recording, metric) = (session.recording, session.metric());
    let known = recording.loops(run).filter_map(|counted| {
        let series = Series::Loop(counted.idx);
        let points = recording.samples(run, session.device, &series);
        let levels = of_points(points, metric);
        let n_known = (0..points.len()).filter(|idx| levels.get(*idx).is_some());
        (n_known.count() > 1).then_some((counted, points))
    });
    known.collect()
}

/// The loop by whose iterations a run is shown: that of a finding, else the outermost that turned most.
pub(super) fn axis_loop<'a>(session: &DeviceView<'a>, run: RunIdx) -> Option<&'a Loop> {
    let all = with_levels(session, run);
    let is_inner = |it: &Loop| {
        let mut outer = all.iter().map(|(outer, _)| outer.idx);
        outer.any(|outer| is_inside(session.recording, it, outer))
    };
    let outermost = all.iter().map(|(it, _)| *it).filter(|it| !is_inner(it));
    judged_loop(session, run).or_else(|| outermost.max_by_key(|it| it.n_iterations))
}

/// The loop of a run that a finding is about.
pub(super) fn judged_loop<'a>(session: &DeviceView<'a>, run: RunIdx) -> Option<&'a Loop> {
    let loops = with_levels(session, run);
    // Of thousands of runs, few have loops.
    if loops.is_empty() {
        return None;
    }
    let judged = session.judged_in_loops();
    let mut about = judged.filter(|it| it.runs.contains(&run));
    about.find_map(|finding| {
        let mut loops = loops.iter().map(|(it, _)| *it);
        loops.find(|it| is_about(finding, it))
    })
}

/// How often the loop turned that a finding is about.
pub(super) fn n_turns(session: &DeviceView<'_>, finding: &Finding) -> Option<u64> {
    let run = *finding.runs.last()?;
    let mut loops = with_levels(session, run).into_iter();
    let (counted, points) = loops.find(|(it, _)| is_about(finding, it))?;
    let last = points.last().map_or(0, |point| point.ordinal);
    Some(counted.n_iterations.max(last))
}

fn is_about(finding: &Finding, counted: &Loop) -> bool {
    finding.in_loop() == Some(&LoopPlace::new(counted))
}

/// The loops around one, from the inside out.
fn around<'a>(recording: &'a Recording, inner: &Loop) -> impl Iterator<Item = LoopIdx> + use<'a> {
    let run = inner.run;
    let parent = move |of: &LoopIdx| recording.loops(run).find(|it| it.idx == *of)?.parent;
    let n_loops = recording.loops(run).count();
    std::iter::successors(inner.parent, parent).take(n_loops)
}

fn is_inside(recording: &Recording, inner: &Loop, outer: LoopIdx) -> bool {
    around(recording, inner).any(|it| it == outer)
}

const fn unit(counted: &Loop) -> &'static str {
    match counted.kind {
        LoopKind::Loop => "iteration",
        LoopKind::Calls => "call",
    }
}
