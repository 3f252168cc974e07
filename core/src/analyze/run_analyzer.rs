//! Judging as a session grows: after a run only what it can have changed.
//!
//! A run changes its own series, what is global on its devices, and how surely each trend must
//! hold, for all series are held against each other. So the p of every series is kept, and the
//! rest of a verdict is made again only where it rests on the run.

use std::collections::{BTreeSet, HashMap};

use super::device_rows::{DeviceRows, Rows};
use super::finding::Finding;
use super::leak::{self, Judged, Outcome};
use super::levels::{self, DeviceSummary};
use super::ongoing::Ongoing;
use super::paths::Paths;
use super::row::{Peak, RunRow};
use super::rules::Rules;
use super::series::{self, RunSeries, SeriesOf, StepSeries, StepsOf};
use super::stats_cache::StatsCache;
use super::{
    Analysis, finding, fragmentation, long_lived, oom, peaks, reserve, retention, trend,
    unattributed_growth,
};
use crate::holders::RootKind;
use crate::recording::{DeviceIdx, Recording, Run, RunIdx};
use crate::sort;

/// One who follows a recording from run to run. What it says of a run is what
/// [`analyze`](super::analyze) says, for a cost that does not grow with the runs of other cells.
///
/// ```
/// use std::collections::BTreeSet;
/// use gpumem_core::analyze::{RunAnalyzer, Rules};
/// use gpumem_core::recording::{Cell, Frame, Header, Recording, Run, RunIdx};
/// let mut recording = Recording::new(Header::default());
/// recording.apply(Frame::Cell(Cell::default())).unwrap();
/// recording.apply(Frame::Run(Run::default())).unwrap();
/// let mut incremental = RunAnalyzer::default();
/// let changed = BTreeSet::from([RunIdx(0)]);
/// let analysis = incremental.after(&recording, &changed, RunIdx(0), &Rules::default());
/// assert!(analysis.findings.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct RunAnalyzer {
    stats: StatsCache,
    /// What the verdicts below rest on.
    rules: Option<Rules>,
    n_runs: usize,
    /// One per (run, device), in the order of the runs.
    rows: Vec<RunRow>,
    of_devices: Vec<DeviceRows>,
    paths: Paths,
    places: HashMap<SeriesOf, usize>,
    of_runs: Vec<RowsOfSeries>,
    of_steps: HashMap<StepsOf, Steps>,
    /// Those of all series that have one, in order.
    p_values: Vec<f64>,
    /// The series whose verdicts are older than they are.
    stale: BTreeSet<usize>,
    stale_steps: BTreeSet<StepsOf>,
    /// The others that may be told of as growth.
    growing: BTreeSet<usize>,
    growing_steps: BTreeSet<StepsOf>,
}

/// A series of runs, by the places of its rows.
#[derive(Debug, Default)]
struct RowsOfSeries {
    places: Vec<u32>,
    p: Option<f64>,
}

/// The steps of the latest run of a loop.
#[derive(Debug, Default)]
struct Steps {
    run: RunIdx,
    p: Option<f64>,
}

/// What is known already does not fit what the recording says now.
struct Outdated;

impl RunAnalyzer {
    /// What rests on an outermost run and the blocks in it: its rows, the findings, and how the
    /// devices stand. `changed` are the runs that frames told of since this was last called.
    pub fn after(
        &mut self,
        recording: &Recording,
        changed: &BTreeSet<RunIdx>,
        run: RunIdx,
        rules: &Rules,
    ) -> Analysis {
        self.stats.turn();
        if self.rules != Some(*rules) || self.take_in(recording, changed).is_err() {
            *self = Self {
                rules: Some(*rules),
                ..Self::default()
            };
            let taken = self.take_in(recording, &BTreeSet::new());
            debug_assert!(taken.is_ok(), "nothing is known that could be outdated");
        }
        let within: Vec<RunIdx> = recording.runs()[run.get()..]
            .iter()
            .map(|inner| inner.idx)
            .filter(|inner| recording.outermost(*inner) == run)
            .collect();
        let devices = levels::summaries(recording, Rows::new(&self.rows, &self.of_devices));
        let mut findings = self.findings(recording, &devices, &within, rules);
        let rests_on_it = |finding: &Finding| {
            let mut runs = finding.runs.iter().rev();
            runs.any(|it| within.binary_search(it).is_ok())
        };
        findings.retain(rests_on_it);
        finding::sort(&mut findings);
        Analysis {
            devices,
            rows: self.rows_of(run).to_vec(),
            findings,
            warnings: Vec::new(),
        }
    }

