//! Names that have more and more, by the cells that add to them.

use std::collections::HashSet;

use gpumem_model::recording::{CellIdx, DeviceIdx, Recording, Run, RunIdx, Status};
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
        of_device: (DeviceIdx, &[RunIdx]),
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
        (device, looks): (DeviceIdx, &[RunIdx]),
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
        let last_look = looks.last().copied().unwrap_or_default();
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
        let start = names.iter().map(|(_, series)| before(series)).sum();
        Self {
            device,
            start,
            levels: levels_after(recording, device, (&runs, looks), start, sum),
            runs,
            names: gained,
            begin_anew: names.iter().all(|(_, series)| series.first > 0),
        }
    }
}

/// The level after each run: at the first look after it that comes before the next. Of what a look found more,
/// each run without one has a share that raised the device's level by about as much.
fn levels_after(
    recording: &Recording,
    device: DeviceIdx,
    (runs, looks): (&[RunIdx], &[RunIdx]),
    start: Bytes,
    level: impl Fn(&RunIdx) -> Bytes,
) -> Vec<Bytes> {
    let mut levels: Vec<Bytes> = Vec::new();
    for (idx, run) in runs.iter().enumerate() {
        let look = looks.get(looks.partition_point(|look| look < run));
        let next = runs.get(idx + 1);
        let Some(look) = look.filter(|look| next.is_none_or(|next| *look < next)) else {
            continue;
        };
        let missed = &runs[levels.len()..idx];
        let mut before = levels.last().copied().unwrap_or(start);
        let more = level(look).saturating_sub(before).as_f64();
        let least = MISSED * more / (missed.len() + 1) as f64;
        let grew = |run: &RunIdx| grown(recording, device, *run) >= least.max(1.0);
        let n_grew = missed.iter().filter(|run| grew(run)).count() + 1;
        let each = Bytes::new((more / n_grew as f64) as u64);
        for run in missed {
            before += if grew(run) { each } else { Bytes::ZERO };
            levels.push(before);
        }
        levels.push(level(look));
    }
    // What the runs after the last look did, nobody saw.
    let last = levels.last().copied().unwrap_or(start);
    levels.resize(runs.len(), last);
    levels
}

/// By how much a run raised the device's level.
fn grown(recording: &Recording, device: DeviceIdx, run: RunIdx) -> f64 {
    let levels = recording.run(run).levels_on(device);
    let grown = levels.and_then(|it| Some(it.after.as_ref()?.in_use()?.since(it.before.in_use()?)));
    grown.map_or(0.0, ByteDelta::as_f64)
}

/// Whether the device's level rose over these runs as if each but the first had kept `each`: a look was missed after
/// them. If the level stays, none was needed.
fn rose(recording: &Recording, device: DeviceIdx, runs: &[RunIdx], each: f64) -> bool {
    let level = |run: &RunIdx| {
        let levels = recording.run(*run).levels_on(device)?;
        levels.after.as_ref()?.in_use()
    };
    let ends = runs
        .first()
        .and_then(level)
        .zip(runs.last().and_then(level));
    let risen = ends.map_or(0.0, |(first, last)| last.as_f64() - first.as_f64());
    risen > 0.0 && risen >= MISSED * each * (runs.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, session};

    #[test]
    fn a_missed_look_is_made_up_for_by_the_next_one() {
        let plays = [run(1), run(1), run(0), run(1), run(1)];
        let (recording, _) = session(&[("kept.append(f(x))", &plays)]);
        let runs: Vec<RunIdx> = (0..5).map(RunIdx).collect();
        let levels = |looks: &[u32], found: &[u64]| {
            let looks: Vec<RunIdx> = looks.iter().map(|run| RunIdx(*run)).collect();
            let at = |run: &RunIdx| Bytes::mib(found[looks.partition_point(|it| it <= run) - 1]);
            let of_runs = (&*runs, &*looks);
            let levels = levels_after(&recording, DeviceIdx(0), of_runs, Bytes::ZERO, at);
            levels.iter().map(|it| it.get() >> 20).collect::<Vec<_>>()
        };
        assert_eq!(levels(&[0, 1, 2, 3, 4], &[1, 2, 2, 3, 4]), [1, 2, 2, 3, 4]);
        assert_eq!(levels(&[0, 4], &[1, 4]), [1, 2, 2, 3, 4]);
        assert_eq!(levels(&[3], &[3]), [1, 2, 2, 3, 3]);
        // What nothing raised the level by, the run with the look has.
        assert_eq!(levels(&[1, 3], &[2, 12]), [1, 2, 2, 12, 12]);
    }
}
