//! Which runs belong together: growth is judged over runs of equal source.

use std::collections::HashMap;

use super::finding::CellRef;
use super::levels::{Lane, RunRow, of_sample};
use crate::order;
use crate::recording::{DeviceIdx, Recording, Run, RunIdx, Sample, Series, SourceHash};
use crate::source_text;
use crate::units::Bytes;

/// Of blocks that are nested deeper than a person can read, so many are named.
const MAX_NAMES: usize = 16;

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
    /// The lane after each run.
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
type SeriesOf = (SourceHash, usize, DeviceIdx);

/// The series of runs, in the order in which they began. Only rows whose lane
/// is known at both ends and the same as in the latest run count.
pub(super) fn of_runs<'a>(recording: &Recording, rows: &'a [RunRow]) -> Vec<RunSeries<'a>> {
    let paths = Paths::of(recording);
    let rows = rows.iter().filter(|row| row.kept.is_some());
    let mut rows: Vec<(SeriesOf, &RunRow)> = rows
        .map(|row| {
            let run = recording.run(row.run);
            ((run.revision, paths.block(run.idx), row.device), row)
        })
        .collect();
    order::sort_by(&mut rows, |(a, _), (b, _)| a.cmp(b));
    let mut series: Vec<RunSeries<'_>> = rows
        .chunk_by(|(a, _), (b, _)| a == b)
        .map(|rows| {
            let ((revision, _, device), latest) = &rows[rows.len() - 1];
            let rows = rows.iter().map(|(_, row)| *row);
            let rows: Vec<&RunRow> = rows.filter(|row| row.lane == latest.lane).collect();
            RunSeries {
                key: Key {
                    first: rows[0].run,
                    revision: *revision,
                    path: paths.names(rows[0].run),
                    device: *device,
                },
                rows,
            }
        })
        .collect();
    order::sort_by(&mut series, |a, b| a.key.cmp(&b.key));
    series
}

/// Steps of one label inside one run on one device.
#[derive(Debug)]
pub(super) struct StepSeries {
    pub(super) key: Key,
    pub(super) run: RunIdx,
    pub(super) lane: Lane,
    /// The lane where the loop began, if that was marked.
    pub(super) start: Option<Bytes>,
    /// The lane after each step whose mark was kept.
    pub(super) levels: Vec<Bytes>,
    /// How many steps ended.
    pub(super) n_steps: usize,
    /// How many marks lie between two that were kept, on average.
    pub(super) steps_per_point: f64,
}

/// The steps of the latest run of each cell's text: a loop that is run again
/// starts anew.
pub(super) fn of_steps(recording: &Recording) -> Vec<StepSeries> {
    let paths = Paths::of(recording);
    let mut found = Vec::new();
    for (idx, device, series, points) in recording.all_samples() {
        let Series::Marked(label) = series else {
            continue;
        };
        let points: Vec<Sample> = points.iter().collect();
        let run = recording.run(idx);
        let mut path = paths.names(idx);
        path.push(label.clone());
        let (begin, points) = match points.as_slice() {
            [begin, steps @ ..] if begin.ordinal == 0 => (Some(begin), steps),
            steps => (None, steps),
        };
        let lanes = [Lane::Allocated, Lane::ProcessUsed, Lane::DeviceUsed];
        let known = |lane: &Lane| points.iter().all(|point| of_sample(point, *lane).is_some());
        let (Some(lane), [first, .., last]) = (lanes.into_iter().find(known), points) else {
            continue;
        };
        let levels: Vec<Bytes> = points
            .iter()
            .filter_map(|point| of_sample(point, lane))
            .collect();
        let n_gaps = (levels.len() - 1) as f64;
        let steps = StepSeries {
            key: Key {
                first: idx,
                revision: run.revision,
                path,
                device,
            },
            run: idx,
            lane,
            start: begin.and_then(|begin| of_sample(begin, lane)),
            n_steps: usize::try_from(last.ordinal).unwrap_or(usize::MAX),
            steps_per_point: last.ordinal.saturating_sub(first.ordinal) as f64 / n_gaps,
            levels,
        };
        found.push((steps.key.id(recording), steps));
    }
    found.reverse();
    order::sort_by(&mut found, |(a, _), (b, _)| a.cmp(b));
    found.dedup_by(|(earlier, _), (latest, _)| earlier == latest);
    let mut series: Vec<StepSeries> = found.into_iter().map(|(_, steps)| steps).collect();
    order::sort_by(&mut series, |a, b| a.key.cmp(&b.key));
    series
}

/// A cell as people see it, as of its latest run of that text.
pub(super) fn cell_ref(recording: &Recording, run: &Run) -> CellRef {
    let cell = recording.cell(run.cell);
    let latest = recording.latest_run(run.cell).unwrap_or(run);
    CellRef {
        idx: cell.idx,
        id: cell.id.clone(),
        label: cell_label(recording, run),
        execution_count: latest.execution_count,
    }
}

/// The user's label of a cell's run, else the headline of its source.
pub fn cell_label(recording: &Recording, run: &Run) -> String {
    let outermost = recording.run(recording.outermost(run.idx));
    let label = outermost.label.clone();
    let text = recording.text(run);
    label
        .or_else(|| text.and_then(source_text::headline))
        .unwrap_or_else(|| match outermost.execution_count {
            Some(n) => format!("In [{n}]"),
            None => "a cell".to_owned(),
        })
}

/// The names of the blocks around each run, those inside of the same blocks once.
pub(super) struct Paths<'a> {
    /// Of each run, the block that it is or is in; 0 is the cell itself.
    of_runs: Vec<usize>,
    /// Of each block, which one it is in, and its name.
    blocks: Vec<(usize, &'a str)>,
}

impl<'a> Paths<'a> {
    pub(super) fn of(recording: &'a Recording) -> Self {
        let mut known = HashMap::new();
        let mut paths = Self {
            of_runs: Vec::with_capacity(recording.runs().len()),
            blocks: vec![(0, "")],
        };
        for run in recording.runs() {
            let around = run.parent.map(|parent| paths.of_runs[parent.get()]);
            let block = match (around, run.label.as_deref()) {
                (None, _) => 0,
                (Some(around), None) => around,
                (Some(around), Some(name)) => *known.entry((around, name)).or_insert_with(|| {
                    paths.blocks.push((around, name));
                    paths.blocks.len() - 1
                }),
            };
            paths.of_runs.push(block);
        }
        paths
    }

    fn block(&self, run: RunIdx) -> usize {
        self.of_runs[run.get()]
    }

    /// Names of the blocks from the cell down to this run; of many the innermost.
    pub(super) fn names(&self, run: RunIdx) -> Vec<String> {
        let within = |block: usize| (block > 0).then_some(block);
        let around = |block: &usize| within(self.blocks[*block].0);
        let blocks = std::iter::successors(within(self.block(run)), around);
        let mut names: Vec<&str> = blocks
            .map(|block| self.blocks[block].1)
            .take(MAX_NAMES + 1)
            .collect();
        if let Some(outermost) = names.get_mut(MAX_NAMES) {
            *outermost = "…";
        }
        names.into_iter().rev().map(str::to_owned).collect()
    }
}
