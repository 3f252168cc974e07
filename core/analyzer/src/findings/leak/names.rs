//! Growth of names, whichever cells add to them.

use super::super::growing_holders::{self, Looks};
use super::super::suggest;
use super::super::{Finding, FindingKind};
use super::{GrowingHolders, Judged, found, n_positive, reaches};
use crate::context::Context;
use crate::growth::GrowthVerdict;
use crate::names::{self, GrowingNames, NameHistory, NameKey};
use crate::series::SeriesKey;
use crate::stats_cache::StatsCache;
use gpumem_heap::Uses;
use gpumem_model::holders::variable_of;
use gpumem_model::recording::CellIdx;
use gpumem_model::units::Bytes;

/// A name that has more after each of this many runs collects, however little.
const MANY_RUNS: usize = 7;

/// The names that have more and more, on every device: those that `only` one cell adds to, if that is
/// given.
pub(crate) fn growing_names(context: Context<'_>, only: Option<CellIdx>) -> Vec<GrowingNames> {
    let devices = context.recording.devices().iter();
    let growing = devices.flat_map(|device| {
        let least = context.min_growth_of_names(device.idx);
        let least = (least, context.min_growth(device.idx));
        let names = context.names;
        names.growing(context.recording, device.idx, least, only)
    });
    growing.collect()
}

/// Adds the findings about names that have more and more, where none of `findings` tells of the first
/// for certain, and removes what they overrule.
pub(crate) fn add_names(context: Context<'_>, findings: &mut Vec<Finding>, stats: &mut StatsCache) {
    let names = context.names;
    let first = |it: &Finding| {
        it.holders
            .first()
            .map(|holder| names.key(it.device, holder))
    };
    let is_early = |it: &Finding| it.state == Some(GrowthVerdict::NotEnoughData);
    let (early, late): (Vec<Finding>, Vec<Finding>) = findings.drain(..).partition(is_early);
    let mut growing = growing_names(context, None);
    growing.retain(|growing| {
        let first = growing.names.first();
        first.is_some_and(|(name, _)| {
            !growing_holders::is_reported(names, &late, growing.device, name)
        })
    });
    let judged = growing.iter();
    let judged = judged.filter_map(|growing| judged_names(context, growing, stats));
    let mut found = found(context, judged.collect());
    let cell = |finding: &Finding| finding.cell.as_ref().map(|cell| cell.idx);
    found.retain(|it| {
        let is_told = |name: NameKey| growing_holders::is_reported(names, &early, it.device, &name);
        // That it is over is said once.
        let is_same = |by: &Finding| {
            by.withdrawn == it.withdrawn && by.device == it.device && first(by) == first(it)
        };
        let is_over = it.withdrawn.is_some() && late.iter().any(is_same);
        // What settled, its cell's series knows as well, and whole.
        let has_settled = |it: &Finding| it.kind == FindingKind::Settled && it.withdrawn.is_none();
        let of_cell = |by: &Finding| has_settled(by) && cell(by) == cell(it);
        let is_known =
            has_settled(it) && late.iter().any(|by| of_cell(by) && by.device == it.device);
        !is_over && !is_known && (!is_early(it) || !first(it).is_some_and(is_told))
    });
    // What a cell adds to a name, its series has not settled, and needs no more runs.
    let is_overruled = |it: &Finding| {
        let mut by = found.iter().filter(|by| by.device == it.device);
        by.any(|by| {
            let is_same = cell(by) == cell(it) && by.withdrawn.is_none();
            let has_settled = it.kind == FindingKind::Settled && is_same;
            // What grows in it is known better.
            let is_whole = is_same && it.kind != FindingKind::Leak && is_whole_of(names, it, by);
            // Nobody knew who holds it.
            let total = |of: &Finding| of.growth().map(|growth| growth.total.as_f64());
            let is_most = 2.0 * total(by).unwrap_or_default() >= total(it).unwrap_or_default();
            let is_unnamed = is_same && it.holders.is_empty() && is_most;
            has_settled || is_whole || is_unnamed || (is_early(it) && first(by) == first(it))
        })
    };
    let reported = early.into_iter().chain(late);
    findings.extend(reported.filter(|it| !is_overruled(it)));
    findings.extend(found);
}

/// The first holder of `it` is the object of which `by` names a branch.
fn is_whole_of(names: &NameHistory, it: &Finding, by: &Finding) -> bool {
    let first = |of: &Finding| Some(names.key(of.device, of.holders.first()?));
    let (Some(it), Some(by)) = (first(it), first(by)) else {
        return false;
    };
    names::is_branch(&by) && it.1 == variable_of(&by.1)
}

impl Judged {
    /// However little it is: runs enough for a verdict, or nearly so many and more after each of them, and either a
    /// sign of an accident, or no cell reads what the name collects.
    fn is_certain(&self, context: Context<'_>) -> bool {
        let grows = match self.state {
            GrowthVerdict::Leak | GrowthVerdict::Suspected => true,
            GrowthVerdict::NotEnoughData => self.n_runs >= MANY_RUNS && self.grew_each_time(),
            GrowthVerdict::Stable => false,
        };
        let last = self.runs.last().filter(|_| grows);
        let holder = self.growers.holders.first();
        last.zip(holder).is_some_and(|(run, holder)| {
            let run = context.recording.run(*run);
            let uses = || suggest::uses(context.recording, run, holder);
            !self.may_be_meant || matches!(uses(), Uses::None | Uses::LooksUp)
        })
    }
}

fn judged_names(
    context: Context<'_>,
    growing: &GrowingNames,
    stats: &mut StatsCache,
) -> Option<Judged> {
    let least = context.min_growth_of_names(growing.device);
    let first = *growing.runs.first()?;
    let course = std::iter::once(&growing.start).chain(&growing.levels);
    let course: Vec<Bytes> = course.copied().collect();
    let growth = stats.judged(&growing.levels, least, context.rules);
    let key = SeriesKey::new(context.recording, context.paths, first, growing.device);
    let metric = context.summary(growing.device)?.metric;
    let levels = (growing.start, growing.levels.clone());
    let mut judged = Judged {
        runs: growing.runs.clone(),
        n_grown: n_positive(course.windows(2).map(|pair| pair[1].since(pair[0]))),
        name: growing.names.first().map(|((_, name), _)| name.clone()),
        growers: GrowingHolders::of_names(context, growing),
        looks: Looks::AfterRuns,
        begins_anew: growing.begin_anew,
        ..Judged::new(key, metric, growth, levels, least)
    };
    judged.growers.holders.first()?;
    judged.take_text(context.recording);
    judged.decide(context);
    let is_much = reaches(judged.kept(), context.min_growth(growing.device));
    (is_much || judged.is_certain(context)).then_some(judged)
}
