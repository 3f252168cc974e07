//! Growth over runs and steps, in findings.

mod in_loop;
mod names;
mod withdrawal;

use std::ops::RangeInclusive;

use super::decision::{self, Allocations, HolderFacts, Intent, NameCourse, SeriesFacts};
use super::facts;
use super::finding::{Finding, Withdrawn};
use super::held::{self, Growers, Looks};
use super::suggest;
use super::traced;
use super::{Details, GrowthDetails, SeriesGrowth};
use crate::cell::CellRef;
use crate::context::Context;
use crate::device_rows::Rows;
use crate::evidence::{Evidence, Statistic};
use crate::growth::{self, Growth, State};
use crate::levels::DeviceSummary;
use crate::loop_place::{LoopPlace, LoopUnit};
use crate::reason::Reason;
use crate::row::{Metric, Peak, RunRow};
use crate::series::{Key, RunSeries, StepSeries};
use crate::stats_cache::StatsCache;
use crate::trend;
use gpumem_heap as heap;
use gpumem_model::holders::Holder;
use gpumem_model::recording::{Recording, Run, RunIdx};
use gpumem_model::severity::Severity;
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

pub(crate) use names::{add_names, growing_names};

/// Growth that would use up the device within so many runs, or steps, deserves a warning.
const SOON: (u64, u64) = (1000, 100_000);

/// Within so many it has a consequence, whether it is meant or not.
const VERY_SOON: (u64, u64) = (100, 10_000);

/// What has taken this share of the device has one, too.
const TAKEN: f64 = 0.1;

/// Growth that would need more runs, or more steps, to fill the device is no concern.
const NEVER: (u64, u64) = (1_000_000, 10_000_000);

/// From this share of the device on, growth is told of however slow it is.
const MUCH: f64 = 0.01;

/// Names that collect at least this share of what was kept are told one by one.
const SHARED_OUT: f64 = 0.5;

/// Of what grew, at least this share must still be there.
const STILL_THERE: f64 = 0.5;

/// A cell's growth of which the device shows less than this share is given back elsewhere.
const SHOWS: f64 = 0.1;

/// Names that have so much more than the host's level know what took the place of what others freed.
const NAMES_PER_LEVEL: RangeInclusive<f64> = 1.25..=1.6;

/// A level that shows this share of what the runs kept shows it all: between them the host's moves a little, too.
const NEARLY_ALL: f64 = 0.95;

/// A sparkline has at most this many points.
const N_SPARKLINE: usize = 64;

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
    let mut outcomes: Vec<Outcome> = of_runs.collect();
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
    let told = judged.filter_map(|judged| judged.told(context));
    let findings = told.map(|judged| judged.finding(context));
    let mut findings: Vec<Finding> = findings
        .filter(|finding| is_worth_telling(context, finding))
        .collect();
    in_loop::tell_once(&mut findings);
    findings
}