    /// Takes in the runs that are new or have changed, with all that lie in the same outermost
    /// ones: what is sampled there bounds the peaks of blocks, and blocks tell how far a run is.
    fn take_in(
        &mut self,
        recording: &Recording,
        changed: &BTreeSet<RunIdx>,
    ) -> Result<(), Outdated> {
        let runs = recording.runs();
        let new = runs.get(self.n_runs..).ok_or(Outdated)?;
        let known = changed.iter().filter(|run| run.get() < self.n_runs);
        let of_new = new.iter().filter(|run| run.parent.is_some());
        let outermost: BTreeSet<RunIdx> = known
            .copied()
            .chain(of_new.map(|run| run.idx))
            .map(|run| recording.outermost(run))
            .collect();
        self.of_devices
            .resize_with(recording.devices().len(), DeviceRows::default);
        let first = outermost.first().map_or(self.n_runs, |run| run.get());
        let ongoing = Ongoing::of(recording, &runs[first.min(self.n_runs)..]);
        if let Some(first) = outermost.first() {
            for run in runs.get(first.get()..self.n_runs).unwrap_or_default() {
                if outermost.contains(&recording.outermost(run.idx)) {
                    self.renew(recording, &ongoing, run)?;
                }
            }
        }
        for run in new {
            self.paths.take_in(run);
            for row in levels::rows_of(recording, &ongoing, run) {
                self.rows.push(row);
                self.take_in_row(recording, self.rows.len() - 1);
            }
            self.take_in_steps(recording, run)?;
        }
        self.n_runs = runs.len();
        Ok(())
    }

    fn renew(
        &mut self,
        recording: &Recording,
        ongoing: &Ongoing,
        run: &Run,
    ) -> Result<(), Outdated> {
        let first = self.rows.partition_point(|row| row.run < run.idx);
        let n_known = self.rows_of(run.idx).len();
        let rows = levels::rows_of(recording, ongoing, run);
        if rows.len() != n_known || !self.paths.fits(run) {
            return Err(Outdated);
        }
        for (place, row) in (first..).zip(rows) {
            let known = &mut self.rows[place];
            if *known == row {
                continue;
            }
            let has_sunk = row.peak.map(Peak::low) < known.peak.map(Peak::low);
            if tells_an_end(known) || has_sunk || known.device != row.device {
                return Err(Outdated);
            }
            *known = row;
            self.take_in_row(recording, place);
        }
        self.take_in_steps(recording, run)
    }

    fn take_in_row(&mut self, recording: &Recording, place: usize) {
        let row = &self.rows[place];
        let of_device = &mut self.of_devices[row.device.get()];
        of_device.see(place, row);
        if !tells_an_end(row) {
            return;
        }
        of_device.take_in(recording, row);
        if row.kept.is_none() {
            return;
        }
        let n_series = self.of_runs.len();
        let of = series::series_of(recording, &self.paths, row);
        let idx = *self.places.entry(of).or_insert(n_series);
        if idx == n_series {
            self.of_runs.push(RowsOfSeries::default());
        }
        let places = &mut self.of_runs[idx].places;
        let place = u32::try_from(place).expect("a recording has fewer than 2^32 rows");
        places.insert(places.partition_point(|it| *it < place), place);
        self.stale.insert(idx);
    }

