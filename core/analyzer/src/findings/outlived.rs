//! What should be dead: a variable is gone, and what it held lives on.

use std::collections::BTreeMap;

use gpumem_heap::{Fix, FixReason};
use gpumem_model::holders::{DeviceHolders, Holder, Outlived, RootKind, Traits, WayOut};
use gpumem_model::recording::{DeviceIdx, DeviceKind, Recording, RunIdx};
use gpumem_model::rules::Rules;
use gpumem_model::severity::Severity;
use gpumem_model::source_text::lets_go_of;
use gpumem_model::units::Bytes;
use serde::Serialize;

use super::{Finding, FindingDetails, FindingKind, Withdrawn, growing_holders};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::held_since;
use crate::levels::DeviceSummary;

/// A variable that is gone, and who keeps what it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutlivedDetails {
    /// The variable.
    pub name: String,
    /// It was not deleted, but has a new object: this is about the old one.
    pub is_rebound: bool,
    /// What it held.
    #[serde(rename = "had_bytes")]
    pub had: Bytes,
    /// How much of that lives on.
    #[serde(rename = "n_bytes")]
    pub alive: Bytes,
    /// What kind of name keeps the most of it.
    pub kind: RootKind,
    /// That name.
    pub holder: String,
    /// The Python expression of the object that keeps it.
    pub path: String,
    /// What that is.
    pub what: String,
    /// How it can be let go of, if that is known.
    pub way_out: Option<WayOut>,
    /// The name keeps all of it, and no other name does.
    pub is_alone: bool,
    /// The run since which the variable held it, as counted in the recording.
    #[serde(rename = "held_since_run")]
    pub held_since: Option<RunIdx>,
    /// Jupyter's number of that run.
    pub held_since_execution_count: Option<u32>,
    /// Other variables that are gone, and gave back all that they held; the latest first.
    pub given_back: Vec<FreedVariable>,
    /// The run after which it was found, as counted in the recording.
    #[serde(rename = "since_run")]
    pub since: RunIdx,
    /// Jupyter's number of that run.
    pub since_execution_count: Option<u32>,
}

/// A variable that is gone, or has a new object, and gave back all that it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FreedVariable {
    /// The variable.
    pub name: String,
    /// What it held.
    pub n_bytes: Bytes,
    /// Jupyter's number of the run after which that was seen.
    pub execution_count: Option<u32>,
}

/// As many are listed.
const MAX_GIVEN_BACK: usize = 3;

/// A deleted variable matters if it held this share of any device, …
const MUCH_HELD: Bytes = Bytes::mib(64);

/// … and of a smaller device this part.
const PART_THAT_MATTERS: u64 = 100;

/// Less than this share of the device is only good to know, however it is kept.
const WORTH_A_WARNING: f64 = 0.05;

/// What is kept takes much of the device.
pub(super) fn is_much(device: &DeviceSummary, kept: Bytes) -> bool {
    let capacity = device.capacity;
    capacity.is_some_and(|it| kept.as_f64() >= WORTH_A_WARNING * it.as_f64())
}

/// How much a variable must have held of a device so that it matters what became of it when it is gone.
pub fn least_outlived(kind: DeviceKind, capacity: Option<Bytes>, rules: &Rules) -> Bytes {
    let least = kind.min_growth(rules);
    if !kind.is_accelerator() {
        return least;
    }
    let share = capacity.map_or(MUCH_HELD, |it| Bytes::new(it.get() / PART_THAT_MATTERS));
    least.max(share.min(MUCH_HELD))
}

/// A finding for each such variable on each device. If the same name collects growth, that finding reports it.
pub(super) fn findings(context: Context<'_>, growth: &[Finding]) -> Vec<Finding> {
    let of_device = |device: &DeviceSummary| {
        let names = names_on(context, device.device).into_values();
        let reported = names.filter(|it| !is_reported(context, growth, device.device, it.latest));
        let findings = reported.filter_map(|it| it.finding(context, device));
        findings.collect::<Vec<_>>()
    };
    context.devices.iter().flat_map(of_device).collect()
}

/// A look has found such a variable.
pub(super) fn is_any(context: Context<'_>) -> bool {
    let Context { recording, .. } = context;
    let mut devices = recording.devices().iter();
    devices.any(|device| {
        recording
            .looks(device.idx)
            .any(|(_, look)| !look.outlived.is_empty())
    })
}

