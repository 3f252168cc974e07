//! Processes that runs of a cell began and nobody ended.

use std::collections::BTreeMap;

use gpumem_model::recording::{
    CellIdx, ChildGroup, ChildHandle, DeviceIdx, Recording, Run, RunIdx,
};
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};
use serde::Serialize;

use super::outlived::{is_much, least_outlived};
use super::{Finding, FindingDetails, FindingKind, SeriesGrowth, Withdrawn};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::growth::{GrowthShape, GrowthVerdict};
use crate::levels::DeviceSummary;
use crate::reason::Reason;
use gpumem_model::source_text::{is_name_letter, lets_go_of};

/// Living processes that runs of one cell began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChildrenDetails {
    /// How many they are.
    #[serde(rename = "n_children")]
    pub n: u32,
    /// What they hold of the device together; on the host what they share with no other process.
    pub n_bytes: Bytes,
    /// The number of the one that holds most.
    pub pid: u32,
    /// Its name, or its program and script.
    pub name: String,
    /// What leads to most of them in this process.
    pub handle: ChildHandle,
    /// The variable of their cell that is deleted, or `None`, while they live.
    pub deleted: Option<String>,
    /// The first run that began one of them, as counted in the recording; `None` if none that was recorded did.
    #[serde(rename = "since_run")]
    pub since: Option<RunIdx>,
    /// Jupyter's number of that run.
    pub since_execution_count: Option<u32>,
    /// How what they hold grows, if runs of the cell begin more and more.
    #[serde(skip)]
    pub growth: Option<SeriesGrowth>,
}

/// Number of runs with more living children than before that make growth.
const MIN_RISES: usize = 3;

/// Number of such runs that make a leak if no name leads to the children.
const RISES_OF_LOST: usize = 5;

/// A process that ends by itself, or that an executor ends in the background, may live so long.
const SHORT_LIFE: Nanos = Nanos::millis(1000);

/// A finding for each cell whose processes hold much of a device, or become more and more. Processes that
/// use an accelerator are not reported again on the host.
pub(super) fn findings(context: Context<'_>) -> Vec<Finding> {
    let mut devices: Vec<&DeviceSummary> = context.devices.iter().collect();
    let is_accelerator = |it: &DeviceSummary| {
        let device = context.recording.device(it.device);
        device.kind.is_accelerator()
    };
    devices.sort_by_key(|it| !is_accelerator(it));
    let mut reported: Vec<Option<CellIdx>> = Vec::new();
    let mut findings = Vec::new();
    for device in devices {
        for (cell, course) in courses(context.recording, device.device) {
            if reported.contains(&cell) {
                continue;
            }
            let place = CellProcesses {
                context,
                device,
                cell,
            };
            if let Some(finding) = place.growth(&course).or_else(|| place.alone(&course)) {
                reported.push(cell);
                findings.push(finding);
            }
        }
    }
    findings
}

/// A run left processes alive.
pub(super) fn is_any(recording: &Recording, run: RunIdx) -> bool {
    let levels = recording.run(run).levels.iter();
    let mut after = levels.filter_map(|it| it.after.as_ref());
    after.any(|it| !it.driver.children.is_empty())
}

/// The processes of one cell on one device, from run to run.
#[derive(Default)]
struct ProcessSeries<'a> {
    /// The runs after which more lived than ever before.
    rises: Vec<RunIdx>,
    most: u32,
    /// What they held after each run.
    levels: Vec<Bytes>,
    /// As the latest run that found some saw them.
    latest: Vec<&'a ChildGroup>,
    /// The run after which nothing led to some of them for the first time.
    lost_since: Option<RunIdx>,
    /// A later run found none.
    is_over: bool,
}

