//! Which of a run's loops are judged: of nested ones the innermost of the user's that explains the growth, else
//! the innermost of a library's. Of a loop and the generator that feeds it, that is the loop.
//!
//! What is kept in each batch grows with the batches; what is kept in each epoch grows between them. A list
//! that each epoch clears grows with the batches, and nothing of it is left: then neither explains anything.
//! A comprehension is a part of one iteration of the loop around it.

use super::loop_place::LoopPlace;
use super::row::{Metric, RunRow, known_points, of_sample};
use gpumem_model::recording::{DeviceIdx, Loop, LoopIdx, Points, Recording, Run, Sample, Series};
use gpumem_model::units::{ByteDelta, Bytes};

/// A loop with fewer iterations is not judged: it may not continue.
const FEW: u64 = 5;

/// An inner loop explains growth if its iterations alone come to a share of it in this range, and passes of the
/// loop around it leave at least the lower share of what their iterations keep.
const EXPLAINS: (f64, f64) = (0.4, 2.0);

/// An inner loop iterates at least this many times as often as the outer one; otherwise they count as one.
const TURNS_MORE: f64 = 1.5;

/// Loops that explain less than this share of what grew in the loop around them leave it to that one.
const MOST: f64 = 0.5;

/// A loop, and the levels where its iterations ended.
pub(super) struct LoopSeries<'a> {
    counted: &'a Loop,
    pub(super) metric: Metric,
    pub(super) points: Vec<Sample>,
    /// The loop around it came round, and where its passes ended is not known: each may have begun anew.
    pub(super) may_begin_anew: bool,
}

impl<'a> LoopSeries<'a> {
    /// `None` if no metric is known of nearly all of its points, or there are too few.
    fn new(counted: &'a Loop, points: &Points) -> Option<Self> {
        let (metric, points) = known_points(points.iter().collect())?;
        (points.len() > 1).then_some(Self {
            counted,
            metric,
            points,
            may_begin_anew: false,
        })
    }

    pub(super) fn place(&self) -> LoopPlace {
        LoopPlace::new(self.counted)
    }

    fn level(&self, point: &Sample) -> Bytes {
        of_sample(point, self.metric).unwrap_or_default()
    }

    fn gain(&self) -> ByteDelta {
        match &self.points[..] {
            [first, .., last] => self.level(last).since(self.level(first)),
            _ => ByteDelta::ZERO,
        }
    }

    /// How many of its iterations ended in a nanosecond.
    fn rate(&self) -> f64 {
        let time = self.counted.last_at.since(self.counted.counted_from);
        self.counted.n_iterations as f64 / time.as_f64().max(1.0)
    }

    /// What an iteration keeps in the median of the passes of the loop around it: without what changed between
    /// two passes.
    fn rate_in_passes(&self, around: &Self) -> f64 {
        let pass = |point: &Sample| around.points.partition_point(|it| it.at < point.at);
        let passes = self.points.chunk_by(|a, b| pass(a) == pass(b));
        let mut rates: Vec<f64> = passes.filter_map(|it| self.rate_between(it)).collect();
        rates.sort_unstable_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    }

    fn rate_between(&self, points: &[Sample]) -> Option<f64> {
        let (first, last) = (points.first()?, points.last()?);
        let n = last.ordinal - first.ordinal;
        let gain = self.level(last).since(self.level(first));
        (n > 0).then(|| gain.as_f64() / n as f64)
    }

    /// Its iterations by themselves come to what grew, and the passes of the loop around it leave what they keep.
    fn explains_growth(&self, around: Option<&Self>) -> bool {
        let Some(around) = around else { return true };
        let own = self.rate_in_passes(around);
        let share = own / self.rate_between(&self.points).unwrap_or(f64::INFINITY);
        let least = EXPLAINS.0 * own * self.n_between_passes(around);
        share >= EXPLAINS.0 && share <= EXPLAINS.1 && around.gain().as_f64() >= least
    }

    /// How many of its iterations ended between the first and the last pass of the loop around it whose levels are
    /// known; passes differ in length.
    fn n_between_passes(&self, around: &Self) -> f64 {
        let [first, .., last] = &around.points[..] else {
            return 0.0;
        };
        let n_before = self.points.partition_point(|it| it.at <= first.at);
        let before = n_before.checked_sub(1).map(|idx| self.points[idx].ordinal);
        let n_since = self
            .counted
            .n_iterations
            .saturating_sub(before.unwrap_or_default());
        let n_passes = around.counted.n_iterations.saturating_sub(first.ordinal);
        let n_known = last.ordinal - first.ordinal;
        n_since as f64 * n_known as f64 / n_passes.max(n_known).max(1) as f64
    }
}