fn is_reported(
    context: Context<'_>,
    growth: &[Finding],
    device: DeviceIdx,
    outlived: &Outlived,
) -> bool {
    let holder = Holder::new(outlived.kind, &outlived.holder, outlived.n_bytes);
    let name = context.names.key(device, &holder);
    // IPython's own places have a finding of theirs.
    outlived.kind.is_ipython() || growing_holders::is_reported(context.names, growth, device, &name)
}

/// One name on one device, as the last look that found it alive saw it.
struct OutlivedName<'a> {
    latest: &'a Outlived,
    since: RunIdx,
    seen: RunIdx,
    /// The run whose look did not find it any more.
    let_go: Option<RunIdx>,
}

fn names_on(context: Context<'_>, device: DeviceIdx) -> BTreeMap<&str, OutlivedName<'_>> {
    let looks: Vec<(RunIdx, &DeviceHolders)> = context.recording.looks(device).collect();
    let mut names: BTreeMap<&str, OutlivedName<'_>> = BTreeMap::new();
    // A look that stopped early does not know what is gone.
    for (run, look) in looks.into_iter().filter(|(_, look)| !look.is_cut) {
        for name in names.values_mut() {
            if !look.outlived.iter().any(|it| it.name == name.latest.name) {
                name.let_go.get_or_insert(run);
            }
        }
        for outlived in &look.outlived {
            let known = names.get(&*outlived.name).filter(|it| it.let_go.is_none());
            let name = OutlivedName {
                latest: outlived,
                since: known.map_or(run, |it| it.since),
                seen: run,
                let_go: None,
            };
            names.insert(&outlived.name, name);
        }
    }
    names
}

impl OutlivedName<'_> {
    fn finding(&self, context: Context<'_>, device: &DeviceSummary) -> Option<Finding> {
        let Context { recording, .. } = context;
        let outlived = self.latest;
        let kind = recording.device(device.device).kind;
        let least = least_outlived(kind, device.capacity, context.rules);
        if outlived.n_bytes < least {
            return None;
        }
        let rows = context.rows;
        let is_let_go = self.let_go.is_some()
            || rows.gave_back(recording, self.seen, device.device, outlived.n_bytes);
        let is_grave = is_much(device, outlived.n_bytes) && outlived.is_accident();
        // Whether a cure helped is news until something else runs.
        let last = recording
            .runs()
            .last()
            .map(|run| recording.outermost(run.idx));
        if self
            .let_go
            .is_some_and(|run| Some(recording.outermost(run)) != last)
            && !is_grave
        {
            return None;
        }
        let severity = if is_grave && !is_let_go {
            Severity::Warning
        } else {
            Severity::Info
        };
        let run = recording.run(self.since);
        // `%gpumem release` is no run: the one before it is looked at.
        let text = recording.text(run).unwrap_or_default();
        let is_said = lets_go_of(text, &outlived.name) || outlived.is_rebound;
        let holder = Holder {
            path: outlived.path.clone(),
            what: outlived.what.clone(),
            traits: Traits {
                library_objects: outlived.library_objects.clone(),
                ..Traits::default()
            },
            ..Holder::new(outlived.kind, &outlived.holder, outlived.n_bytes)
        };
        let variable = Holder::new(RootKind::Variable, &outlived.name, outlived.had);
        let before = Some(self.since);
        let held_since =
            held_since::held_since(recording, device.device, &variable, outlived.had, before);
        let details = OutlivedDetails {
            name: outlived.name.clone(),
            is_rebound: outlived.is_rebound,
            had: outlived.had,
            alive: outlived.n_bytes,
            kind: outlived.kind,
            holder: outlived.holder.clone(),
            path: outlived.path.clone(),
            what: outlived.what.clone(),
            way_out: outlived.way_out,
            is_alone: outlived.is_alone,
            held_since,
            held_since_execution_count: held_since
                .and_then(|run| recording.run(run).execution_count),
            given_back: given_back(recording, device.device, least),
            since: self.since,
            since_execution_count: run.execution_count,
        };
        let device_key = &recording.device(device.device).key;
        Some(Finding {
            severity,
            withdrawn: is_let_go.then_some(Withdrawn::LetGo),
            cell: is_said.then(|| CellRef::for_run(recording, run)),
            runs: vec![self.since],
            n_runs: 1,
            fix: fix(outlived).filter(|_| !is_let_go),
            evidence: vec![Evidence::met(
                Statistic::Outlived,
                outlived.n_bytes.as_f64(),
                least.as_f64(),
            )],
            holders: vec![holder],
            ..Finding::about(
                FindingKind::Outlived,
                &format!("{}/{device_key}", outlived.name),
                device.device,
                device.metric,
                FindingDetails::Outlived(details),
            )
        })
    }
}

