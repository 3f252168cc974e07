//! One verdict of the analyzer with its evidence.

use std::cmp::Reverse;

use super::oom_cause::OomCause;
use super::{FindingDetails, FindingKind, SeriesGrowth};
use crate::cell::CellRef;
use crate::evidence::Evidence;
use crate::growth::GrowthVerdict;
use crate::known_leaks::KnownLeak;
use crate::loop_place::LoopPlace;
use crate::reason::Reason;
use crate::row::Metric;
use gpumem_heap::Fix;
use gpumem_model::holders::{Holder, RootKind};
use gpumem_model::named;
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::severity::Severity;
use gpumem_model::units::Bytes;

named! {
    /// Why a finding no longer matters: [`Finding::withdrawn`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Withdrawn {
        /// The device fell back to its level before the growth.
        GivenBack = "given_back",
        /// The cell was edited.
        Edited = "edited",
        /// A later run of the cell had enough memory.
        HadEnough = "had_enough",
        /// What was kept has been freed.
        LetGo = "let_go",
        /// The function or the generator that kept it has ended.
        Returned = "returned",
        /// The user means it: `%gpumem expect`.
        Expected = "expected",
    }
}

/// One verdict with its evidence, as facts: `wording` turns them into sentences.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stays the same while the finding stands, so that a reader can follow its card.
    pub id: String,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// The verdict on its series; `None` if it has none, like an out-of-memory error.
    pub state: Option<GrowthVerdict>,
    /// Why that is the verdict; `None` without one.
    pub reason: Option<Reason>,
    /// Why it no longer matters, if it was withdrawn.
    pub withdrawn: Option<Withdrawn>,
    /// The cell; `None` if it is about a device as a whole.
    pub cell: Option<CellRef>,
    /// The label of the steps or the names of the blocks inside the cell, outermost first.
    pub path: Vec<String>,
    /// The device; see [`Finding::known_device`].
    pub device: DeviceIdx,
    /// The level that it is about.
    pub metric: Metric,
    /// The runs that it is based on.
    pub runs: Vec<RunIdx>,
    /// How many runs, or steps if it counts steps, it is based on.
    pub n_runs: usize,
    /// The names that hold it, the largest first; `grown` is what each gained over these runs.
    pub holders: Vec<Holder>,
    /// What to change so that the first of them lets go.
    pub fix: Option<Fix>,
    /// A library is known for it.
    pub known_leak: Option<KnownLeak>,
    /// The figures that it is based on.
    pub evidence: Vec<Evidence>,
    /// Figures that only this kind of finding has.
    pub details: FindingDetails,
}

impl Finding {
    /// Whether it is a [`FindingKind::OutOfMemory`].
    pub fn ran_out(&self) -> bool {
        self.kind == FindingKind::OutOfMemory
    }

    /// The device to name; `None` if it happened on a device that is not read.
    pub fn known_device(&self) -> Option<DeviceIdx> {
        let elsewhere = match &self.details {
            FindingDetails::OutOfMemory(breakdown) => breakdown.elsewhere,
            _ => false,
        };
        (!elsewhere).then_some(self.device)
    }

    /// How fast a series grows, if the finding is about one.
    pub fn growth(&self) -> Option<&SeriesGrowth> {
        self.details.growth()
    }

    /// It counts steps inside a run, not runs.
    pub fn counts_steps(&self) -> bool {
        matches!(&self.details, FindingDetails::Growth(details) if details.steps)
    }

    /// The loop whose iterations it counts, if the user has not marked them as steps.
    pub fn in_loop(&self) -> Option<&LoopPlace> {
        match &self.details {
            FindingDetails::Growth(details) => details.in_loop.as_ref(),
            _ => None,
        }
    }

    /// What is known to hold the most of it.
    pub(super) fn first_name(&self) -> Option<(RootKind, &str)> {
        let first = self.holders.first()?;
        Some((first.kind, &first.name))
    }

