//! The steps of a rank, else its runs: when each ended, and its level then.

use super::Rank;
use super::levels::{of_row, of_sample};
use gpumem_analyzer::{DeviceSummary, Metric};
use gpumem_model::downsample::{LevelPoint, few_levels};
use gpumem_model::recording::{DeviceIdx, Run, Sample, Series};
use gpumem_model::units::{Bytes, Nanos};

/// The ends of a rank's steps, in order.
#[derive(Debug, Default)]
pub(super) struct RankSteps {
    /// Number, instant by the machine's clock in nanoseconds since 1970, level.
    ends: Vec<(u64, i128, Option<Bytes>)>,
    /// Whether they are runs of cells, because no loop was marked.
    pub(super) are_runs: bool,
}

impl RankSteps {
    /// The longest loop of a rank; the runs of one whose loops are not marked.
    pub(super) fn new(rank: &Rank, summary: Option<&DeviceSummary>) -> Self {
        let anchor = i128::from(rank.recording.header().wall_anchor.get());
        let device = summary.map(|it| it.device);
        let metric = summary.map_or(Metric::Allocated, |it| it.metric);
        let of_device = |it: DeviceIdx| device.is_none_or(|device| device == it);
        let marked = rank
            .recording
            .all_samples()
            .filter(|(_, it, series, _)| of_device(*it) && matches!(series, Series::Marked(_)));
        let Some((.., points)) = marked.max_by_key(|(.., points)| points.len()) else {
            return Self::of_runs(rank, device, metric);
        };
        let end = |point: Sample| {
            let at = anchor + i128::from(point.at.get());
            (point.ordinal, at, of_sample(&point, metric))
        };
        Self {
            ends: points.iter().map(end).collect(),
            are_runs: false,
        }
    }

    /// Every rank runs the same cells: the number of a run is that of its cell among those that ended.
    fn of_runs(rank: &Rank, device: Option<DeviceIdx>, metric: Metric) -> Self {
        let anchor = i128::from(rank.recording.header().wall_anchor.get());
        let runs = rank.recording.runs().iter();
        let outermost = runs.filter(|run| run.parent.is_none());
        let ended = outermost.filter_map(|run| Some((run, run.ended?)));
        let rows = &rank.analysis.rows;
        let level = |idx| {
            let first = rows.partition_point(|row| row.run < idx);
            let mut of_run = rows[first..].iter().take_while(|row| row.run == idx);
            let row = of_run.find(|row| Some(row.device) == device)?;
            of_row(row, metric).1
        };
        let end = |((run, at), number): ((&Run, Nanos), u64)| {
            (number, anchor + i128::from(at.get()), level(run.idx))
        };
        Self {
            ends: ended.zip(1..).map(end).collect(),
            are_runs: true,
        }
    }

    /// The level at the end of each marked step, whose number stands for the instant: few points.
    pub(super) fn levels(&self) -> Vec<LevelPoint> {
        // At the loop's start no step has ended.
        let ends = self.ends.iter();
        let ends = ends.filter(|(number, ..)| *number > 0 && !self.are_runs);
        let levels = ends.filter_map(|(number, _, level)| {
            let at = Nanos::new(*number);
            level.map(|level| LevelPoint { at, level })
        });
        few_levels(levels.collect())
    }

    pub(super) fn n_ended(&self) -> u64 {
        self.ends.last().map_or(0, |end| end.0)
    }

    /// The level at the end of the last step.
    pub(super) fn last(&self) -> Option<Bytes> {
        self.ends.last()?.2
    }

    /// When a step ended, by the machine's clock.
    pub(super) fn at(&self, number: u64) -> Option<i128> {
        let idx = self.ends.binary_search_by_key(&number, |end| end.0).ok()?;
        Some(self.ends[idx].1)
    }

    /// The numbers of the steps whose ends are known.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.ends.iter().map(|end| end.0)
    }

    /// The first step from whose end on the level stays a tenth of all growth above where it began.
    pub(super) fn grown_since(&self) -> Option<u64> {
        let first = self.ends.iter().find_map(|end| end.2)?;
        let grown = self.last()?.saturating_sub(first);
        let bound = first.get().saturating_add(grown.get() / 10);
        let stays = |end: &&(u64, i128, Option<Bytes>)| end.2.is_none_or(|it| it.get() > bound);
        let first = self.ends.iter().rev().take_while(stays).last()?;
        (grown > Bytes::ZERO).then_some(first.0)
    }
}
