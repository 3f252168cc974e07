//! Judging as a session grows: after a run, only what it can have changed.
//!
//! A run changes its own series, the findings about its devices, and how certain each trend must be,
//! because all series are tested together. So the p of every series is kept, and other parts of a
//! verdict are computed again only if they depend on the run.

mod verdicts;

use std::collections::BTreeSet;

use super::Analysis;
use super::context::Context;
use super::device_rows::{DeviceRows, RowsByDevice};
use super::findings::Finding;
use super::levels;
use super::names::NameHistory;
use super::ongoing::Ongoing;
use super::paths::Paths;
use super::row::{Peak, RunRow};
use super::rules::Rules;
use super::series;
use gpumem_model::recording::{Recording, Run, RunIdx};
use verdicts::Verdicts;

/// Follows a recording from run to run. Its verdicts on a run are those of
/// [`analyze`](super::analyze), at a cost that does not grow with the runs of other cells.
#[derive(Debug, Default)]
pub struct RunAnalyzer {
    /// What the verdicts rest on.
    rules: Option<Rules>,
    n_runs: usize,
    /// One per (run, device), in the order of the runs.
    rows: Vec<RunRow>,
    of_devices: Vec<DeviceRows>,
    paths: Paths,
    names: NameHistory,
    verdicts: Verdicts,
}

/// What is known does not match the recording any more.
struct Outdated;

impl RunAnalyzer {
    /// The rows, findings and device levels that depend on an outermost run and the blocks in it. `changed`
    /// are the runs that changed since the last call.
    pub fn after(
        &mut self,
        recording: &Recording,
        changed: &BTreeSet<RunIdx>,
        run: RunIdx,
        rules: &Rules,
    ) -> Analysis {
        self.verdicts.turn();
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
        let rows = RowsByDevice::new(&self.rows, &self.of_devices);
        let devices = levels::summaries(recording, rows);
        self.names.take_in(recording, changed.first().copied());
        let context = Context {
            names: &self.names,
            recording,
            rows,
            paths: &self.paths,
            devices: &devices,
            rules,
        };
        self.verdicts.renew(context);
        let mut findings = self.verdicts.findings(context, &within);
        let rests_on_it = |finding: &Finding| {
            let mut runs = finding.runs.iter().rev();
            runs.any(|it| within.binary_search(it).is_ok())
        };
        findings.retain(rests_on_it);
        Analysis {
            devices,
            rows: rows.of_run(run).to_vec(),
            findings,
            idle: Vec::new(),
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
        let known = changed.iter().copied();
        let of_new = new.iter().filter(|run| run.parent.is_some());
        let touched: Vec<RunIdx> = known.chain(of_new.map(|run| run.idx)).collect();
        // What a level moved by while both ran depends on the ends of both.
        let beside = touched
            .iter()
            .filter_map(|run| recording.runs().get(run.get()))
            .flat_map(|run| &run.overlaps);
        let outermost: BTreeSet<RunIdx> = touched
            .iter()
            .chain(beside)
            .filter(|run| run.get() < recording.runs().len())
            .map(|run| recording.outermost(*run))
            .filter(|run| run.get() < self.n_runs)
            .collect();
        self.of_devices
            .resize_with(recording.devices().len(), DeviceRows::default);
        let first = outermost.first().map_or(self.n_runs, |run| run.get());
        let ongoing = Ongoing::new(recording, &runs[first.min(self.n_runs)..]);
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
        let n_known = RowsByDevice::new(&self.rows, &self.of_devices)
            .of_run(run.idx)
            .len();
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
        if !series::is_certain(row) {
            return;
        }
        let of = series::series_of(recording, &self.paths, row);
        self.verdicts.take_in(of, place);
    }

    fn take_in_steps(&mut self, recording: &Recording, run: &Run) -> Result<(), Outdated> {
        for (of, steps) in series::steps_of_run(recording, &self.paths, run) {
            let is_known = self.verdicts.rests_on(&of, run.idx);
            match steps {
                // They were known once, and hid those of an earlier run.
                None if is_known => return Err(Outdated),
                None => {}
                Some(_) => self.verdicts.take_in_steps(of, run.idx),
            }
        }
        Ok(())
    }
}

/// It is of a run that has ended, and read at its end: what no later frame changes.
fn tells_an_end(row: &RunRow) -> bool {
    let ends = [row.after, row.reserved.1, row.process_used.1];
    ends.iter().any(Option::is_some) || row.n_retries.is_some()
}

#[cfg(test)]
mod tests;