    fn take_in_steps(&mut self, recording: &Recording, run: &Run) -> Result<(), Outdated> {
        for (of, steps) in steps_of_run(recording, &self.paths, run) {
            let known = self.of_steps.get(&of).map(|known| known.run);
            match steps {
                // They were known once, and hid those of an earlier run.
                None if known == Some(run.idx) => return Err(Outdated),
                Some(_) if known <= Some(run.idx) => {
                    self.of_steps.entry(of.clone()).or_default().run = run.idx;
                    self.stale_steps.insert(of);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn rows_of(&self, run: RunIdx) -> &[RunRow] {
        let from = self.rows.partition_point(|row| row.run < run);
        let n = self.rows[from..].partition_point(|row| row.run == run);
        &self.rows[from..from + n]
    }

    /// The verdicts on series that have changed, as far as others rest on them.
    fn renew_verdicts(&mut self, recording: &Recording, rules: &Rules) {
        for idx in std::mem::take(&mut self.stale) {
            let known = &mut self.of_runs[idx];
            let Some(series) = joined(recording, &self.paths, &self.rows, known) else {
                continue;
            };
            let outcome = leak::of_runs(recording, &series, rules, &mut self.stats);
            renew_p(&mut self.p_values, &mut known.p, outcome.p);
            note(&mut self.growing, idx, &outcome);
        }
        for of in std::mem::take(&mut self.stale_steps) {
            let Some(known) = self.of_steps.get_mut(&of) else {
                continue;
            };
            let Some(series) = steps_of(recording, &self.paths, known.run, &of) else {
                continue;
            };
            let outcome = leak::of_steps(recording, &series, rules, &mut self.stats);
            renew_p(&mut self.p_values, &mut known.p, outcome.p);
            note(&mut self.growing_steps, of, &outcome);
        }
    }

    /// In the order in which [`analyze`](super::analyze) finds them.
    fn findings(
        &mut self,
        recording: &Recording,
        devices: &[DeviceSummary],
        within: &[RunIdx],
        rules: &Rules,
    ) -> Vec<Finding> {
        self.renew_verdicts(recording, rules);
        let (own, own_steps) = self.own(recording, within);
        let Self {
            stats,
            rows,
            of_devices,
            paths,
            ..
        } = self;
        let all = Rows::new(rows, of_devices);
        let judge = Judge {
            recording,
            paths,
            rows,
            by_device: all,
            devices,
            rules,
            p_bound: trend::p_bound(&self.p_values),
        };
        let of_runs = judge.series(own.iter().map(|idx| &self.of_runs[*idx]));
        let of_steps = judge.steps(own_steps.iter().map(|of| (of, &self.of_steps[of])));
        let mut findings = judge.growth(&of_runs, &of_steps, stats);
        // Asked for seldom, and as dear as it was to find it.
        let mut elsewhere: Option<Vec<Finding>> = None;
        let mut elsewhere = |stats: &mut StatsCache| {
            let others = self.growing.difference(&own);
            let of_runs = || judge.series(others.map(|idx| &self.of_runs[*idx]));
            let others = self.growing_steps.difference(&own_steps);
            let of_steps = || judge.steps(others.map(|of| (of, &self.of_steps[of])));
            elsewhere
                .get_or_insert_with(|| judge.growth(&of_runs(), &of_steps(), stats))
                .clone()
        };
        let of_sessions = recording.devices().iter().filter_map(|device| {
            let of_device = &of_devices[device.idx.get()];
            let is_of_it = within
                .first()
                .is_some_and(|run| of_device.has_level_after(*run));
            if unattributed_growth::is_explained(&findings, device.idx) || !is_of_it {
                return None;
            }
            let found =
                unattributed_growth::finding(recording, of_device, device.idx, rules, stats)?;
            (!unattributed_growth::is_explained(&elsewhere(stats), device.idx)).then_some(found)
        });
        let of_sessions: Vec<Finding> = of_sessions.collect();
        findings.extend(of_sessions);
        // Pieces that are free on a device rest on no run.
        let of_cells = fragmentation::findings(recording, all, &[], &of_runs, rules, stats);
        findings.extend(of_cells);
        findings.extend(peaks::findings(recording, devices, &of_runs));
        findings.extend(reserve::findings(
            recording, all, devices, &of_runs, rules, stats,
        ));
        if judge.is_any(within, |run, device| recording.trace(run, device).is_some()) {
            findings.extend(long_lived::findings(recording, devices));
        }
        if within.iter().any(|run| recording.run(*run).oom.is_some()) {
            findings.extend(oom::findings(recording, all, paths));
        }
        if judge.is_any(within, |run, device| {
            recording.holders(run, device).is_some()
        }) {
            let mut is_told = |device: DeviceIdx, place: RootKind| {
                retention::is_told(&findings, device, place)
                    || retention::is_told(&elsewhere(stats), device, place)
            };
            let kept = retention::findings(recording, all, devices, rules, &mut is_told);
            findings.extend(kept);
        }
        findings
    }

    /// The series that these runs are part of.
    fn own(
        &self,
        recording: &Recording,
        within: &[RunIdx],
    ) -> (BTreeSet<usize>, BTreeSet<StepsOf>) {
        let rows = within.iter().flat_map(|run| self.rows_of(*run));
        let rows = rows.filter(|row| row.kept.is_some());
        let of_rows = rows.filter_map(|row| {
            let of = series::series_of(recording, &self.paths, row);
            self.places.get(&of).copied()
        });
        let of_runs = of_rows.collect();
        let mut of_steps = BTreeSet::new();
        for run in within {
            let of_run =
                steps_of_run(recording, &self.paths, recording.run(*run)).map(|(of, _)| of);
            let is_latest = |of: &StepsOf| self.of_steps.get(of).is_some_and(|it| it.run == *run);
            of_steps.extend(of_run.filter(is_latest));
        }
        (of_runs, of_steps)
    }
}

/// What verdicts rest on beside the series that they are about.
struct Judge<'a> {
    recording: &'a Recording,
    paths: &'a Paths,
    rows: &'a [RunRow],
    by_device: Rows<'a>,
    devices: &'a [DeviceSummary],
    rules: &'a Rules,
    p_bound: f64,
}

impl<'a> Judge<'a> {
    fn series<'b>(&self, of_runs: impl Iterator<Item = &'b RowsOfSeries>) -> Vec<RunSeries<'a>> {
        let series =
            of_runs.filter_map(|known| joined(self.recording, self.paths, self.rows, known));
        let mut series: Vec<RunSeries<'_>> = series.collect();
        sort::sort_by(&mut series, |a, b| a.key.cmp(&b.key));
        series
    }

    fn steps<'b>(
        &self,
        of_steps: impl Iterator<Item = (&'b StepsOf, &'b Steps)>,
    ) -> Vec<StepSeries> {
        let series =
            of_steps.filter_map(|(of, known)| steps_of(self.recording, self.paths, known.run, of));
        let mut series: Vec<StepSeries> = series.collect();
        sort::sort_by(&mut series, |a, b| a.key.cmp(&b.key));
        series
    }