/// The loops of a run whose series are judged on a device: those that grow. While the run goes on, a look
/// inside it must have named the holder of the growth.
pub(super) fn judged<'a>(
    recording: &'a Recording,
    run: &Run,
    device: DeviceIdx,
) -> Vec<LoopSeries<'a>> {
    let loops: Vec<&Loop> = recording.loops(run.idx).collect();
    let is_known =
        run.ended.is_some() || recording.holders_inside(run.idx, device).next().is_some();
    if !is_known || loops.is_empty() || has_blocks(recording, run) {
        return Vec::new();
    }
    let find = |idx: LoopIdx| loops.iter().copied().find(|it| it.idx == idx);
    let mut courses: Vec<LoopSeries<'a>> = Vec::new();
    for (series, points) in recording.samples_of(run.idx, device) {
        if let Series::Loop(idx) = series {
            courses.extend(find(*idx).and_then(|counted| LoopSeries::new(counted, points)));
        }
    }
    // The loops around one, from the inside out.
    let around = |counted: &'a Loop| {
        let parent = |it: &&'a Loop| find(it.parent?);
        std::iter::successors(Some(counted), parent)
            .skip(1)
            .take(loops.len())
    };
    let course = |idx: LoopIdx| courses.iter().find(|it| it.counted.idx == idx);
    let explains = |it: &LoopSeries<'a>| {
        let counted = it.counted;
        // What the user has marked is judged by its marks.
        let is_marked = counted.n_marks > 0 || around(counted).any(|outer| outer.n_marks > 0);
        let grows = it.gain() > ByteDelta::ZERO;
        let outer = around(counted).find_map(|outer| course(outer.idx));
        let is_judged = |outer: &LoopSeries<'a>| {
            outer.counted.n_iterations > FEW && outer.gain() > ByteDelta::ZERO
        };
        let is_part = outer.is_some_and(is_judged) && it.place().is_comprehension(recording, run);
        let is_counted = counted.n_iterations > FEW && !is_marked && !is_part;
        is_counted && grows && it.explains_growth(outer)
    };
    let may_begin_anew = |it: &LoopSeries<'a>| {
        let outer = around(it.counted).find(|outer| outer.n_iterations > 1 || outer.was_running);
        outer.is_some_and(|outer| course(outer.idx).is_none())
    };
    let explaining: Vec<bool> = courses.iter().map(explains).collect();
    let begin_anew: Vec<bool> = courses.iter().map(may_begin_anew).collect();
    let is_in = |inner: &LoopSeries<'a>, outer: &LoopSeries<'a>| {
        around(inner.counted).any(|it| it.idx == outer.counted.idx)
    };
    let is_left_to_inner = |(outer, explains_itself): (&LoopSeries<'a>, &bool)| {
        // The user's own loop is what they can change, even if all grows in a loop of a library in it.
        let is_of_user = *explains_itself && !outer.counted.is_library;
        let inner = courses.iter().zip(&explaining);
        let inner = inner.filter(|(it, explains)| **explains && is_in(it, outer));
        let inner = inner.filter(|(it, _)| !(is_of_user && it.counted.is_library));
        // One that feeds the outer loop, such as a generator's, turns with it.
        let inner = inner.filter(|(it, _)| it.rate() >= TURNS_MORE * outer.rate());
        let gain: f64 = inner.map(|(it, _)| it.gain().as_f64()).sum();
        gain >= MOST * outer.gain().as_f64()
    };
    let left = courses.iter().zip(&explaining).map(is_left_to_inner);
    let left: Vec<bool> = left.collect();
    let is_chosen = |idx: usize| {
        let mut outer = (0..courses.len()).filter(|it| explaining[*it] && !left[*it]);
        explaining[idx] && !left[idx] && !outer.any(|it| is_in(&courses[idx], &courses[it]))
    };
    let chosen: Vec<bool> = (0..courses.len()).map(is_chosen).collect();
    let mut chosen = chosen.into_iter();
    for (course, begins_anew) in courses.iter_mut().zip(begin_anew) {
        course.may_begin_anew = begins_anew;
    }
    courses.retain(|_| chosen.next().unwrap_or_default());
    courses
}

/// If a loop was counted in a part of its run, its growth is extrapolated by at most this factor.
const MOST_OF_A_RUN: f64 = 8.0;

/// Whether one of a run's loops grew by most of what the run kept: one of the user's, or any.
pub fn grew_in_a_loop(recording: &Recording, row: &RunRow, is_users: bool) -> bool {
    let is_library = |idx: LoopIdx| {
        recording
            .loops(row.run)
            .any(|it| it.idx == idx && it.is_library)
    };
    let kept = row.kept_alone().unwrap_or_default().as_f64();
    let run = recording.run(row.run);
    let time = run.ended.map(|ended| ended.since(run.started).as_f64());
    let mut series = recording.samples_of(row.run, row.device);
    // A short run is counted in its last part alone.
    let gain = |points: &Points| {
        let known = points.iter();
        let mut known = known.filter_map(|it| Some((it.at, of_sample(&it, row.metric)?)));
        let (first, last) = (known.next()?, known.next_back()?);
        let counted = last.0.since(first.0).as_f64().max(1.0);
        let part = time.map_or(1.0, |time| (time / counted).clamp(1.0, MOST_OF_A_RUN));
        Some(last.1.since(first.1).as_f64() * part)
    };
    series.any(|(series, points)| {
        let Series::Loop(idx) = series else {
            return false;
        };
        let gain = gain(points).filter(|_| !(is_users && is_library(*idx)));
        gain.is_some_and(|gain| gain > 0.0 && gain >= MOST * kept)
    })
}

/// The user has named parts of it, which are judged.
pub(super) fn has_blocks(recording: &Recording, run: &Run) -> bool {
    let later = recording.runs()[run.idx.get() + 1..].iter();
    let meanwhile = later.take_while(|it| run.ended.is_none_or(|ended| it.started <= ended));
    meanwhile.filter(|it| it.parent == Some(run.idx)).count() > 1
}