/// What judging a series by itself comes to.
#[derive(Default)]
pub(crate) struct Outcome {
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
        let levels_grow = matches!(of_it.growth.state, State::Leak | State::Suspected);
        let series = series.since_it_began(context.names, of_it.least);
        if let Some((allocations, figure)) = facts::of_counters(&series, p_bound, context.rules)
            && levels_grow
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
    key: Key,
    metric: Metric,
    runs: Vec<RunIdx>,
    n_runs: usize,
    n_grown: usize,
    /// Of how many it is known whether they grew.
    n_chances: usize,
    steps: bool,
    /// The loop whose iterations the steps are, if the user has not marked them.
    in_loop: Option<LoopPlace>,
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
    growers: Growers,
    looks: Looks,
    /// Among as many series chance may explain its trend.
    may_be_chance: bool,
    /// What the allocators' counters say.
    allocations: Allocations,
    /// Somebody may want it, as far as is known.
    may_be_meant: bool,
    /// What it is called, and why, once that is decided.
    state: State,
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
) -> Outcome {
    let least = context.min_growth(series.key.device);
    let latest = series.since_it_began(context.names, least);
    let begins_anew = latest.rows.len() < series.rows.len();
    let series = &latest.without_failed_runs(context.recording, least);
    let (levels, own_levels) = (series.levels(), series.own_levels());
    let mut decisive = &own_levels;
    let (mut state, mut p) = stats.state(&own_levels, least, context.rules);
    // What a series does not keep by itself, its level cannot make grow.
    if matches!(state, State::Leak | State::Suspected) {
        let of_level = stats.state(&levels, least, context.rules);
        if of_level.0 > state {
            (state, p) = of_level;
            decisive = &levels;
        }
    }
    let p = (state != State::NotEnoughData).then_some(p);
    let row = series.rows.first().zip(series.rows.last());
    let ends = row.and_then(|(first, last)| Some((first.before?, last.after?, last.metric)));
    let Some((start, end, metric)) = ends else {
        return Outcome { p, judged: None };
    };
    let stays = end.since(start);
    let kept = own_levels.last().copied().unwrap_or_default().since(start);
    let shown = share_shown(&levels, &own_levels);
    if !reaches(kept, least) || !reaches(stays, least) || shown < SHOWS {
        return Outcome { p, judged: None };
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
    Outcome {
        p,
        judged: Some(judged),
    }
}

/// The same of steps, whose levels are told by marks.
pub(crate) fn of_steps(
    context: Context<'_>,
    series: &StepSeries,
    stats: &mut StatsCache,
) -> Outcome {
    let least = in_loop::min_growth_of_steps(context, series);
    let (state, p) = stats.state(&series.levels, least, context.rules);
    Outcome {
        p: (state != State::NotEnoughData).then_some(p),
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
    let Details::Growth(details) = &finding.details else {
        return true;
    };
    let never = if details.steps { NEVER.1 } else { NEVER.0 };
    let capacity = context.capacity(finding.device);
    details.runs_to_oom.is_none_or(|n| n <= never)
        || capacity.is_none_or(|it| details.series.total.as_f64() >= MUCH * it.as_f64())
}

/// So much growth is worth a word.
fn reaches(grown: ByteDelta, least: Bytes) -> bool {
    grown > ByteDelta::ZERO && grown.magnitude() >= least
}

fn n_positive(deltas: impl Iterator<Item = ByteDelta>) -> usize {
    deltas.filter(|delta| *delta > ByteDelta::ZERO).count()
}

impl Judged {
    /// A series of no runs, of which only the levels are known.
    fn new(
        key: Key,
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
            growers: Growers::default(),
            looks: Looks::default(),
            may_be_chance: false,
            allocations: Allocations::Unclear,
            may_be_meant: false,
            reason: Reason::TooFewRuns,
            withdrawn: None,
        }
    }

    /// Looks for all that is known of it, and decides what it is called.
    fn decide(&mut self, context: Context<'_>) {
        let holders = self.holder_facts(context);
        let (holders, figure) =
            holders.map_or((None, None), |(facts, figure)| (Some(facts), figure));
        let facts = SeriesFacts {
            levels: self.growth.state,
            may_be_chance: self.may_be_chance,
            slows: self.name.is_some() && self.growth.slows,
            allocations: self.allocations,
            holders,
        };
        let figure = figure.filter(|_| facts.grows());
        self.growth.evidence.extend(figure);
        let intent = facts.holders.as_ref().map(|it| it.intent);
        self.may_be_meant = matches!(intent, Some(Intent::May(_)));
        (self.state, self.reason) = decision::decide(&facts);
        self.take_rate_of_loop(context);
    }

    /// Who holds it, if it may be growth, with the figure behind that. On the way its rate becomes that of
    /// the names.
    fn holder_facts(&mut self, context: Context<'_>) -> Option<(HolderFacts, Option<Evidence>)> {
        let is_quiet = self.growth.state == State::Stable;
        let kept = self.kept().magnitude();
        let mut is_filled = false;
        let mut writes_first = false;
        if self.name.is_none() && self.rate_of_all.is_none() {
            if is_quiet && self.in_loop.is_none() {
                return None;
            }
            self.take_growers(context, kept);
            is_filled = self.take_rate_of_filled_name(context, kept);
            if is_quiet && !is_filled {
                return None;
            }
            writes_first = self.writes_first(context);
            // The host's level moves by what others free and take, too.
            let is_noisy = self.is_shared || (self.metric == Metric::ProcessUsed && !self.steps);
            if !writes_first && is_noisy {
                self.take_rate_of_names(context);
            }
        }
        let (course, figure) = self.growers.course(kept).unzip();
        let course = course.unwrap_or(NameCourse::Unclear);
        let n_looked_at = if self.steps { 0 } else { self.n_runs };
        let in_loop = self.loop_facts(context, kept, is_filled);
        let facts = HolderFacts {
            is_named: !self.growers.holders.is_empty(),
            course,
            is_proven: self.growth.state == State::NotEnoughData
                && self.grew_each_time()
                && self.growers.prove(n_looked_at, course),
            collects_early: course == NameCourse::Collects
                && n_looked_at >= held::EARLY_RUNS
                && self.is_collected(context),
            writes_first,
            waits_for_collector: self.growers.wait_for_collector(),
            intent: self.intent(context),
            consequence: self.consequence(context),
            in_loop,
        };
        Some((facts, figure.filter(|_| !writes_first)))
    }

    /// The first name has more storages after each of the runs.
    fn is_collected(&self, context: Context<'_>) -> bool {
        let (names, device) = (context.names, self.key.device);
        let first = self.growers.holders.first();
        first.is_some_and(|it| names.gains_storages(device, &names.key(device, it), &self.runs))
    }

    /// On the host, when the series began, names had more than was in use, by as much as it grew since; and
    /// no name has that much more. An array of zeros takes its memory page by page, when it is written.
    fn writes_first(&self, context: Context<'_>) -> bool {
        let (recording, device) = (context.recording, self.key.device);
        let first = self.runs.first().map(|run| recording.outermost(*run));
        let look = first.and_then(|run| recording.holders_before(run, device));
        let held = look.map_or(Bytes::ZERO, |(_, look)| look.n_bytes);
        let kept = self.kept().magnitude();
        let of_names = self.growers.holders.iter().filter_map(|it| it.grown);
        let of_names = of_names.fold(ByteDelta::ZERO, |sum, grown| sum + grown);
        !recording.device(device).kind.is_accelerator()
            && held.saturating_sub(self.start) >= kept
            && of_names.as_f64() < 0.5 * kept.as_f64()
    }

    /// What the names that hold it have more from run to run, others' runs between them included.
    fn take_rate_of_names(&mut self, context: Context<'_>) {
        let level = |run: &RunIdx| -> Option<Bytes> {
            let holders = self.growers.holders.iter();
            let levels = holders.map(|holder| {
                let name = context.names.key(self.key.device, holder);
                context.names.level(self.key.device, &name, *run)
            });
            levels.sum()
        };
        let levels: Option<Vec<Bytes>> = self.runs.iter().map(level).collect();
        let Some(levels) = levels else {
            return;
        };
        let of_names = growth::classify_growth(&levels, self.least, context.rules);
        let share = of_names.bytes_per_run.as_f64() / self.growth.bytes_per_run.as_f64();
        if of_names.bytes_per_run > ByteDelta::ZERO
            && (self.is_shared || NAMES_PER_LEVEL.contains(&share))
        {
            self.growth.bytes_per_run = of_names.bytes_per_run;
            self.growth.interval = of_names.interval;
        }
    }

    /// Whether somebody may want what holds it: what a name of the user's collects may be what they want.
    fn intent(&self, context: Context<'_>) -> Intent {
        let device = context.recording.device(self.key.device);
        let is_accelerator = device.kind.is_accelerator();
        let is_accident = self.growers.is_accident(is_accelerator);
        if let Some(intent) = self.intent_in_loop(context, is_accident) {
            return intent;
        }
        // What the host holds without a name may be what `malloc` has not given back.
        let is_known = self.growers.is_looked_at() || !is_accelerator;
        match is_known {
            _ if is_accident => Intent::Accident,
            _ if self.growers.are_left_by_collector() => Intent::May(Reason::CollectorOff),
            true => Intent::May(Reason::MayBeMeant),
            false => Intent::Unknown,
        }
    }

    /// It fills the device very soon, or has taken much of it.
    fn consequence(&self, context: Context<'_>) -> Option<Reason> {
        let very_soon = if self.steps { VERY_SOON.1 } else { VERY_SOON.0 };
        let (_, runs_to_oom) = self.forecast(context);
        let soon = runs_to_oom.filter(|n| *n <= very_soon);
        let capacity = context.capacity(self.key.device);
        let taken = self.lives(context);
        let is_much = capacity.is_some_and(|it| taken.as_f64() >= TAKEN * it.as_f64());
        let much = is_much.then(|| Reason::TakesMuch {
            taken: taken.magnitude(),
        });
        soon.map(|n_runs| Reason::FullSoon { n_runs }).or(much)
    }

    /// What is left for it, and how many more runs or steps of its rate that takes.
    fn forecast(&self, context: Context<'_>) -> (Option<Bytes>, Option<u64>) {
        let device = self.key.device;
        let rate = self.rate_of_all.unwrap_or(self.growth.bytes_per_run);
        let row = self.runs.last();
        let row = row.and_then(|run| context.rows.row(*run, device));
        let headroom = row
            .zip(context.summary(device))
            .and_then(|(row, device)| headroom(row, device));
        let grows = rate > ByteDelta::ZERO;
        let runs = headroom.filter(|_| grows);
        let runs = runs.map(|left| left.get() / rate.magnitude().get());
        (headroom, runs)
    }

    /// What each name has of it, if several collect.
    fn each_name(self, context: Context<'_>) -> Vec<Self> {
        let grows = matches!(self.state, State::Leak | State::Suspected);
        let n_steps = self.steps.then_some(self.n_runs);
        let all = self.growers.each(context.recording, n_steps, self.looks);
        let grown = |growers: &Growers| {
            let grown = growers.holders.iter().filter_map(|it| it.grown);
            grown.map(ByteDelta::as_f64).sum::<f64>()
        };
        let sum = all.iter().map(grown).sum::<f64>();
        if !grows || all.is_empty() || sum < SHARED_OUT * self.kept().as_f64() {
            return vec![self];
        }
        let of_name = |growers: Growers| {
            let share = grown(&growers) / sum;
            self.of_name(context, growers, share)
        };
        all.into_iter().map(of_name).collect()
    }

    /// The share of it that one name has.
    fn of_name(&self, context: Context<'_>, growers: Growers, share: f64) -> Self {
        let of_start = |level: &Bytes| {
            let more = ByteDelta::from_f64(level.since(self.start).as_f64() * share);
            self.start + more.max(ByteDelta::ZERO).magnitude()
        };
        let mut it = Self {
            growth: scaled(self.growth.clone(), share),
            levels: self.levels.iter().map(of_start).collect(),
            stays: ByteDelta::from_f64(self.stays.as_f64() * share),
            rate_of_all: Some(self.growth.bytes_per_run),
            growers,
            ..self.clone()
        };
        if !it.steps {
            let evidence = &mut it.growth.evidence;
            evidence.retain(|figure| figure.statistic != Statistic::Held);
            it.is_shared = true;
            it.take_rate_of_names(context);
            it.decide(context);
        }
        it
    }

    /// Itself, if it is a verdict that a person wants to read: growth, that it has
    /// settled, or that it is over.
    fn told(mut self, context: Context<'_>) -> Option<Self> {
        let is_returned = self.is_returned(context);
        let grew = self.is_enough(self.kept()) && self.is_enough(self.stays);
        let grew = grew && (is_returned || self.is_still_there(context.rows));
        let told = match self.state {
            _ if self.is_bounded() && self.in_loop.is_none() => grew && self.n_runs > 1,
            State::Suspected if self.counts_items() && self.reason != Reason::MayBeMeant => false,
            State::Leak | State::Suspected => grew,
            // A loop that is over has no more iterations, and nobody asked whether it settles.
            State::NotEnoughData | State::Stable if self.in_loop.is_some() => false,
            // It may be freed again.
            State::NotEnoughData if self.begins_anew && !self.growers.are_accident() => false,
            State::NotEnoughData => grew && self.n_runs > 1 && self.grew_each_time(),
            State::Stable => grew && self.settles(),
        };
        if told && (self.state != State::Stable || self.is_bounded()) {
            let returned = Some(Withdrawn::Returned).filter(|_| is_returned);
            self.withdrawn = returned.or_else(|| self.reason_to_withdraw(context));
        }
        told.then_some(self)
    }

    /// It ends by itself: with its input, or when what collects it is full.
    fn is_bounded(&self) -> bool {
        self.state == State::Stable && self.reason.is_bound()
    }

    /// So much is worth a word.
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
        let shared = ends.filter(|_| self.is_shared);
        shared.map_or(self.kept(), |ends| {
            self.kept()
                .min(self.stays.max(of_name(ends).unwrap_or_default()))
        })
    }

    /// Steps whose run has ended count for what that run left: a cache of a generation, or losses
    /// that a backward pass consumed, are gone with it.
    fn is_still_there(&self, rows: Rows<'_>) -> bool {
        // Names know it: the host's level may fall by what others give back.
        let is_named = self.looks == Looks::AfterRuns
            && self.grown_by_name().as_f64() >= STILL_THERE * self.kept().as_f64();
        self.is_left(rows) || is_named
    }

    /// The level after the last of its runs shows most of it, or there is none yet.
    fn is_left(&self, rows: Rows<'_>) -> bool {
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

    /// It may be told of as growth, whatever else is known.
    pub(crate) fn may_be_growth(&self) -> bool {
        match self.growth.state {
            State::Leak | State::Suspected => true,
            State::NotEnoughData => self.n_runs > 1 && self.grew_each_time(),
            State::Stable => false,
        }
    }

    /// In every run or step of which that is known.
    fn grew_each_time(&self) -> bool {
        self.n_grown >= self.n_chances
    }

    fn finding(self, context: Context<'_>) -> Finding {
        let recording = context.recording;
        let run = recording.run(*self.runs.last().expect("a series has runs"));
        let device = self.key.device;
        let rate = self.growth.bytes_per_run;
        let grows = self.state != State::Stable && self.withdrawn.is_none();
        let (headroom, runs_to_oom) = self.forecast(context);
        let runs_to_oom = runs_to_oom.filter(|_| grows);
        let text = recording.text(run);
        let traced = traced::latest(recording, &self.runs, device).filter(|_| !self.steps);
        let mut evidence = self.growth.evidence.clone();
        evidence.extend(traced.map(|trace| traced::evidence(trace, rate)));
        let first = self.growers.holders.first();
        let of_several = self.rate_of_all.and(first).map(|it| it.name.clone());
        // What a function keeps until it returns, its next call keeps again.
        let may_change = grows || self.withdrawn == Some(Withdrawn::Returned);
        let fix = first
            .filter(|_| may_change)
            .and_then(|holder| suggest::fix(recording, device, run, holder));
        let is_cured = fix.as_ref().is_some_and(|fix| fix.before.is_some());
        let advice = if grows && !is_cured {
            suggest::against_growth(recording, device, text, self.steps, first)
        } else {
            Vec::new()
        };
        let details = GrowthDetails {
            series: SeriesGrowth {
                shape: self.growth.shape,
                bytes_per_run: rate,
                interval: self.growth.interval,
                total: self.lives(context).max(self.shown_by_name(context)),
                sparkline: sparkline(&self.levels),
            },
            statement: first.and_then(|holder| statement(recording, run, holder)),
            by: first.and_then(|holder| beside(holder, text)),
            steps: self.steps,
            in_loop: self.in_loop.clone(),
            of_names: self.name.is_some(),
            n_grown: self.n_grown,
            n_known: self.n_chances,
            n_moving: self.n_moving,
            n_missing: self.n_missing(),
            headroom,
            runs_to_oom,
            time_to_oom: self
                .period
                .zip(runs_to_oom)
                .map(|(each, n)| Nanos::new(each.get().saturating_mul(n))),
            traced: traced.map(|trace| traced::run(trace, rate)),
            advice,
        };
        Finding {
            id: match &self.name.clone().or(of_several) {
                Some(name) => format!("{}/{name}", self.key.id(recording)),
                None => self.key.id(recording),
            },
            kind: decision::kind(self.state, self.reason, self.withdrawn),
            severity: self.severity(headroom, runs_to_oom),
            state: Some(match self.withdrawn {
                Some(_) => State::Stable,
                None => self.state,
            }),
            reason: Some(self.reason),
            withdrawn: self.withdrawn,
            cell: Some(CellRef::of(recording, run)),
            path: self.key.path,
            device,
            metric: self.metric,
            runs: self.runs,
            n_runs: self.n_runs,
            holders: self.growers.holders,
            fix,
            known_leak: None,
            evidence,
            details: Details::Growth(Box::new(details)),
        }
    }

    /// How many more runs tell whether it leaks: none if a name has decided it already, or its owner has to.
    fn n_missing(&self) -> usize {
        match self.state {
            _ if self.may_be_meant => 0,
            State::NotEnoughData if self.growers.may_prove(self.n_runs) => {
                held::ENOUGH_RUNS.saturating_sub(self.n_runs)
            }
            State::NotEnoughData => self.growth.n_missing,
            _ => 0,
        }
    }

    fn severity(&self, headroom: Option<Bytes>, runs_to_oom: Option<u64>) -> Severity {
        let soon = if self.steps { SOON.1 } else { SOON.0 };
        let is_soon = runs_to_oom.is_none_or(|n| n <= soon);
        let is_excused = self.reason.is_meant() || self.reason == Reason::WaitsForCollector;
        match (self.state, self.reason) {
            _ if self.withdrawn.is_some() => Severity::Info,
            _ if self.in_loop.is_some() && (is_excused || !self.growers.is_looked_at()) => {
                Severity::Info
            }
            (State::Leak, _) if is_soon => Severity::Critical,
            (State::Suspected, _) if is_soon => Severity::Warning,
            (State::Leak, _) => Severity::Warning,
            (State::Stable, Reason::Fills { when_full, .. }) => {
                let more = when_full.since(self.kept().magnitude());
                let fits = headroom.is_none_or(|left| more <= left.since(Bytes::ZERO));
                if fits {
                    Severity::Info
                } else {
                    Severity::Warning
                }
            }
            _ => Severity::Info,
        }
    }
}

/// What fills a holder beside the cells, unless the cell has the holder's name and may do so itself.
fn beside(holder: &Holder, text: Option<&str>) -> Option<String> {
    let by = Some(&holder.traits.filled_by).filter(|by| !by.is_empty())?;
    let is_own = text.is_some_and(|text| source_text::has_word(text, &holder.name));
    (!is_own).then(|| by.clone())
}

/// The line that keeps what a holder has.
fn statement(recording: &Recording, run: &Run, holder: &Holder) -> Option<String> {
    let outermost = recording.run(recording.outermost(run.idx));
    let text = recording.text(run).filter(|_| outermost.label.is_none())?;
    source_text::headline(heap::keeping_statement(holder, text)?)
}

/// What is left for growth: free in the device and in the allocator's cache,
/// less what a run needs above its end.
fn headroom(row: &RunRow, device: &DeviceSummary) -> Option<Bytes> {
    let cached = match (device.allocated, device.reserved) {
        (Some(allocated), Some(reserved)) => reserved.saturating_sub(allocated),
        _ => Bytes::ZERO,
    };
    let level = row.after.or(row.so_far).or(row.before)?;
    let above_end = row
        .peak
        .map_or(Bytes::ZERO, Peak::low)
        .saturating_sub(level);
    Some((device.free()? + cached).saturating_sub(above_end))
}

fn sparkline(levels: &[Bytes]) -> Vec<f64> {
    let values: Vec<f64> = levels.iter().map(|level| level.as_f64()).collect();
    if values.len() > N_SPARKLINE {
        trend::block_minima(&values, N_SPARKLINE)
    } else {
        values
    }
}
