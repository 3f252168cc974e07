//! Growth of names, whichever cells add to them.

use super::{Growers, Judged, found, n_positive};
use crate::analyze::context::Context;
use crate::analyze::finding::{Finding, FindingKind};
use crate::analyze::held;
use crate::analyze::names::GrowingNames;
use crate::analyze::series::Key;
use crate::analyze::stats_cache::StatsCache;
use crate::recording::CellIdx;
use crate::units::Bytes;

/// The names that have more and more, on every device: those that `only` one cell adds to, if that is
/// given.
pub(in crate::analyze) fn growing_names(
    context: Context<'_>,
    only: Option<CellIdx>,
) -> Vec<GrowingNames> {
    let devices = context.recording.devices().iter();
    let growing = devices.flat_map(|device| {
        let least = context.min_growth(device.idx);
        let names = context.names;
        names.growing(context.recording, device.idx, least, only)
    });
    growing.collect()
}

/// Adds the findings about names that have more and more, where none of `findings` tells of the first.
/// What a cell adds to a name, its series has not settled.
pub(in crate::analyze) fn add_names(
    context: Context<'_>,
    findings: &mut Vec<Finding>,
    stats: &mut StatsCache,
) {
    let mut growing = growing_names(context, None);
    growing.retain(|growing| {
        let first = growing.names.first();
        first.is_some_and(|(name, _)| !held::is_told(findings, growing.device, name))
    });
    let judged = growing.iter();
    let judged = judged.filter_map(|growing| judged_names(context, growing, stats));
    let found = found(context, judged.collect());
    let cell = |finding: &Finding| finding.cell.as_ref().map(|cell| cell.idx);
    findings.retain(|it| {
        let is_overruled =
            |by: &Finding| by.withdrawn.is_none() && by.device == it.device && cell(by) == cell(it);
        it.kind != FindingKind::Settled || !found.iter().any(is_overruled)
    });
    findings.extend(found);
}

fn judged_names(
    context: Context<'_>,
    growing: &GrowingNames,
    stats: &mut StatsCache,
) -> Option<Judged> {
    let least = context.min_growth(growing.device);
    let (first, end) = (*growing.runs.first()?, *growing.levels.last()?);
    let course = std::iter::once(&growing.start).chain(&growing.levels);
    let course: Vec<Bytes> = course.copied().collect();
    let mut judged = Judged {
        key: Key::of(context.recording, context.paths, first, growing.device),
        metric: context.summary(growing.device)?.metric,
        runs: growing.runs.clone(),
        n_runs: growing.runs.len(),
        n_grown: n_positive(course.windows(2).map(|pair| pair[1].since(pair[0]))),
        n_chances: growing.runs.len(),
        steps: false,
        growth: stats.judged(&growing.levels, least, context.rules),
        levels: growing.levels.clone(),
        start: growing.start,
        stays: end.since(growing.start),
        least,
        n_moving: None,
        name: growing.names.first().map(|((_, name), _)| name.clone()),
        is_shared: false,
        growers: Growers::of_names(context.recording, growing),
        decided_by: None,
        withdrawn: None,
    };
    let kept = judged.kept().magnitude();
    let fact = judged.growers.fact(kept)?;
    judged.hear(&fact);
    judged.weigh_meaning(context);
    Some(judged)
}
