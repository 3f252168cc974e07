//! Which runs belong together: growth is judged over runs of equal source.

use std::collections::HashMap;

use super::filled::{self, Items};
use super::loop_place::LoopPlace;
use super::loops;
use super::names::{Freed, NameHistory};
use super::overlaps;
use super::paths::{BlockIdx, Paths};
use super::row::{Metric, RunRow, known_points, of_sample};
use gpumem_model::recording::{
    DeviceIdx, Points, Recording, Run, RunIdx, Sample, Series, SourceHash, Status,
};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// What makes two runs runs of the same thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    /// Position of the first run: series come in the order in which they began.
    first: RunIdx,
    revision: SourceHash,
    /// Names of nested blocks and the label of steps, outermost first.
    pub(super) path: Vec<String>,
    pub(super) device: DeviceIdx,
}

impl SeriesKey {
    /// That of the series which begins with `first`.
    pub(super) fn new(
        recording: &Recording,
        paths: &Paths,
        first: RunIdx,
        device: DeviceIdx,
    ) -> Self {
        Self {
            first,
            revision: recording.run(first).revision,
            path: paths.names(first),
            device,
        }
    }

    /// That of steps in one run.
    pub(super) fn of_steps(run: &Run, path: Vec<String>, device: DeviceIdx) -> Self {
        Self {
            first: run.idx,
            revision: run.revision,
            path,
            device,
        }
    }

    /// Stays the same while the session goes on.
    pub(super) fn id(&self, recording: &Recording) -> String {
        let device = &recording.device(self.device).key;
        format!("{:016x}/{}/{device}", self.revision.0, self.path.join("/"))
    }
}

/// Runs of equal source on one device, with their rows in order.
#[derive(Debug)]
pub(super) struct RunSeries<'a> {
    pub(super) key: SeriesKey,
    pub(super) rows: Vec<&'a RunRow>,
}

impl RunSeries<'_> {
    /// The runs since what earlier ones kept was freed between two of them: its holder was bound anew. If only
    /// the level tells that, it may be a habit: once.
    pub(super) fn since_it_began(&self, names: &NameHistory, least: Bytes) -> Self {
        let (mut first, mut kept, mut has_fallen) = (0, ByteDelta::ZERO, false);
        let runs = self.runs();
        for (idx, pair) in self.rows.windows(2).enumerate() {
            kept += pair[0].kept.unwrap_or_default();
            if !self.key.path.is_empty() || kept <= ByteDelta::ZERO || kept.magnitude() < least {
                continue;
            }
            let fallen = pair[0].after.zip(pair[1].before);
            let fallen = fallen.map_or(Bytes::ZERO, |(after, before)| after.saturating_sub(before));
            let course = (kept.magnitude(), fallen);
            match names.freed(self.key.device, &runs[first..=idx], pair[1].run, course) {
                None => continue,
                Some(Freed::ByLevel) if has_fallen => continue,
                Some(by) => has_fallen |= by == Freed::ByLevel,
            }
            (first, kept) = (idx + 1, ByteDelta::ZERO);
        }
        Self {
            key: self.key.clone(),
            rows: self.rows[first..].to_vec(),
        }
    }

    /// Without the runs that failed and kept nothing: what ran out of memory has not settled.
    pub(super) fn without_failed_runs(&self, recording: &Recording, least: Bytes) -> Self {
        let has_failed = |row: &&RunRow| {
            let has_kept = row
                .kept
                .is_some_and(|kept| kept >= least.since(Bytes::ZERO));
            recording.run(row.run).status != Status::Ok && !has_kept
        };
        let rows = self.rows.iter().copied().filter(|row| !has_failed(row));
        Self {
            key: self.key.clone(),
            rows: rows.collect(),
        }
    }

    /// The metric after each run.
    pub(super) fn levels(&self) -> Vec<Bytes> {
        self.rows.iter().filter_map(|row| row.after).collect()
    }

    /// What the runs kept by themselves, added up from the first one's start:
    /// what other cells did between them does not count.
    pub(super) fn own_levels(&self) -> Vec<Bytes> {
        let start = self.rows.first().and_then(|row| row.before);
        let mut sum = i128::from(start.unwrap_or_default().get());
        self.rows
            .iter()
            .filter_map(|row| row.kept)
            .map(|kept| {
                sum += i128::from(kept.get());
                Bytes::new(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
            })
            .collect()
    }

    /// The runs, oldest first.
    pub(super) fn runs(&self) -> Vec<RunIdx> {
        self.rows.iter().map(|row| row.run).collect()
    }
}

