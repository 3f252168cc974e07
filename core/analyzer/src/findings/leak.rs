//! Growth over runs and steps, in findings.

mod decide;
mod in_block;
mod in_loop;
mod names;
mod to_finding;
mod withdrawal;

use super::FindingDetails;
use super::decision::Allocations;
use super::facts;
use super::finding::{Finding, Withdrawn};
use super::growing_holders::{GrowingHolders, Looks};
use crate::cell::CellRef;
use crate::context::Context;
use crate::device_rows::RowsByDevice;
use crate::evidence::{Evidence, Statistic};
use crate::growth::{self, Growth, GrowthVerdict};
use crate::levels::DeviceSummary;
use crate::loop_place::{LoopPlace, LoopUnit};
use crate::reason::Reason;
use crate::row::{Metric, Peak, RunRow};
use crate::series::{RunSeries, SeriesKey, StepSeries};
use crate::stats_cache::StatsCache;
use crate::trend;
use gpumem_model::recording::RunIdx;
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

pub(crate) use names::{add_names, growing_names};

/// Growth that would need more runs, or more steps, to fill the device is no concern.
const NEVER: (u64, u64) = (1_000_000, 10_000_000);

/// From this share of the device on, even slow growth is reported.
const MUCH: f64 = 0.01;

/// Of what grew, at least this share must still be there.
const STILL_THERE: f64 = 0.5;

/// A cell's growth of which the device shows less than this share is given back elsewhere.
const SHOWS: f64 = 0.1;

/// A level that shows this share of what the runs kept shows it all: between them the host's moves a little, too.
const NEARLY_ALL: f64 = 0.95;

/// Growth in these series. Of many some grow by chance: each is held against all of them by `p_bound`, or by
/// that of these series if there are no others.
pub(crate) fn findings(
    context: Context<'_>,
    series_of_runs: &[RunSeries<'_>],
    series_of_steps: &[StepSeries],
    p_bound: Option<f64>,
    stats: &mut StatsCache,
) -> Vec<Finding> {
    let of_runs = series_of_runs
        .iter()
        .map(|series| of_runs(context, series, stats));
    let mut outcomes: Vec<SeriesResult> = of_runs.collect();
    for series in series_of_steps {
        outcomes.push(of_steps(context, series, stats));
    }
    let p_bound = p_bound.unwrap_or_else(|| {
        let mut p_values: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.p).collect();
        p_values.sort_unstable_by(f64::total_cmp);
        trend::p_bound(&p_values)
    });
    let judged = outcomes.into_iter().filter_map(|outcome| outcome.judged);
    let mut judged: Vec<Judged> = judged.collect();
    for judged in &mut judged {
        judged.may_be_chance = judged.growth.may_be_chance(p_bound);
    }
    join_counters(context, &mut judged, series_of_runs, p_bound);
    for judged in &mut judged {
        judged.decide(context);
    }
    found(context, judged)
}

fn found(context: Context<'_>, judged: Vec<Judged>) -> Vec<Finding> {
    let judged = judged.into_iter().flat_map(|it| it.each_name(context));
    let reportable = judged.filter_map(|judged| judged.reportable(context));
    let findings = reportable.map(|judged| judged.finding(context));
    let mut findings: Vec<Finding> = findings
        .filter(|finding| is_worth_telling(context, finding))
        .collect();
    in_loop::tell_once(&mut findings);
    in_block::tell_once(context, &mut findings);
    findings
}

/// What judging a series by itself comes to.
#[derive(Default)]
pub(crate) struct SeriesResult {
    /// p of its trend, where it has enough runs: what all the others are held against, too.
    pub(crate) p: Option<f64>,
    /// Where it may be worth telling.
    pub(crate) judged: Option<Judged>,
}