/// What other variables gave back when they were gone, if that was much.
fn given_back(recording: &Recording, device: DeviceIdx, least: Bytes) -> Vec<FreedVariable> {
    let of_look = |(run, look): (RunIdx, &DeviceHolders)| {
        let run = recording.run(recording.outermost(run));
        let much = look.given_back.iter().filter(|it| it.n_bytes >= least);
        let given_back = much.map(|it| FreedVariable {
            name: it.name.clone(),
            n_bytes: it.n_bytes,
            execution_count: run.execution_count,
        });
        given_back.collect::<Vec<_>>()
    };
    let all = recording.looks(device).rev().flat_map(of_look);
    all.take(MAX_GIVEN_BACK).collect()
}

fn fix(outlived: &Outlived) -> Option<Fix> {
    let reason = match outlived.way_out? {
        WayOut::Exception => FixReason::ExceptionDropped,
        WayOut::Hook => FixReason::HookRemoved,
        WayOut::Cache => FixReason::CacheCleared,
        WayOut::Part => FixReason::PartDropped,
        WayOut::Name => FixReason::NameDropped,
        WayOut::Collector => FixReason::CollectorOn,
        WayOut::Thread => return None,
    };
    Some(Fix {
        before: None,
        after: outlived.code.clone(),
        reason,
        elsewhere: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, facts, found, run};
    use gpumem_model::holders::Keeper;

    /// What `model` held, and `accelerator` keeps.
    fn kept(n_mib: u64) -> Outlived {
        Outlived {
            name: "model".to_owned(),
            had: Bytes::mib(n_mib),
            n_bytes: Bytes::mib(n_mib),
            kind: RootKind::Variable,
            holder: "accelerator".to_owned(),
            is_alone: true,
            path: "accelerator._models[0]".to_owned(),
            way_out: Some(WayOut::Part),
            code: "del accelerator._models[0]".to_owned(),
            ..Outlived::default()
        }
    }

    fn in_an_error(n_mib: u64) -> Outlived {
        Outlived {
            keeper: Some(Keeper::Traceback),
            way_out: Some(WayOut::Exception),
            code: "del failure".to_owned(),
            ..kept(n_mib)
        }
    }

    #[track_caller]
    fn check(looks: &[(u32, Vec<Outlived>)], last_mib: i64, expected: &[(Severity, &str)]) {
        let plays = [run(2000)];
        let cells: &[(&str, &[Play])] = &[
            ("model = f()", &plays),
            ("del model", &[run(0)]),
            ("g()", &[run(last_mib)]),
            ("h()", &[run(0)]),
        ];
        let looks = looks.iter().map(|(run, outlived)| {
            let outlived = outlived.clone();
            (
                *run,
                DeviceHolders {
                    outlived,
                    ..DeviceHolders::default()
                },
            )
        });
        let found = found(cells, looks, FindingKind::Outlived);
        let found: Vec<_> = found.iter().map(|it| (it.severity, facts(it))).collect();
        let found: Vec<_> = found.iter().map(|(a, b)| (*a, b.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_lives_on_is_good_to_know_and_an_accident_is_a_warning() {
        let note = "outlived: del model · accelerator · del accelerator._models[0]";
        check(&[(1, vec![kept(2000)])], 0, &[(Severity::Info, note)]);
        let warning = "outlived: del model · accelerator · del failure";
        let error = vec![in_an_error(2000)];
        check(&[(1, error)], 0, &[(Severity::Warning, warning)]);
        let small = vec![in_an_error(200)];
        check(&[(1, small)], 0, &[(Severity::Info, warning)]);
        check(&[(1, vec![kept(9)])], 0, &[]);
    }

    #[test]
    fn what_is_freed_later_is_withdrawn() {
        let over = "outlived: del model · let_go · accelerator";
        let over = [(Severity::Info, over)];
        // Seen by a look, or by the level alone.
        let error = || (1, vec![in_an_error(2000)]);
        check(&[error(), (2, Vec::new())], 0, &over);
        check(&[error()], -2000, &over);
        // What was good to know is so until another cell runs.
        check(&[(1, vec![kept(2000)]), (3, Vec::new())], 0, &over);
        check(&[(1, vec![kept(2000)]), (2, Vec::new())], 0, &[]);
    }

    #[test]
    fn what_ipython_keeps_has_a_finding_of_its_own() {
        let displayed = Outlived {
            kind: RootKind::OutputHistory,
            holder: "Out[1]".to_owned(),
            ..kept(2000)
        };
        check(&[(1, vec![displayed])], 0, &[]);
    }
}