/// Which runs are one series: those of one text, inside the same blocks, on one device.
pub(super) type SeriesOf = (SourceHash, BlockIdx, DeviceIdx);

/// The series that a row is of.
pub(super) fn series_of(recording: &Recording, paths: &Paths, row: &RunRow) -> SeriesOf {
    series_at(recording, paths, row.run, row.device)
}

/// The series that a run's levels on a device are of.
pub(super) fn series_at(
    recording: &Recording,
    paths: &Paths,
    run: RunIdx,
    device: DeviceIdx,
) -> SeriesOf {
    (recording.run(run).revision, paths.block(run), device)
}

/// It tells for certain what its run kept.
pub(super) fn is_certain(row: &RunRow) -> bool {
    row.kept.is_some() && row.overlap.is_none()
}

/// The series of runs, in the order in which they began. Only rows whose metric
/// is known at both ends and the same as in the latest run count, and of those of overlapping runs none.
pub(super) fn of_runs<'a>(
    recording: &Recording,
    paths: &Paths,
    rows: &'a [RunRow],
) -> Vec<RunSeries<'a>> {
    let mut all: HashMap<SeriesOf, Vec<&RunRow>> = HashMap::new();
    for row in rows.iter().filter(|row| is_certain(row)) {
        let of = series_of(recording, paths, row);
        all.entry(of).or_default().push(row);
    }
    let series = all.into_values();
    let series = series.filter_map(|rows| joined(recording, paths, rows));
    in_order_of_runs(series.collect())
}

/// Those of one series, as far as their metric is that of the latest; `None` where there are none.
pub(super) fn joined<'a>(
    recording: &Recording,
    paths: &Paths,
    mut rows: Vec<&'a RunRow>,
) -> Option<RunSeries<'a>> {
    let metric = rows.last()?.metric;
    rows.retain(|row| row.metric == metric);
    let first = rows.first()?;
    let key = SeriesKey::new(recording, paths, first.run, first.device);
    Some(RunSeries { key, rows })
}

/// Steps of one label, or iterations of one loop, inside one run on one device.
#[derive(Debug)]
pub(super) struct StepSeries {
    pub(super) key: SeriesKey,
    pub(super) run: RunIdx,
    pub(super) metric: Metric,
    /// The metric where the loop began, if that was marked.
    pub(super) start: Option<Bytes>,
    /// The metric after each step whose mark was kept.
    pub(super) levels: Vec<Bytes>,
    /// In how many of them the metric rose since the one before, and of how many that is known.
    pub(super) n_grown: (usize, usize),
    /// How many steps ended.
    pub(super) n_steps: usize,
    /// How many marks lie between two that were kept, on average.
    pub(super) steps_per_point: f64,
    /// The loop whose iterations they are, if the user has not marked them.
    pub(super) in_loop: Option<LoopPlace>,
    /// Each pass of the loop around it may have begun anew.
    pub(super) may_begin_anew: bool,
    /// How long one took, on average.
    pub(super) period: Option<Nanos>,
}

/// Which steps follow each other: those of the same label, in the same blocks.
pub(super) type StepsOf = (SourceHash, BlockIdx, String, DeviceIdx);

/// The steps of the latest of these runs of each cell's text: a loop that is run again
/// starts anew.
pub(super) fn of_steps<'a>(
    recording: &'a Recording,
    paths: &'a Paths,
    runs: impl Iterator<Item = &'a Run>,
) -> Vec<StepSeries> {
    let all = runs.flat_map(|run| steps_of_run(recording, paths, run));
    let latest: HashMap<StepsOf, StepSeries> =
        all.filter_map(|(of, steps)| Some((of, steps?))).collect();
    in_order_of_steps(latest.into_values().collect())
}