    /// Growth in these series, held against all of them that there are.
    fn growth(
        &self,
        of_runs: &[RunSeries<'_>],
        of_steps: &[StepSeries],
        stats: &mut StatsCache,
    ) -> Vec<Finding> {
        let (recording, rules) = (self.recording, self.rules);
        let mut judged = Vec::new();
        for series in of_runs {
            judged.extend(leak::of_runs(recording, series, rules, stats).judged);
        }
        for series in of_steps {
            judged.extend(leak::of_steps(recording, series, rules, stats).judged);
        }
        let bounds = (self.p_bound, rules);
        leak::told(
            recording,
            self.by_device,
            self.devices,
            of_runs,
            judged,
            bounds,
        )
    }

    fn is_any(&self, within: &[RunIdx], is_it: impl Fn(RunIdx, DeviceIdx) -> bool) -> bool {
        let devices = self.recording.devices();
        let is_of_any = |run: &RunIdx| devices.iter().any(|device| is_it(*run, device.idx));
        within.iter().any(is_of_any)
    }
}

fn joined<'a>(
    recording: &Recording,
    paths: &Paths,
    rows: &'a [RunRow],
    known: &RowsOfSeries,
) -> Option<RunSeries<'a>> {
    let places = known.places.iter();
    let rows: Vec<&RunRow> = places.map(|place| &rows[*place as usize]).collect();
    series::joined(recording, paths, rows)
}

/// The marks of one run, series by series; `None` where they are no steps that can be judged.
fn steps_of_run<'a>(
    recording: &'a Recording,
    paths: &'a Paths,
    run: &'a Run,
) -> impl Iterator<Item = (StepsOf, Option<StepSeries>)> {
    let all = recording.series_of(run.idx);
    all.filter_map(move |(device, series, points)| {
        let of = series::steps_in(recording, paths, (run.idx, device), series)?;
        let steps = series::steps(recording, paths, (run.idx, device), series, points);
        Some((of, steps))
    })
}

fn steps_of(recording: &Recording, paths: &Paths, run: RunIdx, of: &StepsOf) -> Option<StepSeries> {
    let mut all = steps_of_run(recording, paths, recording.run(run));
    all.find(|(it, _)| it == of)?.1
}

/// One series has another p than it had.
fn renew_p(p_values: &mut Vec<f64>, known: &mut Option<f64>, p: Option<f64>) {
    let place = |p_values: &[f64], p: f64| p_values.partition_point(|it| it.total_cmp(&p).is_lt());
    if let Some(known) = *known {
        p_values.remove(place(p_values, known));
    }
    if let Some(p) = p {
        p_values.insert(place(p_values, p), p);
    }
    *known = p;
}

fn note<T: Ord>(growing: &mut BTreeSet<T>, of: T, outcome: &Outcome) {
    if outcome.judged.as_ref().is_some_and(Judged::may_be_growth) {
        growing.insert(of);
    } else {
        growing.remove(&of);
    }
}

/// It is of a run that has ended, and read at its end: what no later frame changes.
fn tells_an_end(row: &RunRow) -> bool {
    let ends = [row.after, row.reserved.1, row.process_used.1];
    ends.iter().any(Option::is_some) || row.n_retries.is_some()
}

#[cfg(test)]
mod tests;
