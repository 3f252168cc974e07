//! What was judged of each series, kept from run to run.

use std::collections::{BTreeSet, HashMap};

use crate::context::Context;
use crate::findings::Finding;
use crate::findings::checks::{Checks, JudgedSeries, Scope};
use crate::findings::leak::{self, Judged, SeriesResult};
use crate::series::{self, RunSeries, SeriesOf, StepSeries, StepsOf};
use crate::stats_cache::StatsCache;
use crate::trend;
use gpumem_model::recording::RunIdx;

/// The series of a recording, with as much of each verdict as the others rest on.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    stats: StatsCache,
    places: HashMap<SeriesOf, usize>,
    of_runs: Vec<RowsOfSeries>,
    of_steps: HashMap<StepsOf, LoopSteps>,
    /// Those of all series that have one, in order.
    p_values: Vec<f64>,
    /// The series whose verdicts are older than they are.
    stale: BTreeSet<usize>,
    stale_steps: BTreeSet<StepsOf>,
    /// Series that may be reported as growth.
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
struct LoopSteps {
    run: RunIdx,
    p: Option<f64>,
}

impl Verdicts {
    /// Another run is to be judged: what it does not ask for is forgotten with the next.
    pub(super) fn turn(&mut self) {
        self.stats.turn();
    }

    /// A row that is new or has changed.
    pub(super) fn take_in(&mut self, of: SeriesOf, place: usize) {
        let n_series = self.of_runs.len();
        let idx = *self.places.entry(of).or_insert(n_series);
        if idx == n_series {
            self.of_runs.push(RowsOfSeries::default());
        }
        let places = &mut self.of_runs[idx].places;
        let place = u32::try_from(place).expect("a recording has fewer than 2^32 rows");
        places.insert(places.partition_point(|it| *it < place), place);
        self.stale.insert(idx);
    }

    /// The steps of a run, which are judged if no later run has some.
    pub(super) fn take_in_steps(&mut self, of: StepsOf, run: RunIdx) {
        let steps = self
            .of_steps
            .entry(of.clone())
            .or_insert(LoopSteps { run, p: None });
        if steps.run <= run {
            steps.run = run;
            self.stale_steps.insert(of);
        }
    }

    /// The verdict on these steps is on those of that run.
    pub(super) fn rests_on(&self, of: &StepsOf, run: RunIdx) -> bool {
        self.of_steps.get(of).is_some_and(|steps| steps.run == run)
    }

    /// Judges the series that have changed, as far as other verdicts rest on them.
    pub(super) fn renew(&mut self, context: Context<'_>) {
        for idx in std::mem::take(&mut self.stale) {
            let known = &mut self.of_runs[idx];
            let Some(series) = joined(context, known) else {
                continue;
            };
            let outcome = leak::of_runs(context, &series, &mut self.stats);
            renew_p(&mut self.p_values, &mut known.p, outcome.p);
            note(&mut self.growing, idx, &outcome);
        }
        for of in std::mem::take(&mut self.stale_steps) {
            let Some(known) = self.of_steps.get_mut(&of) else {
                continue;
            };
            let Some(series) = steps_of(context, known.run, &of) else {
                continue;
            };
            let outcome = leak::of_steps(context, &series, &mut self.stats);
            renew_p(&mut self.p_values, &mut known.p, outcome.p);
            note(&mut self.growing_steps, of, &outcome);
        }
    }

    /// What rests on one of these runs, and what else was found on the way.
    pub(super) fn findings(&mut self, context: Context<'_>, within: &[RunIdx]) -> Vec<Finding> {
        let (own, own_steps) = self.own(context, within);
        let mut stats = std::mem::take(&mut self.stats);
        let series = JudgedSeries {
            of_runs: self.series(context, own.iter()),
            of_steps: self.steps(context, own_steps.iter()),
        };
        let others = || JudgedSeries {
            of_runs: self.series(context, self.growing.difference(&own)),
            of_steps: self.steps(context, self.growing_steps.difference(&own_steps)),
        };
        let checks = Checks {
            context,
            scope: Scope::Run(within),
            series: &series,
            others: &others,
            p_bound: Some(trend::p_bound(&self.p_values)),
        };
        let findings = checks.findings(&mut stats);
        self.stats = stats;
        findings
    }

    /// The series of these runs, also of one that tells nothing itself, and of blocks in those.
    fn own(&self, context: Context<'_>, within: &[RunIdx]) -> (BTreeSet<usize>, BTreeSet<StepsOf>) {
        let Context {
            recording, paths, ..
        } = context;
        let rows = within.iter().flat_map(|run| context.rows.of_run(*run));
        let of_rows = rows.filter_map(|row| {
            let of = series::series_of(recording, paths, row);
            self.places.get(&of).copied()
        });
        let mut of_runs: BTreeSet<usize> = of_rows.collect();
        // A block's growth is told in place of its cell's, also where the run had no such block.
        let has_around = |of: &usize| {
            let latest = self.of_runs[*of].places.last();
            latest.is_some_and(|place| {
                let row = context.rows.get(*place as usize);
                let mut around = recording.around(row.run);
                around.any(|run| {
                    let of = series::series_at(recording, paths, run, row.device);
                    let place = self.places.get(&of);
                    place.is_some_and(|place| of_runs.contains(place))
                })
            })
        };
        let blocks: Vec<usize> = self.growing.iter().copied().filter(has_around).collect();
        of_runs.extend(blocks);
        let mut of_steps = BTreeSet::new();
        for run in within {
            let of_run = series::steps_of_run(recording, paths, recording.run(*run));
            of_steps.extend(
                of_run
                    .map(|(of, _)| of)
                    .filter(|of| self.rests_on(of, *run)),
            );
        }
        (of_runs, of_steps)
    }

    fn series<'a, 'b>(
        &self,
        context: Context<'a>,
        idxs: impl Iterator<Item = &'b usize>,
    ) -> Vec<RunSeries<'a>> {
        let series = idxs.filter_map(|idx| joined(context, &self.of_runs[*idx]));
        series::in_order_of_runs(series.collect())
    }

    fn steps<'b>(
        &self,
        context: Context<'_>,
        of_steps: impl Iterator<Item = &'b StepsOf>,
    ) -> Vec<StepSeries> {
        let series = of_steps.filter_map(|of| steps_of(context, self.of_steps[of].run, of));
        series::in_order_of_steps(series.collect())
    }
}

fn joined<'a>(context: Context<'a>, known: &RowsOfSeries) -> Option<RunSeries<'a>> {
    let places = known.places.iter();
    let rows = places.map(|place| context.rows.get(*place as usize));
    series::joined(context.recording, context.paths, rows.collect())
}

fn steps_of(context: Context<'_>, run: RunIdx, of: &StepsOf) -> Option<StepSeries> {
    let run = context.recording.run(run);
    let mut all = series::steps_of_run(context.recording, context.paths, run);
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

fn note<T: Ord>(growing: &mut BTreeSet<T>, of: T, outcome: &SeriesResult) {
    if outcome.judged.as_ref().is_some_and(Judged::may_be_growth) {
        growing.insert(of);
    } else {
        growing.remove(&of);
    }
}
