//! The level of a rank over time, on the job's corrected clock.

use super::Rank;
use gpumem_analyzer::{DeviceSummary, Metric, RunRow};
use gpumem_model::downsample::{LevelPoint, few_levels};
use gpumem_model::recording::Sample;
use gpumem_model::units::{Bytes, Nanos};

/// All known levels of its device: samples, marks, and the ends of runs. `instant` converts the recording's times.
pub(super) fn levels(
    rank: &Rank,
    summary: Option<&DeviceSummary>,
    instant: impl Fn(Nanos) -> Nanos,
) -> Vec<LevelPoint> {
    let Some(summary) = summary else {
        return Vec::new();
    };
    let (device, metric) = (summary.device, summary.metric);
    let series = rank.recording.all_samples();
    let series = series.filter(|(_, of, ..)| *of == device);
    let sampled = series.flat_map(|(.., points)| points.iter());
    let sampled = sampled.filter_map(|sample| Some((sample.at, of_sample(&sample, metric)?)));
    let rows = rank.analysis.rows.iter().filter(|row| row.device == device);
    let at_ends = rows.flat_map(|row| {
        let run = rank.recording.run(row.run);
        let (before, after) = of_row(row, metric);
        let before = before.map(|level| (run.started, level));
        let after = run.ended.zip(after);
        [before, after].into_iter().flatten()
    });
    let points = sampled.chain(at_ends).map(|(at, level)| LevelPoint {
        at: instant(at),
        level,
    });
    few_levels(points.collect())
}

/// The level of a sample that a rank is judged by.
pub(super) fn of_sample(sample: &Sample, metric: Metric) -> Option<Bytes> {
    match metric {
        Metric::Allocated => sample.allocated,
        Metric::ProcessUsed => sample.process_used,
        Metric::DeviceUsed => sample.device_used,
    }
}

/// The level before and after a run.
pub(super) fn of_row(row: &RunRow, metric: Metric) -> (Option<Bytes>, Option<Bytes>) {
    match metric {
        Metric::Allocated => row.allocated,
        Metric::ProcessUsed => row.process_used,
        Metric::DeviceUsed => row.device_used,
    }
}