    /// The command that frees what is kept, if there is one.
    pub fn release(&self) -> Option<&'static str> {
        match &self.details {
            FindingDetails::Retention(retained) if self.withdrawn.is_none() => retained.release,
            FindingDetails::Children(_) if self.withdrawn.is_none() => {
                Some("%gpumem release children")
            }
            _ => None,
        }
    }

    /// The number of the line that the fix changes, from 1, in the cell as it was run last; and the file, if it
    /// is in no cell.
    pub fn fix_line<'r>(&self, recording: &'r Recording) -> Option<(Option<&'r str>, u32)> {
        let fix = self.fix.as_ref().filter(|fix| !fix.elsewhere)?;
        let first = fix.before.as_ref()?.lines().next()?;
        let latest = recording.latest_run(self.cell.as_ref()?.idx);
        // A task of a worker is nested in what the notebook ran.
        let own = || Some(recording.run(*self.runs.last()?));
        let run = latest.or_else(own)?;
        let text = recording.text(run)?;
        // `jupyter gpumem run` puts a line above a program.
        let is_program = run.execution_count.is_none() && text.starts_with("%%gpumem");
        let mut lines = text.lines().skip(usize::from(is_program));
        let idx = lines.position(|line| line.contains(first))?;
        let revision = recording.revision(run.cell, run.revision);
        let file = revision.and_then(|it| it.file.as_deref());
        Some((file, u32::try_from(idx + 1).ok()?))
    }

    /// The cell whose growth left too little memory, and what it had kept.
    fn grown_cause(&self) -> Option<(&str, Bytes)> {
        match &self.details {
            FindingDetails::OutOfMemory(breakdown) => match breakdown.causes.first()? {
                OomCause::Growth { kept, cell, .. } => Some((cell, *kept)),
                _ => None,
            },
            _ => None,
        }
    }

    /// A finding with nothing but its head: to be filled by struct update.
    pub(crate) fn about(
        kind: FindingKind,
        subject: &str,
        device: DeviceIdx,
        metric: Metric,
        details: FindingDetails,
    ) -> Self {
        Self {
            id: format!("{}/{subject}", kind.name()),
            kind,
            severity: Severity::Info,
            state: None,
            reason: None,
            withdrawn: None,
            cell: None,
            path: Vec::new(),
            device,
            metric,
            runs: Vec::new(),
            n_runs: 0,
            holders: Vec::new(),
            fix: None,
            known_leak: None,
            evidence: Vec::new(),
            details,
        }
    }
}

/// Worst first: severity, leaks before what is only watched, size; and what ran out of memory after
/// what made it run out.
pub(crate) fn sort(findings: &mut [Finding]) {
    let ooms = findings.iter().filter(|it| it.withdrawn.is_none());
    let causes: Vec<(String, Bytes, Severity)> = ooms
        .filter_map(|oom| {
            let (cell, kept) = oom.grown_cause()?;
            Some((cell.to_owned(), kept, oom.severity))
        })
        .collect();
    findings.sort_by_key(|finding| {
        let total = finding.growth().map(|growth| growth.total);
        let is_cause = |(cell, kept, _): &&(String, Bytes, Severity)| {
            let is_cell = finding.cell.as_ref().is_some_and(|it| it.label == *cell);
            is_cell && total.is_some_and(|total| total.magnitude() == *kept)
        };
        let severities = causes
            .iter()
            .filter(is_cause)
            .map(|(_, _, severity)| *severity);
        let kept = match &finding.details {
            FindingDetails::Retention(retained) => retained.kept,
            FindingDetails::Outlived(outlived) => outlived.alive,
            FindingDetails::Children(children) => children.n_bytes,
            _ => Bytes::ZERO,
        };
        let is_oom = finding.ran_out();
        (
            Reverse(severities.fold(finding.severity, Severity::max)),
            match (is_oom, finding.grown_cause()) {
                (true, None) => 0,
                (false, _) => 1,
                (true, Some(_)) => 2,
            },
            finding.state.unwrap_or(GrowthVerdict::Suspected),
            Reverse(total.unwrap_or_default()),
            Reverse(kept),
        )
    });
}
