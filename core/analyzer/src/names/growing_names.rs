//! Names that have more and more, by the cells that add to them.

use std::collections::HashSet;

use gpumem_model::recording::{CellIdx, DeviceIdx, Recording, Run, RunIdx, Sample, Status};
use gpumem_model::units::{ByteDelta, Bytes};

use super::name_series::NameSeries;
use super::{NameKey, WORTH_NAMING};

/// Runs without a look that raised the level by this share of what the names gained in each before were not seen.
const MISSED: f64 = 0.5;

/// Names that have more and more, most often by runs of one cell.
#[derive(Debug)]
pub(crate) struct GrowingNames {
    pub(crate) device: DeviceIdx,
    /// The runs of the cells that add to them, since the first that did.
    pub(crate) runs: Vec<RunIdx>,
    /// What they had before those, and after each of them.
    pub(crate) start: Bytes,
    pub(crate) levels: Vec<Bytes>,
    /// With what each has gained, the most first.
    pub(crate) names: Vec<(NameKey, ByteDelta)>,
    /// They were emptied before.
    pub(crate) begin_anew: bool,
}

impl GrowingNames {
    /// Those of which each has a good part of what all gained, one by one; all together if there are none.
    pub(super) fn each(
        recording: &Recording,
        of_device: (DeviceIdx, RunIdx),
        names: &[(&NameKey, &NameSeries)],
    ) -> Vec<Self> {
        let all = Self::new(recording, of_device, names);
        let total: f64 = all.names.iter().map(|(_, gained)| gained.as_f64()).sum();
        let is_worth = |name: &NameKey| {
            let gained = all.names.iter().find(|(it, _)| it == name);
            gained.is_some_and(|(_, gained)| gained.as_f64() >= WORTH_NAMING * total)
        };
        let worth = names.iter().filter(|(name, _)| is_worth(name));
        let each = worth.map(|name| Self::new(recording, of_device, std::slice::from_ref(name)));
        let each: Vec<Self> = each.collect();
        if each.is_empty() { vec![all] } else { each }
    }

    fn new(
        recording: &Recording,
        (device, last_look): (DeviceIdx, RunIdx),
        names: &[(&NameKey, &NameSeries)],
    ) -> Self {
        let adders = names
            .iter()
            .flat_map(|((_, name), series)| series.adders(recording, name));
        let cells: HashSet<CellIdx> = adders.map(|(cell, _)| cell).collect();
        let is_of_them = |run: &Run| cells.contains(&run.cell) && run.parent.is_none();
        let doers = names.iter();
        let doers = doers.flat_map(|((_, name), series)| series.doers(recording, name));
        let of_cells = doers.filter(|run| is_of_them(run));
        let first = of_cells.map(|run| run.idx).min().unwrap_or_default();
        let runs = recording.runs()[first.get()..].iter();
        let runs = runs.filter(|run| is_of_them(run));
        let sum = |run: &RunIdx| -> Bytes {
            let levels = names.iter().map(|(_, series)| series.after(*run));
            levels.sum()
        };
        // What ran out of memory has not settled.
        let mut level = Bytes::ZERO;
        let counts = |run: &&Run| {
            let before = std::mem::replace(&mut level, sum(&run.idx));
            run.status == Status::Ok || level > before
        };
        let mut runs: Vec<RunIdx> = runs.filter(counts).map(|run| run.idx).collect();
        let last_look = recording.outermost(last_look);
        let n_looked_at = runs.partition_point(|run| *run <= last_look);
        let levels = runs[..n_looked_at].iter().map(sum);
        let each = levels.max().unwrap_or_default().as_f64() / n_looked_at.max(1) as f64;
        if rose(
            recording,
            device,
            &runs[n_looked_at.saturating_sub(1)..],
            each,
        ) {
            runs.truncate(n_looked_at);
        }
        let before = |series: &NameSeries| match first.0.checked_sub(1) {
            Some(before) if first > series.points[series.first].run => series.after(RunIdx(before)),
            _ => series.start,
        };
        let gained = names.iter().map(|(name, series)| {
            let gained = series.now().since(before(series));
            ((*name).clone(), gained)
        });
        let mut gained: Vec<(NameKey, ByteDelta)> = gained.collect();
        gained.sort_by_key(|(_, gained)| std::cmp::Reverse(*gained));
        Self {
            device,
            start: names.iter().map(|(_, series)| before(series)).sum(),
            levels: runs.iter().map(sum).collect(),
            runs,
            names: gained,
            begin_anew: names.iter().all(|(_, series)| series.first > 0),
        }
    }
}

/// Whether the device's level rose over these runs as if each but the first had kept `each`: a look was missed after
/// them. If the level stays, none was needed.
fn rose(recording: &Recording, device: DeviceIdx, runs: &[RunIdx], each: f64) -> bool {
    let level = |run: &RunIdx| {
        let mut levels = recording.run(*run).levels.iter();
        let after = levels.find(|it| it.device == device)?.after.as_ref()?;
        let sample = Sample::from_reading(after);
        sample.allocated.or(sample.process_used)
    };
    let ends = runs
        .first()
        .and_then(level)
        .zip(runs.last().and_then(level));
    let risen = ends.map_or(0.0, |(first, last)| last.as_f64() - first.as_f64());
    risen > 0.0 && risen >= MISSED * each * (runs.len() - 1) as f64
}