fn courses(
    recording: &Recording,
    device: DeviceIdx,
) -> BTreeMap<Option<CellIdx>, ProcessSeries<'_>> {
    let mut courses: BTreeMap<Option<CellIdx>, ProcessSeries<'_>> = BTreeMap::new();
    let runs = recording.runs().iter().filter(|it| it.parent.is_none());
    for run in runs {
        let Some(after) = run.levels_on(device).and_then(|it| it.after.as_ref()) else {
            continue;
        };
        let mut found: BTreeMap<Option<CellIdx>, Vec<&ChildGroup>> = BTreeMap::new();
        for group in &after.driver.children {
            let cell = began_in(recording, group).map(|run| run.cell);
            found.entry(cell).or_default().push(group);
        }
        for (cell, course) in &mut courses {
            course.is_over |= !found.contains_key(cell);
        }
        for (cell, groups) in found {
            courses.entry(cell).or_default().take_in(run.idx, groups);
        }
    }
    courses
}

fn began_in<'a>(recording: &'a Recording, group: &ChildGroup) -> Option<&'a Run> {
    recording.runs().get(group.began_in?.get())
}

fn is_lost(group: &ChildGroup) -> bool {
    matches!(group.handle, ChildHandle::Lost | ChildHandle::Detached)
}

impl<'a> ProcessSeries<'a> {
    fn take_in(&mut self, run: RunIdx, groups: Vec<&'a ChildGroup>) {
        if self.is_over {
            *self = Self::default();
        }
        self.latest = groups;
        let n = self.n();
        if n > self.most {
            self.most = n;
            self.rises.push(run);
        }
        self.levels.push(self.n_bytes());
        if self.latest.iter().any(|it| is_lost(it)) {
            self.lost_since.get_or_insert(run);
        } else {
            self.lost_since = None;
        }
    }

    fn n(&self) -> u32 {
        let each = self.latest.iter().map(|it| it.n);
        each.fold(0, u32::saturating_add)
    }

    fn n_bytes(&self) -> Bytes {
        sum(self.latest.iter().copied())
    }

    /// What leads to most of them.
    fn handle(&self) -> ChildHandle {
        let largest = self.latest.iter().max_by_key(|it| it.n);
        largest.map(|it| it.handle).unwrap_or_default()
    }

    fn age(&self) -> Nanos {
        let ages = self.latest.iter().map(|it| it.age);
        ages.max().unwrap_or_default()
    }
}

fn sum<'a>(groups: impl Iterator<Item = &'a ChildGroup>) -> Bytes {
    groups.map(|it| it.n_bytes).sum()
}

/// What is judged: a cell's processes on a device.
struct CellProcesses<'a> {
    context: Context<'a>,
    device: &'a DeviceSummary,
    cell: Option<CellIdx>,
}

