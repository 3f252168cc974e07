//! What a check is given: series of levels, and the runs that findings are wanted of.

use super::leak;
use super::{Finding, unattributed_growth};
use crate::context::Context;
use crate::growth::GrowthVerdict;
use crate::series::{RunSeries, StepSeries};
use crate::stats_cache::StatsCache;
use gpumem_model::recording::{DeviceIdx, RunIdx};

/// Which findings are wanted.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// All.
    AllRuns,
    /// What rests on an outermost run, or on a block in it. Others may be found, too.
    Run(&'a [RunIdx]),
}

impl Scope<'_> {
    pub(super) fn is_any(self, is_it: impl Fn(RunIdx) -> bool) -> bool {
        match self {
            Self::AllRuns => true,
            Self::Run(within) => within.iter().any(|run| is_it(*run)),
        }
    }
}

/// Series of levels that are judged.
#[derive(Default)]
pub(crate) struct JudgedSeries<'a> {
    pub(crate) of_runs: Vec<RunSeries<'a>>,
    pub(crate) of_steps: Vec<StepSeries>,
}

/// What there is to check.
pub(crate) struct Checks<'a, 'r> {
    pub(crate) context: Context<'r>,
    pub(crate) scope: Scope<'a>,
    /// The series in the scope.
    pub(crate) series: &'a JudgedSeries<'r>,
    /// The other series that may grow: rarely needed, and as expensive as the series in scope.
    pub(crate) others: &'a dyn Fn() -> JudgedSeries<'r>,
    /// What the trends of all series there are must stay below; `None` if that of those in the scope.
    pub(crate) p_bound: Option<f64>,
}

/// Growth in all series, and of names; found when it is first needed.
pub(super) struct Everywhere<'a, 'r> {
    pub(super) checks: &'a Checks<'a, 'r>,
    /// Growth in the scope's series.
    pub(super) own: Vec<Finding>,
    pub(super) all: Option<Vec<Finding>>,
}

impl Everywhere<'_, '_> {
    pub(super) fn growth(&mut self, stats: &mut StatsCache) -> &[Finding] {
        self.all.get_or_insert_with(|| {
            let mut all = self.own.clone();
            let others = (self.checks.others)();
            all.extend(self.checks.growth(&others, stats));
            leak::add_names(self.checks.context, &mut all, stats);
            all
        })
    }
}

impl Checks<'_, '_> {
    pub(super) fn growth(&self, series: &JudgedSeries<'_>, stats: &mut StatsCache) -> Vec<Finding> {
        let (of_runs, of_steps) = (&series.of_runs, &series.of_steps);
        leak::findings(self.context, of_runs, of_steps, self.p_bound, stats)
    }

    /// A name has more and more; where a cell ran, one that no other cell adds to. What is said of too few
    /// runs, a name that others add to may overrule.
    pub(super) fn has_growing_names(&self, growth: &[Finding]) -> bool {
        let is_early = |it: &Finding| it.state == Some(GrowthVerdict::NotEnoughData);
        let run = match self.scope {
            Scope::AllRuns => None,
            Scope::Run(within) => within.first(),
        };
        let cell = run.map(|run| self.context.recording.run(*run).cell);
        let only = cell.filter(|_| !growth.iter().any(is_early));
        !leak::growing_names(self.context, only).is_empty()
    }

    /// Growth of a device that no other finding explains.
    pub(super) fn unattributed(
        &self,
        device: DeviceIdx,
        findings: &[Finding],
        everywhere: &mut Everywhere<'_, '_>,
        stats: &mut StatsCache,
    ) -> Option<Finding> {
        let is_in_scope = match self.scope {
            Scope::AllRuns => true,
            Scope::Run(within) => {
                let of_device = self.context.rows.columns(device);
                within
                    .first()
                    .is_some_and(|run| of_device.has_level_after(*run))
            }
        };
        if !is_in_scope || unattributed_growth::is_explained(findings, device) {
            return None;
        }
        let found = unattributed_growth::finding(self.context, device, stats)?;
        let everywhere = everywhere.growth(stats);
        (!unattributed_growth::is_explained(everywhere, device)).then_some(found)
    }
}