/// The allocators' counters have a say in the verdict on runs. Steps have none: a mark reads levels.
fn join_counters(
    context: Context<'_>,
    judged: &mut [Judged],
    of_runs: &[RunSeries<'_>],
    p_bound: f64,
) {
    // Both are in the order of their keys.
    let judged = judged.iter_mut().filter(|judged| !judged.steps);
    let mut judged = judged.peekable();
    for series in of_runs {
        while judged.next_if(|it| it.key < series.key).is_some() {}
        let Some(of_it) = judged.next_if(|it| it.key == series.key) else {
            continue;
        };
        let series = series.since_it_began(context.names, of_it.least);
        if let Some((allocations, figure)) = facts::of_counters(&series, p_bound, context.rules)
            && of_it.growth.state.grows()
        {
            of_it.allocations = allocations;
            of_it.growth.evidence.push(figure);
        }
    }
}

/// A series with its verdict.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Judged {
    key: SeriesKey,
    metric: Metric,
    runs: Vec<RunIdx>,
    n_runs: usize,
    n_grown: usize,
    /// Of how many it is known whether they grew.
    n_chances: usize,
    steps: bool,
    /// The loop whose iterations the steps are, if the user has not marked them.
    in_loop: Option<LoopPlace>,
    /// Each pass of the loop around it may have begun anew.
    may_begin_anew: bool,
    /// How long a step takes.
    period: Option<Nanos>,
    growth: Growth,
    /// What the series kept by itself, from `start` on.
    levels: Vec<Bytes>,
    start: Bytes,
    /// What the device holds more at the series' end than at its start.
    stays: ByteDelta,
    /// Growth below this is not worth a word.
    least: Bytes,
    /// In how many first runs it moved, where it stays since.
    n_moving: Option<usize>,
    /// The name that was followed, if no cell's runs were.
    name: Option<String>,
    /// What all names together have more from run to run, if this is of one of several.
    rate_of_all: Option<ByteDelta>,
    /// Another cell frees a part of it.
    is_shared: bool,
    /// What earlier runs kept was freed.
    begins_anew: bool,
    /// Who holds it, and which looks say so.
    growers: GrowingHolders,
    looks: Looks,
    /// Among as many series chance may explain its trend.
    may_be_chance: bool,
    /// What the allocators' counters say.
    allocations: Allocations,
    /// Somebody may want it, as far as is known.
    may_be_meant: bool,
    /// What it is called, and why, once that is decided.
    state: GrowthVerdict,
    reason: Reason,
    /// Why what grew is no concern any more.
    withdrawn: Option<Withdrawn>,
}

/// Both what the runs kept by themselves and the level after them must grow:
/// then neither a neighbour that leaks nor a neighbour that frees misleads.
pub(crate) fn of_runs(
    context: Context<'_>,
    series: &RunSeries<'_>,
    stats: &mut StatsCache,
) -> SeriesResult {
    let least = context.min_growth(series.key.device);
    let latest = series.since_it_began(context.names, least);
    let begins_anew = latest.rows.len() < series.rows.len();
    let series = &latest.without_failed_runs(context.recording, least);
    let (levels, own_levels) = (series.levels(), series.own_levels());
    let mut decisive = &own_levels;
    let (mut state, mut p) = stats.state(&own_levels, least, context.rules);
    // What a series does not keep by itself, its level cannot make grow.
    if state.grows() {
        let of_level = stats.state(&levels, least, context.rules);
        if of_level.0 > state {
            (state, p) = of_level;
            decisive = &levels;
        }
    }
    let p = (state != GrowthVerdict::NotEnoughData).then_some(p);
    let row = series.rows.first().zip(series.rows.last());
    let ends = row.and_then(|(first, last)| Some((first.before?, last.after?, last.metric)));
    let Some((start, end, metric)) = ends else {
        return SeriesResult { p, judged: None };
    };
    let stays = end.since(start);
    let kept = own_levels.last().copied().unwrap_or_default().since(start);
    let shown = share_shown(&levels, &own_levels);
    if !reaches(kept, least) || !reaches(stays, least) || shown < SHOWS {
        return SeriesResult { p, judged: None };
    }
    let mut growth = stats.judged(decisive, least, context.rules);
    // The level has what others keep between the runs; the rate is that of the cell.
    if decisive != &own_levels {
        let own = stats.judged(&own_levels, least, context.rules);
        (growth.bytes_per_run, growth.interval) = (own.bytes_per_run, own.interval);
    }
    let growth = scaled(growth, shown);
    let judged = Judged {
        runs: series.runs(),
        n_runs: levels.len(),
        n_grown: n_positive(series.rows.iter().filter_map(|row| row.kept)),
        stays,
        is_shared: shown < NEARLY_ALL,
        begins_anew,
        ..Judged::new(
            series.key.clone(),
            metric,
            growth,
            (start, own_levels),
            least,
        )
    };
    SeriesResult {
        p,
        judged: Some(judged),
    }
}

