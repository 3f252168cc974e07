//! A finding as the outputs show it.

use super::fix::{fix_after_cell, fix_reason, short_fix};
use super::{Prose, Teller, code, evidence, ruled_out};
use gpumem_analyzer::Finding;
use gpumem_heap::Fix;
use gpumem_model::recording::Recording;

/// A finding, or several that share one line: made once by [`present`](super::present()), laid out by each
/// output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presentation {
    /// In front of it, because colour alone must not show its severity.
    pub sign: &'static str,
    /// Its kind: `Leak`.
    pub heading: &'static str,
    /// One sentence: what happens where.
    pub title: Prose,
    /// What has come of it so far, and what will; may be empty.
    pub outlook: Prose,
    /// Both in one line.
    pub row: Prose,
    /// For the line after a cell: where it may be broken is between these.
    pub line: Vec<Prose>,
    /// The cell: `In [57]`.
    pub place: Option<String>,
    /// What it rests on.
    pub facts: Vec<Prose>,
    /// What to change, or to run once.
    pub remedy: Option<Remedy>,
    /// The remedy for the line after a cell: `….sum().detach()`; may be empty.
    pub after_cell: String,
    /// What to do, most promising first: one sentence each.
    pub advice: Vec<Prose>,
    /// What it could have been and is not, each with the reason.
    pub ruled_out: Vec<(&'static str, Prose)>,
    /// What each figure of its evidence means.
    pub evidence: Vec<String>,
}

/// The user's line and what to write in its place, or a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The line; `None` if the code is to be run once.
    pub before: Option<String>,
    /// What to write, or to run.
    pub after: String,
    /// `In [57]`, `another cell` or `run once`.
    pub place: String,
    /// The line is in the cell that [`place`](Self::place) names.
    pub is_here: bool,
    /// `line 3`.
    pub line: Option<String>,
    /// In as few letters as tell it from another; empty if only its line does.
    pub short: Prose,
    /// Why it helps; `None` of a command that gives back what is kept.
    pub reason: Option<Prose>,
}

impl Presentation {
    pub(super) fn new(title: impl Into<Prose>, outlook: impl Into<Prose>) -> Self {
        Self::with_row(title, "; ", outlook)
    }

    /// Title and outlook are separated by `between` where they share a line.
    pub(super) fn with_row(
        title: impl Into<Prose>,
        between: &str,
        outlook: impl Into<Prose>,
    ) -> Self {
        let (title, outlook) = (title.into(), outlook.into());
        let line = [&title, &outlook].into_iter().filter(|it| !it.is_empty());
        Self {
            line: line.cloned().collect(),
            row: Prose::joined([&title, &outlook.even()], between),
            title,
            outlook,
            ..Self::default()
        }
    }

    pub(super) fn fact(self, fact: impl Into<Prose>) -> Self {
        self.facts([fact.into()])
    }

    pub(super) fn facts(mut self, facts: impl IntoIterator<Item = Prose>) -> Self {
        self.facts.extend(facts);
        self
    }

    pub(super) fn advice(mut self, advice: impl Into<Prose>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// With what every kind of finding has.
    pub(super) fn about(self, teller: &Teller<'_>) -> Self {
        let Teller {
            finding, recording, ..
        } = teller;
        let figures = finding.evidence.iter();
        let fix = || finding.fix.as_ref().map(fix_after_cell);
        let after_cell = finding.release().map(str::to_owned).or_else(fix);
        Self {
            sign: super::icon(finding),
            heading: super::heading(finding),
            place: place(finding),
            remedy: Remedy::new(recording, finding),
            after_cell: after_cell.unwrap_or_default(),
            ruled_out: ruled_out::ruled_out(teller),
            evidence: figures.map(|it| evidence::evidence(teller, it)).collect(),
            ..self
        }
    }

    /// What it rests on, in one line.
    pub fn detail(&self) -> Prose {
        Prose::joined(&self.facts, " · ")
    }

    /// Why the remedy helps, or else what to do first; may be empty.
    pub fn reason(&self) -> Prose {
        let remedy = self.remedy.as_ref();
        let reason = remedy.and_then(|it| it.reason.as_ref());
        let reason = reason.or(self.advice.first()).cloned();
        reason.map(Prose::sentence).unwrap_or_default()
    }
}

impl Remedy {
    fn new(recording: &Recording, finding: &Finding) -> Option<Self> {
        let once = || "run once".to_owned();
        let Some(fix) = &finding.fix else {
            return finding.release().map(|command| Self {
                before: None,
                after: command.to_owned(),
                place: once(),
                is_here: false,
                line: None,
                short: code(command).into(),
                reason: None,
            });
        };
        let Fix {
            before,
            after,
            elsewhere,
            ..
        } = fix.clone();
        let line = finding.fix_line(recording);
        Some(Self {
            place: match &before {
                None => once(),
                Some(_) if elsewhere => "another cell".to_owned(),
                Some(_) => place(finding).unwrap_or_default(),
            },
            is_here: before.is_some() && !elsewhere,
            line: line.map(|line| format!("line {line}")),
            short: if elsewhere {
                Prose::default()
            } else {
                short_fix(fix)
            },
            reason: Some(fix_reason(fix)),
            before,
            after,
        })
    }
}

/// `In [57]`.
fn place(finding: &Finding) -> Option<String> {
    let number = finding.cell.as_ref()?.execution_count?;
    Some(format!("In [{number}]"))
}