impl CellProcesses<'_> {
    fn least(&self) -> Bytes {
        let kind = self.context.recording.device(self.device.device).kind;
        least_outlived(kind, self.device.capacity, self.context.rules)
    }

    /// Run after run more of them live.
    fn growth(&self, course: &ProcessSeries<'_>) -> Option<Finding> {
        let n_rises = course.rises.len();
        let is_still = u64::from(course.n()) * 2 > u64::from(course.most);
        let total = course.n_bytes();
        let is_enough = n_rises >= MIN_RISES && total >= self.least() && course.age() >= SHORT_LIFE;
        if !is_enough || !is_still {
            return None;
        }
        let handle = course.handle();
        let (kind, state, severity, reason) = match handle {
            ChildHandle::Lost | ChildHandle::Detached if n_rises >= RISES_OF_LOST => (
                FindingKind::Leak,
                GrowthVerdict::Leak,
                Severity::Warning,
                Reason::Accident,
            ),
            ChildHandle::Lost | ChildHandle::Detached => (
                FindingKind::Growing,
                GrowthVerdict::Suspected,
                Severity::Warning,
                Reason::TooFewRuns,
            ),
            ChildHandle::Held | ChildHandle::Unknown => {
                let is_long = n_rises >= self.context.rules.min_runs;
                let severity = if is_long {
                    Severity::Warning
                } else {
                    Severity::Info
                };
                let state = GrowthVerdict::Suspected;
                (FindingKind::Growing, state, severity, Reason::MayBeMeant)
            }
        };
        let rate = ByteDelta::from_f64(total.as_f64() / n_rises as f64);
        let growth = SeriesGrowth {
            shape: GrowthShape::Growth,
            bytes_per_run: rate,
            interval: (rate, rate),
            total: total.since(Bytes::ZERO),
            sparkline: course.levels.iter().map(|it| it.as_f64()).collect(),
        };
        let rises = Evidence::met(Statistic::NRises, n_rises as f64, MIN_RISES as f64);
        let groups: Vec<&ChildGroup> = course.latest.clone();
        let mut finding = Finding {
            state: Some(state),
            reason: Some(reason),
            runs: course.rises.clone(),
            n_runs: n_rises,
            ..self.finding(kind, severity, &groups, Some(growth), course.is_over)
        };
        finding.evidence.insert(0, rises);
        if let FindingDetails::Children(details) = &mut finding.details {
            let first = course.rises.first().copied();
            self.begins(details, first.filter(|_| self.cell.is_some()));
        }
        Some(finding)
    }

    /// Nothing leads to some of them, or what did is deleted, and they hold much.
    fn alone(&self, course: &ProcessSeries<'_>) -> Option<Finding> {
        let recording = self.context.recording;
        let kind = recording.device(self.device.device).kind;
        let may_be_meant = |it: &ChildGroup| match it.handle {
            ChildHandle::Lost => false,
            ChildHandle::Detached => !kind.is_accelerator(),
            ChildHandle::Held | ChildHandle::Unknown => true,
        };
        let lived = course.latest.iter().filter(|it| it.age >= SHORT_LIFE);
        let of_each = lived.filter_map(|group| {
            let deleted = deleted(recording, group);
            (deleted.is_some() || !may_be_meant(group)).then_some((*group, deleted))
        });
        let (group, deleted) = of_each.max_by_key(|(group, _)| group.n_bytes)?;
        if group.n_bytes < self.least() {
            return None;
        }
        let severity = if deleted.is_some() && is_much(self.device, group.n_bytes) {
            Severity::Warning
        } else {
            Severity::Info
        };
        let run = deleted.as_ref().map(|it| it.1).or(course.lost_since);
        let finding = self.finding(
            FindingKind::Children,
            severity,
            &[group],
            None,
            course.is_over,
        );
        let mut finding = Finding {
            runs: run.into_iter().collect(),
            n_runs: 1,
            ..finding
        };
        if let Some((name, _)) = &deleted {
            // Its deletion is news, even if the children were reported before.
            finding.id = format!("{}/{name}", finding.id);
        }
        if let FindingDetails::Children(details) = &mut finding.details {
            details.deleted = deleted.map(|it| it.0);
            self.begins(details, group.began_in);
        }
        Some(finding)
    }

    fn begins(&self, details: &mut ChildrenDetails, run: Option<RunIdx>) {
        let run = run.and_then(|run| self.context.recording.runs().get(run.get()));
        details.since = run.map(|run| run.idx);
        details.since_execution_count = run.and_then(|run| run.execution_count);
    }

    fn finding(
        &self,
        kind: FindingKind,
        severity: Severity,
        groups: &[&ChildGroup],
        growth: Option<SeriesGrowth>,
        is_over: bool,
    ) -> Finding {
        let recording = self.context.recording;
        let n_bytes = sum(groups.iter().copied());
        let largest = groups.iter().max_by_key(|it| it.n_bytes);
        let latest = groups.iter().filter_map(|it| began_in(recording, it));
        let latest = latest.max_by_key(|it| it.idx);
        let most = groups.iter().max_by_key(|it| it.n);
        let details = ChildrenDetails {
            n: groups.iter().fold(0, |n, it| n.saturating_add(it.n)),
            n_bytes,
            pid: largest.map_or(0, |it| it.pid),
            name: largest.map_or_else(String::new, |it| it.name.clone()),
            handle: most.map(|it| it.handle).unwrap_or_default(),
            deleted: None,
            since: None,
            since_execution_count: None,
            growth,
        };
        let cell = latest.map(|run| CellRef::at(recording, run));
        let device = &recording.device(self.device.device).key;
        let subject = cell.as_ref().map_or("", |it| &it.id);
        let evidence = Evidence::met(Statistic::Children, n_bytes.as_f64(), self.least().as_f64());
        Finding {
            // One finding, whatever it is called as it grows.
            id: format!("children/{subject}/{device}"),
            severity: if is_over { Severity::Info } else { severity },
            withdrawn: is_over.then_some(Withdrawn::LetGo),
            cell,
            evidence: vec![evidence],
            ..Finding::about(
                kind,
                "",
                self.device.device,
                self.device.metric,
                FindingDetails::Children(details),
            )
        }
    }
}

