//! Which runs belong together: growth is judged over runs of equal source.

use std::collections::HashMap;

use super::overlaps;
use super::paths::{BlockIdx, Paths};
use super::row::{Metric, RunRow, of_sample};
use crate::recording::{
    DeviceIdx, Points, Recording, Run, RunIdx, Sample, Series, SourceHash, Status,
};
use crate::units::Bytes;

/// What makes two runs runs of the same thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Position of the first run: series come in the order in which they began.
    first: RunIdx,
    revision: SourceHash,
    /// Names of nested blocks and the label of steps, outermost first.
    pub(super) path: Vec<String>,
    pub(super) device: DeviceIdx,
}

impl Key {
    /// That of the series which begins with `first`.
    pub(super) fn of(
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

    /// Stays the same while the session goes on.
    pub(super) fn id(&self, recording: &Recording) -> String {
        let device = &recording.device(self.device).key;
        format!("{:016x}/{}/{device}", self.revision.0, self.path.join("/"))
    }
}

/// Runs of equal source on one device, with their rows in order.
#[derive(Debug)]
pub(super) struct RunSeries<'a> {
    pub(super) key: Key,
    pub(super) rows: Vec<&'a RunRow>,
}

impl RunSeries<'_> {
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
    let run = recording.run(row.run);
    (run.revision, paths.block(run.idx), row.device)
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
    let key = Key::of(recording, paths, first.run, first.device);
    Some(RunSeries { key, rows })
}

/// Steps of one label inside one run on one device.
#[derive(Debug)]
pub(super) struct StepSeries {
    pub(super) key: Key,
    pub(super) run: RunIdx,
    pub(super) metric: Metric,
    /// The metric where the loop began, if that was marked.
    pub(super) start: Option<Bytes>,
    /// The metric after each step whose mark was kept.
    pub(super) levels: Vec<Bytes>,
    /// How many steps ended.
    pub(super) n_steps: usize,
    /// How many marks lie between two that were kept, on average.
    pub(super) steps_per_point: f64,
}

/// Which steps follow each other: those of the same label, in the same blocks.
pub(super) type StepsOf = (SourceHash, BlockIdx, String, DeviceIdx);

/// The steps that a series of points is of; `None` where it is no series of marks.
fn steps_in(
    recording: &Recording,
    paths: &Paths,
    (run, device): (RunIdx, DeviceIdx),
    series: &Series,
) -> Option<StepsOf> {
    let Series::Marked(label) = series else {
        return None;
    };
    let revision = recording.run(run).revision;
    Some((revision, paths.block(run), label.clone(), device))
}

/// The steps of the latest run of each cell's text: a loop that is run again
/// starts anew.
pub(super) fn of_steps(recording: &Recording, paths: &Paths) -> Vec<StepSeries> {
    let all = recording.all_samples();
    let latest: HashMap<StepsOf, StepSeries> = all
        .filter_map(|(run, device, series, points)| {
            let of = steps_in(recording, paths, (run, device), series)?;
            let steps = steps(recording, paths, (run, device), series, points)?;
            Some((of, steps))
        })
        .collect();
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

/// The marks of one run, series by series; `None` where they are no steps that can be judged.
pub(super) fn steps_of_run<'a>(
    recording: &'a Recording,
    paths: &'a Paths,
    run: &'a Run,
) -> impl Iterator<Item = (StepsOf, Option<StepSeries>)> {
    let all = recording.series_of(run.idx);
    all.filter_map(move |(device, series, points)| {
        let of = steps_in(recording, paths, (run.idx, device), series)?;
        let steps = steps(recording, paths, (run.idx, device), series, points);
        Some((of, steps))
    })
}

/// The steps of one run on one device; `None` where no metric is known of all of them.
fn steps(
    recording: &Recording,
    paths: &Paths,
    (idx, device): (RunIdx, DeviceIdx),
    series: &Series,
    points: &Points,
) -> Option<StepSeries> {
    let Series::Marked(label) = series else {
        return None;
    };
    let all: Vec<Sample> = points.iter().collect();
    let run = recording.run(idx);
    let mut path = paths.names(idx);
    path.push(label.clone());
    let n_begins = usize::from(all.first().is_some_and(|it| it.ordinal == 0));
    let points = &all[n_begins..];
    let metrics = [Metric::Allocated, Metric::ProcessUsed, Metric::DeviceUsed];
    let known = |metric: &Metric| {
        points
            .iter()
            .all(|point| of_sample(point, *metric).is_some())
    };
    let (Some(metric), [first, .., last]) = (metrics.into_iter().find(known), points) else {
        return None;
    };
    let mark = |point: &Sample| Some((point.at, of_sample(point, metric)?));
    let begin = all[..n_begins].first().and_then(mark);
    let marks = begin.into_iter().chain(points.iter().filter_map(mark));
    let alone = overlaps::alone(recording, run, &marks.collect::<Vec<_>>())?;
    let (start, levels) = alone.split_at(usize::from(begin.is_some()));
    let levels: Vec<Bytes> = levels.iter().copied().flatten().collect();
    if levels.len() < 2 {
        return None;
    }
    let n_gaps = (points.len() - 1) as f64;
    Some(StepSeries {
        key: Key {
            first: idx,
            revision: run.revision,
            path,
            device,
        },
        run: idx,
        metric,
        start: start.first().copied().flatten(),
        n_steps: usize::try_from(last.ordinal).unwrap_or(usize::MAX),
        steps_per_point: last.ordinal.saturating_sub(first.ordinal) as f64 / n_gaps,
        levels,
    })
}
