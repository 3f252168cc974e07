//! Every check, in the order in which findings are made: of all runs, or of what rests on one run.

use super::context::Context;
use super::finding::{self, Finding};
use super::growth::State;
use super::leak;
use super::series::{RunSeries, StepSeries};
use super::stats_cache::StatsCache;
use super::{fragmentation, long_lived, oom, peaks, reserve, retention, unattributed_growth};
use gpumem_model::recording::{DeviceIdx, RunIdx};

/// Which findings are wanted.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    /// All.
    AllRuns,
    /// What rests on an outermost run, or on a block in it. Others may be found, too.
    Run(&'a [RunIdx]),
}

impl Scope<'_> {
    fn is_any(self, is_it: impl Fn(RunIdx) -> bool) -> bool {
        match self {
            Self::AllRuns => true,
            Self::Run(within) => within.iter().any(|run| is_it(*run)),
        }
    }
}

/// Series of levels that are judged.
#[derive(Default)]
pub(super) struct Series<'a> {
    pub(super) of_runs: Vec<RunSeries<'a>>,
    pub(super) of_steps: Vec<StepSeries>,
}

/// What there is to check.
pub(super) struct Checks<'a, 'r> {
    pub(super) context: Context<'r>,
    pub(super) scope: Scope<'a>,
    /// The series in the scope.
    pub(super) series: &'a Series<'r>,
    /// The other series that may grow: asked for seldom, and as dear as those in the scope.
    pub(super) others: &'a dyn Fn() -> Series<'r>,
    /// What the trends of all series there are must stay below; `None` if that of those in the scope.
    pub(super) p_bound: Option<f64>,
}

/// Growth in all series, and of names; found when it is first needed.
struct Everywhere<'a, 'r> {
    checks: &'a Checks<'a, 'r>,
    /// Growth in the scope's series.
    own: Vec<Finding>,
    all: Option<Vec<Finding>>,
}

impl Everywhere<'_, '_> {
    fn growth(&mut self, stats: &mut StatsCache) -> &[Finding] {
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
    /// What they find, worst first.
    pub(super) fn findings(&self, stats: &mut StatsCache) -> Vec<Finding> {
        let (context, of_runs) = (self.context, &self.series.of_runs);
        let recording = context.recording;
        let mut everywhere = Everywhere {
            checks: self,
            own: self.growth(self.series, stats),
            all: None,
        };
        let mut findings = if self.has_growing_names(&everywhere.own) {
            everywhere.growth(stats).to_vec()
        } else {
            everywhere.own.clone()
        };
        for device in recording.devices() {
            let found = self.unattributed(device.idx, &findings, &mut everywhere, stats);
            findings.extend(found);
        }
        findings.extend(fragmentation::on_devices(context));
        findings.extend(fragmentation::of_cells(context, of_runs, stats));
        findings.extend(peaks::findings(context, of_runs));
        findings.extend(reserve::findings(context, of_runs, stats));
        let is_on_any = |is_it: &dyn Fn(DeviceIdx) -> bool| {
            let mut devices = recording.devices().iter();
            devices.any(|device| is_it(device.idx))
        };
        let is_traced = |run| is_on_any(&|device| recording.trace(run, device).is_some());
        if self.scope.is_any(is_traced) {
            findings.extend(long_lived::findings(context));
        }
        if self.scope.is_any(|run| recording.run(run).oom.is_some()) {
            let mut ooms = oom::findings(context);
            if !ooms.is_empty() {
                oom::join_growth(&mut ooms, everywhere.growth(stats));
            }
            findings.extend(ooms);
        }
        let is_looked_at = |run| is_on_any(&|device| recording.holders(run, device).is_some());
        if self.scope.is_any(is_looked_at) {
            let mut is_told = |device, place| {
                retention::is_told(&findings, device, place)
                    || retention::is_told(everywhere.growth(stats), device, place)
            };
            let kept = retention::findings(context, &mut is_told);
            findings.extend(kept);
        }
        finding::sort(&mut findings);
        findings
    }

    fn growth(&self, series: &Series<'_>, stats: &mut StatsCache) -> Vec<Finding> {
        let (of_runs, of_steps) = (&series.of_runs, &series.of_steps);
        leak::findings(self.context, of_runs, of_steps, self.p_bound, stats)
    }

    /// A name has more and more; where a cell ran, one that no other cell adds to. What is said of too few
    /// runs, a name that others add to may overrule.
    fn has_growing_names(&self, growth: &[Finding]) -> bool {
        let is_early = |it: &Finding| it.state == Some(State::NotEnoughData);
        let run = match self.scope {
            Scope::AllRuns => None,
            Scope::Run(within) => within.first(),
        };
        let cell = run.map(|run| self.context.recording.run(*run).cell);
        let only = cell.filter(|_| !growth.iter().any(is_early));
        !leak::growing_names(self.context, only).is_empty()
    }

    /// Growth of a device that no other finding explains.
    fn unattributed(
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