/// Series of runs, in the order in which they began.
pub(super) fn in_order_of_runs(mut series: Vec<RunSeries<'_>>) -> Vec<RunSeries<'_>> {
    series.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    series
}

/// Series of steps, in the order in which they began.
pub(super) fn in_order_of_steps(mut series: Vec<StepSeries>) -> Vec<StepSeries> {
    series.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    series
}

/// The marks of one run, series by series, `None` where they are no steps that can be judged; and the loops
/// that grow.
pub(super) fn steps_of_run<'a>(
    recording: &'a Recording,
    paths: &'a Paths,
    run: &'a Run,
) -> impl Iterator<Item = (StepsOf, Option<StepSeries>)> {
    let key_of = move |label: &str, device: DeviceIdx| {
        (run.revision, paths.block(run.idx), label.to_owned(), device)
    };
    let all = recording.series_of(run.idx);
    let marked = all.filter_map(move |(device, series, points)| match series {
        Series::Marked(label) => {
            let steps = marked(recording, paths, (run, device), (label, points));
            Some((key_of(label, device), steps))
        }
        Series::Sampled | Series::Loop(_) => None,
    });
    let has_loops = recording.loops(run.idx).next().is_some();
    let is_in_time = !has_loops && is_long(run);
    let devices = run.levels.iter().filter(move |_| is_in_time);
    let in_time = devices.map(move |levels| {
        let steps = seconds(recording, paths, (run, levels.device));
        (key_of(&LoopPlace::of_time().name(), levels.device), steps)
    });
    let devices = run.levels.iter().filter(move |_| has_loops);
    let counted = devices.flat_map(move |levels| {
        let device = levels.device;
        let judged = loops::judged(recording, run, device);
        let steps = move |course: &loops::LoopSeries<'_>| {
            let steps = iterations(recording, paths, (run, device), course)?;
            Some((key_of(&course.place().name(), device), Some(steps)))
        };
        judged.iter().filter_map(steps).collect::<Vec<_>>()
    });
    let filled = run.levels.iter().filter_map(move |levels| {
        let items = filled::items(recording, run, levels.device)?;
        let label = format!("items of {}", items.in_loop.name());
        let mut path = paths.names(run.idx);
        path.push(label.clone());
        let key = SeriesKey::of_steps(run, path, levels.device);
        Some((key_of(&label, levels.device), Some(of_items(key, items))))
    });
    marked.chain(counted).chain(in_time).chain(filled)
}

/// Items are alike, so this many points are enough.
const N_POINTS: u64 = 16;

fn of_items(key: SeriesKey, items: Items) -> StepSeries {
    let n_steps = usize::try_from(items.n).unwrap_or(usize::MAX);
    let level = |point: u64| {
        let share = items.n_bytes.as_f64() * point as f64 / N_POINTS as f64;
        items.start + Bytes::new(share as u64)
    };
    StepSeries {
        run: key.first,
        key,
        metric: items.metric,
        start: Some(items.start),
        levels: (1..=N_POINTS).map(level).collect(),
        n_grown: (n_steps, n_steps),
        n_steps,
        steps_per_point: items.n as f64 / N_POINTS as f64,
        in_loop: Some(items.in_loop),
        may_begin_anew: false,
        period: items.period,
    }
}

/// The steps of one run on one device; `None` where no metric is known of nearly all of them.
fn marked(
    recording: &Recording,
    paths: &Paths,
    place: (&Run, DeviceIdx),
    (label, points): (&str, &Points),
) -> Option<StepSeries> {
    let all: Vec<Sample> = points.iter().collect();
    let n_begins = usize::from(all.first().is_some_and(|it| it.ordinal == 0));
    let (begins, ends) = all.split_at(n_begins);
    let (metric, ends) = known_points(ends.to_vec())?;
    let all = [begins, &ends].concat();
    steps(recording, paths, place, label, (metric, &all, n_begins))
}

/// The iterations of a loop, from the first whose level was read.
fn iterations(
    recording: &Recording,
    paths: &Paths,
    place: (&Run, DeviceIdx),
    course: &loops::LoopSeries<'_>,
) -> Option<StepSeries> {
    let in_loop = course.place();
    let points = (course.metric, &course.points[..], 1);
    let steps = steps(recording, paths, place, &in_loop.name(), points)?;
    Some(StepSeries {
        in_loop: Some(in_loop),
        may_begin_anew: course.may_begin_anew,
        ..steps
    })
}

/// A run without a loop that could be counted is judged by the second, from this time on.
const LONG: Nanos = Nanos::millis(10_000);

fn is_long(run: &Run) -> bool {
    let ended = run.ended.unwrap_or(run.started);
    ended.get().saturating_sub(run.started.get()) >= LONG.get()
}