/// The same for steps, whose levels come from marks.
pub(crate) fn of_steps(
    context: Context<'_>,
    series: &StepSeries,
    stats: &mut StatsCache,
) -> SeriesResult {
    let least = in_loop::min_growth_of_steps(context, series);
    let (state, p) = stats.state(&series.levels, least, context.rules);
    SeriesResult {
        p: (state != GrowthVerdict::NotEnoughData).then_some(p),
        judged: judged_steps(context, series, stats),
    }
}

fn judged_steps(
    context: Context<'_>,
    series: &StepSeries,
    stats: &mut StatsCache,
) -> Option<Judged> {
    let least = in_loop::min_growth_of_steps(context, series);
    let (first, end) = (*series.levels.first()?, *series.levels.last()?);
    let start = series.start.unwrap_or(first);
    let stays = end.since(start);
    if !reaches(stays, least) {
        return None;
    }
    let growth = stats.judged(&series.levels, least, context.rules);
    let growth = scaled(growth, 1.0 / series.steps_per_point);
    // Items are known by a name.
    let least = match &series.in_loop {
        Some(place) if place.unit == LoopUnit::Item => least,
        _ => context.min_growth(series.key.device),
    };
    let course = (start, series.levels.clone());
    Some(Judged {
        runs: vec![series.run],
        n_runs: series.n_steps,
        n_grown: series.n_grown.0,
        n_chances: series.n_grown.1,
        steps: true,
        in_loop: series.in_loop.clone(),
        may_begin_anew: series.may_begin_anew,
        period: series.period,
        ..Judged::new(series.key.clone(), series.metric, growth, course, least)
    })
}

/// Which share of what the runs after the first kept by themselves the level after them shows:
/// what one cell keeps, another may free.
fn share_shown(levels: &[Bytes], own_levels: &[Bytes]) -> f64 {
    let (shown, kept) = (growth::total(levels), growth::total(own_levels));
    if kept <= ByteDelta::ZERO {
        return 1.0;
    }
    (shown.as_f64() / kept.as_f64()).min(1.0)
}

/// The same growth at another rate.
fn scaled(mut growth: Growth, by: f64) -> Growth {
    let scaled = |delta: ByteDelta| ByteDelta::from_f64(delta.as_f64() * by);
    growth.bytes_per_run = scaled(growth.bytes_per_run);
    growth.interval = (scaled(growth.interval.0), scaled(growth.interval.1));
    growth
}

/// It fills the device one day, or has taken a part of it already.
fn is_worth_telling(context: Context<'_>, finding: &Finding) -> bool {
    let FindingDetails::Growth(details) = &finding.details else {
        return true;
    };
    let never = if details.steps { NEVER.1 } else { NEVER.0 };
    let capacity = context.capacity(finding.device);
    details.runs_to_oom.is_none_or(|n| n <= never)
        || capacity.is_none_or(|it| details.series.total.as_f64() >= MUCH * it.as_f64())
}

/// Whether growth is large enough to report.
fn reaches(grown: ByteDelta, least: Bytes) -> bool {
    grown > ByteDelta::ZERO && grown.magnitude() >= least
}

fn n_positive(deltas: impl Iterator<Item = ByteDelta>) -> usize {
    deltas.filter(|delta| *delta > ByteDelta::ZERO).count()
}