/// The variable that the cell of these processes bound and that was deleted since, if it can be no other;
/// and the run that deleted it.
fn deleted(recording: &Recording, group: &ChildGroup) -> Option<(String, RunIdx)> {
    let began = began_in(recording, group)?;
    let owners = owners(recording.text(began)?);
    let is_only = owners.len() == 1;
    let runs = recording.runs()[began.idx.get()..].iter();
    let texts = runs.filter(|it| it.parent.is_none());
    let texts = texts.filter_map(|run| Some((run.idx, recording.text(run)?)));
    let texts: Vec<(RunIdx, &str)> = texts.collect();
    let gone = owners.into_iter().filter_map(|name| {
        let lines = texts
            .iter()
            .flat_map(|(run, text)| text.lines().map(|it| (*run, it)));
        let let_go = lines.fold(None, |since, (run, line)| {
            if lets_go_of(line, name) {
                since.or(Some(run))
            } else {
                since.filter(|_| bound_names(line).all(|(it, _)| it != name))
            }
        });
        Some((name.to_owned(), let_go?))
    });
    let mut gone: Vec<(String, RunIdx)> = gone.collect();
    let is_clear = gone.len() == 1 && (is_only || is_lost(group));
    gone.pop().filter(|_| is_clear)
}

/// The variables of a text that a call makes, but not a method of another of them.
fn owners(text: &str) -> Vec<&str> {
    let bound: Vec<(&str, &str)> = bound_names(text).collect();
    let is_made_by = |value: &str, name: &str| {
        let rest = value.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let is_owner = |(name, value): &&(&str, &str)| {
        let is_first = bound.iter().position(|(it, _)| it == name)
            == bound.iter().position(|it| it == &(*name, *value));
        let is_other = |(other, _): &(&str, &str)| is_made_by(value, other);
        is_first && value.contains('(') && !bound.iter().any(is_other)
    };
    bound
        .iter()
        .filter(is_owner)
        .map(|(name, _)| *name)
        .collect()
}

/// Each `name = value` of a text.
fn bound_names(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = !name.is_empty() && name.chars().all(is_name_letter);
        (is_name && !value.starts_with('=') && value != "None").then_some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze;
    use crate::testing::{Play, facts, run, session};
    use ChildHandle::{Detached, Held, Lost, Unknown};
    use gpumem_model::recording::Frame;
    use gpumem_model::rules::Rules;

    /// Processes of 100 MiB each that the run of this number started last.
    type Left = (u32, u32, ChildHandle);

    fn group((began_in, n, handle): Left) -> ChildGroup {
        ChildGroup {
            began_in: Some(RunIdx(began_in)),
            handle,
            n,
            n_bytes: Bytes::mib(100 * u64::from(n)),
            pid: 4123,
            name: "Process-1".to_owned(),
            age: Nanos::millis(5000),
        }
    }

    /// The findings about processes, after the runs of these cells left these.
    fn found(cells: &[(&str, &[Play])], left: &[&[ChildGroup]]) -> Vec<Finding> {
        let (mut recording, _) = session(cells);
        for (idx, groups) in left.iter().enumerate() {
            let mut run = recording.runs()[idx].clone();
            let after = run.levels[0].after.as_mut().expect("it has ended");
            after.driver.children = groups.to_vec();
            recording.apply(Frame::Run(run)).expect("a newer state");
        }
        let findings = analyze(&recording, &Rules::default()).findings;
        let is_it = |finding: &Finding| matches!(finding.details, FindingDetails::Children(_));
        findings.into_iter().filter(is_it).collect()
    }

    /// Runs of one cell that leave these.
    #[track_caller]
    fn check_runs(left: &[&[Left]], expected: &[(Severity, &str)]) {
        let groups: Vec<Vec<ChildGroup>> = left
            .iter()
            .map(|it| it.iter().copied().map(group).collect())
            .collect();
        let groups: Vec<&[ChildGroup]> = groups.iter().map(Vec::as_slice).collect();
        let plays = vec![run(0); left.len()];
        said(&found(&[("f()", &plays)], &groups), expected);
    }

    #[track_caller]
    fn said(found: &[Finding], expected: &[(Severity, &str)]) {
        let said: Vec<_> = found.iter().map(|it| (it.severity, facts(it))).collect();
        let said: Vec<_> = said.iter().map(|(a, b)| (*a, b.as_str())).collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn processes_that_runs_leave_grow() {
        let lost: Vec<[Left; 1]> = (0..5).map(|n| [(n, n + 1, Lost)]).collect();
        let left: Vec<&[Left]> = lost.iter().map(<[Left; 1]>::as_slice).collect();
        let one = "children: f()";
        check_runs(&left[..2], &[(Severity::Info, one)]);
        let growing = "growing: f() · 100 MiB a run, 300 MiB in all";
        let growing = growing.replace(" MiB in all", " in all");
        check_runs(&left[..3], &[(Severity::Warning, &growing)]);
        let leak = "leak: f() · 100 MiB a run, 500 in all";
        check_runs(&left, &[(Severity::Warning, leak)]);
        // Nobody knows whether they are meant.
        for handle in [Held, Unknown] {
            let (a, b, c) = ([(0, 2, handle)], [(1, 4, handle)], [(2, 6, handle)]);
            let meant = "growing: f() · 200 MiB a run, 600 in all";
            check_runs(&[&a, &b, &c], &[(Severity::Info, meant)]);
        }
    }

    #[test]
    fn as_many_as_before_are_no_growth() {
        let pool = |began_in: u32| [(began_in, 4, Held)];
        let (a, b, c, d) = (pool(0), pool(1), pool(2), pool(3));
        check_runs(&[&a, &b, &c, &d], &[]);
        // Some of them ended and were begun anew.
        let fewer = [(2, 3, Held)];
        check_runs(&[&a, &fewer, &b, &fewer, &d], &[]);
    }

    #[test]
    fn a_server_that_nothing_leads_to_may_be_meant() {
        let server = ChildGroup {
            n_bytes: Bytes::mib(9),
            ..group((0, 1, Detached))
        };
        said(&found(&[("f()", &[run(0)])], &[&[server]]), &[]);
        let young = ChildGroup {
            age: Nanos::millis(300),
            ..group((0, 1, Lost))
        };
        said(&found(&[("f()", &[run(0)])], &[&[young]]), &[]);
        check_runs(&[&[(0, 1, Held)]], &[]);
    }

    #[test]
    fn what_has_ended_is_withdrawn() {
        let over = [(Severity::Info, "children: f() · let_go")];
        check_runs(&[&[(0, 1, Lost)], &[]], &over);
        // A later one is judged by itself.
        check_runs(&[&[(0, 2, Held)], &[], &[(2, 3, Held)]], &[]);
    }

    #[test]
    fn a_deleted_variable_is_named_if_it_can_be_no_other() {
        let check = |began: &str, ended: &str, handle: ChildHandle, deleted: Option<&str>| {
            let plays = [run(0)];
            let cells: &[(&str, &[Play])] = &[(began, &plays), (ended, &plays)];
            let left = [group((0, 10, handle))];
            let found = found(cells, &[&left, &left]);
            let names = found.iter().map(|it| match &it.details {
                FindingDetails::Children(details) => details.deleted.clone(),
                _ => None,
            });
            let name = names.flatten().next();
            assert_eq!(name.as_deref(), deleted, "{began} {ended}");
        };
        let llm = "llm = LLM()\ntext = llm.generate()";
        check(llm, "del llm", Lost, Some("llm"));
        check(llm, "llm = None", Held, Some("llm"));
        check(llm, "del text", Lost, None);
        // The pool leads to them.
        check("pool = Pool()\nx = f()", "del x", Held, None);
        check("pool = Pool()\nx = f()", "del x", Lost, Some("x"));
        check(llm, "del llm\nllm = LLM()", Lost, None);
    }
}