/// The lowest level of each second of a run in which neither a loop was counted nor a part is named.
fn seconds(
    recording: &Recording,
    paths: &Paths,
    (run, device): (&Run, DeviceIdx),
) -> Option<StepSeries> {
    let mut all = recording.series_of(run.idx);
    let is_marked = all.any(|(_, series, _)| matches!(series, Series::Marked(_)));
    if is_marked || loops::has_blocks(recording, run) {
        return None;
    }
    let sampled = recording.samples(run.idx, device, &Series::Sampled);
    let (metric, all) = known_points(sampled.iter().collect())?;
    let mut points: Vec<Sample> = Vec::new();
    for point in all {
        let second = point.at.get().saturating_sub(run.started.get()) / 1_000_000_000;
        let point = Sample {
            ordinal: second + 1,
            ..point
        };
        match points.last_mut() {
            Some(last) if last.ordinal == point.ordinal => {
                if of_sample(&point, metric) < of_sample(last, metric) {
                    *last = point;
                }
            }
            _ => points.push(point),
        }
    }
    // The last one may have hardly begun.
    points.pop();
    if points.is_empty() {
        return None;
    }
    let in_loop = LoopPlace::of_time();
    let points = (metric, &points[..], 1);
    let steps = steps(recording, paths, (run, device), &in_loop.name(), points)?;
    let first = steps.start.or(steps.levels.first().copied())?;
    let grows = steps.levels.last().is_some_and(|last| *last > first);
    grows.then_some(StepSeries {
        in_loop: Some(in_loop),
        ..steps
    })
}

/// As many levels, at even distances: a loop is read when there is time for it.
fn even(ordinals: &[u64], levels: &[Bytes]) -> Vec<Bytes> {
    let (Some(first), Some(last)) = (ordinals.first(), ordinals.last()) else {
        return Vec::new();
    };
    let n_gaps = ordinals.len().max(2) - 1;
    let distance = (last - first) as f64 / n_gaps as f64;
    let level = |idx: usize| {
        let at = *first as f64 + distance * idx as f64;
        let next = ordinals.partition_point(|it| (*it as f64) < at);
        let next = next.clamp(1, ordinals.len() - 1);
        let (from, to) = (ordinals[next - 1] as f64, ordinals[next] as f64);
        let (low, high) = (levels[next - 1], levels[next]);
        let share = (at - from) / (to - from);
        let more = ByteDelta::from_f64(high.since(low).as_f64() * share);
        let level = i128::from(low.get()) + i128::from(more.get());
        Bytes::new(u64::try_from(level).unwrap_or_default())
    };
    if ordinals.is_sorted_by(|a, b| a < b) && ordinals.len() > 1 {
        (0..ordinals.len()).map(level).collect()
    } else {
        levels.to_vec()
    }
}

/// How long a step took from one point to another, on average.
fn period(first: &Sample, last: &Sample) -> Option<Nanos> {
    let n_steps = last.ordinal.saturating_sub(first.ordinal);
    let nanos = last.at.get().checked_sub(first.at.get())?;
    Some(Nanos::new(nanos.checked_div(n_steps)?))
}

/// The steps at these points, of which the first `n_begins` stand for the start.
fn steps(
    recording: &Recording,
    paths: &Paths,
    (run, device): (&Run, DeviceIdx),
    label: &str,
    (metric, all, n_begins): (Metric, &[Sample], usize),
) -> Option<StepSeries> {
    let mut path = paths.names(run.idx);
    path.push(label.to_owned());
    let (begins, points) = all.split_at(n_begins);
    let [first, .., last] = points else {
        return None;
    };
    let mark = |point: &Sample| Some((point.at, of_sample(point, metric)?));
    let begin = begins.first().and_then(mark);
    let marks = begin.into_iter().chain(points.iter().filter_map(mark));
    let alone = overlaps::alone(recording, run, &marks.collect::<Vec<_>>())?;
    let (start, levels) = alone.split_at(usize::from(begin.is_some()));
    let known = points.iter().zip(levels);
    let known = known.filter_map(|(point, level)| Some((point.ordinal, (*level)?)));
    let (ordinals, levels): (Vec<u64>, Vec<Bytes>) = known.unzip();
    if levels.len() < 2 {
        return None;
    }
    let start = start.first().copied().flatten();
    let course: Vec<Bytes> = start.into_iter().chain(levels.iter().copied()).collect();
    let n_grown = course.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let n_before = begins.first().map_or(0, |it| it.ordinal);
    let n_gaps = (points.len() - 1) as f64;
    Some(StepSeries {
        key: SeriesKey::of_steps(run, path, device),
        run: run.idx,
        metric,
        start,
        n_grown: (n_grown, course.len() - 1),
        n_steps: usize::try_from(last.ordinal - n_before).unwrap_or(usize::MAX),
        steps_per_point: last.ordinal.saturating_sub(first.ordinal) as f64 / n_gaps,
        levels: even(&ordinals, &levels),
        in_loop: None,
        may_begin_anew: false,
        period: period(first, last),
    })
}