impl Judged {
    /// A series of no runs, of which only the levels are known.
    fn new(
        key: SeriesKey,
        metric: Metric,
        growth: Growth,
        (start, levels): (Bytes, Vec<Bytes>),
        least: Bytes,
    ) -> Self {
        Self {
            key,
            metric,
            runs: Vec::new(),
            n_runs: levels.len(),
            n_grown: 0,
            n_chances: levels.len(),
            steps: false,
            in_loop: None,
            may_begin_anew: false,
            period: None,
            state: growth.state,
            growth,
            stays: levels.last().copied().unwrap_or_default().since(start),
            levels,
            start,
            least,
            n_moving: None,
            name: None,
            rate_of_all: None,
            is_shared: false,
            begins_anew: false,
            growers: GrowingHolders::default(),
            looks: Looks::default(),
            may_be_chance: false,
            allocations: Allocations::Unclear,
            may_be_meant: false,
            reason: Reason::TooFewRuns,
            withdrawn: None,
        }
    }

    /// Whether growth is large enough to report.
    fn is_enough(&self, grown: ByteDelta) -> bool {
        grown > ByteDelta::ZERO && reaches(grown.max(self.grown_by_name()), self.least)
    }

    /// What the series kept by itself.
    fn kept(&self) -> ByteDelta {
        let last = self.levels.last().copied().unwrap_or_default();
        last.since(self.start)
    }

    /// What of that lives: if other cells free a part, its name knows, or the level.
    fn lives(&self, context: Context<'_>) -> ByteDelta {
        let (names, device) = (context.names, self.key.device);
        let ends = self.runs.first().zip(self.runs.last());
        let of_name = |(first, last): (&RunIdx, &RunIdx)| {
            let name = names.key(device, self.growers.holders.first()?);
            let before = first.0.checked_sub(1).map(RunIdx);
            let before = before.and_then(|run| names.level(device, &name, run));
            let after = names.level(device, &name, *last)?;
            Some(after.since(before.unwrap_or_default()))
        };
        let kept = self.kept();
        // The first runs take host memory for libraries, too. What the last one made may have another name.
        let is_noisy = self.metric == Metric::ProcessUsed && !self.steps && self.name.is_none();
        match ends {
            Some(ends) if self.is_shared => {
                kept.min(self.stays.max(of_name(ends).unwrap_or_default()))
            }
            Some(ends) if is_noisy => {
                let named = of_name(ends).filter(|it| it.as_f64() >= STILL_THERE * kept.as_f64());
                let rate = self.growth.bytes_per_run;
                let of_all = ByteDelta::from_f64(rate.as_f64() * self.n_runs as f64);
                named.map_or(kept, |named| kept.min(named.max(of_all.min(named + rate))))
            }
            _ => kept,
        }
    }

    /// Steps whose run has ended count for what that run left: a cache of a generation, or losses
    /// that a backward pass consumed, are gone with it.
    fn is_still_there(&self, rows: RowsByDevice<'_>) -> bool {
        // Names know it: the host's level may fall by what others give back.
        let is_named = self.looks == Looks::AfterRuns
            && self.grown_by_name().as_f64() >= STILL_THERE * self.kept().as_f64();
        self.is_left(rows) || is_named
    }

    /// The level after the last of its runs shows most of it, or there is none yet.
    fn is_left(&self, rows: RowsByDevice<'_>) -> bool {
        let last = self.runs.last().filter(|_| self.steps);
        let row = last.and_then(|run| rows.row(*run, self.key.device));
        let row = row.filter(|row| row.metric == self.metric);
        row.and_then(|row| row.after).is_none_or(|after| {
            let left = after.since(self.start);
            self.is_enough(left) && left.as_f64() >= STILL_THERE * self.kept().as_f64()
        })
    }

    /// Seen from the level it began at, it moved first and then stayed.
    fn settles(&mut self) -> bool {
        let course: Vec<Bytes> = std::iter::once(self.start)
            .chain(self.levels.clone())
            .collect();
        (self.growth.shape, self.n_moving) = growth::settling(&course, self.least);
        self.n_moving.is_some()
    }

    /// Whether it may be reported as growth.
    pub(crate) fn may_be_growth(&self) -> bool {
        match self.growth.state {
            GrowthVerdict::Leak | GrowthVerdict::Suspected => true,
            GrowthVerdict::NotEnoughData => self.n_runs > 1 && self.grew_each_time(),
            GrowthVerdict::Stable => false,
        }
    }

    /// In every run or step of which that is known.
    fn grew_each_time(&self) -> bool {
        self.n_grown >= self.n_chances
    }
}
