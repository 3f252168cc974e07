//! A finding as the outputs show it.

use super::fix::{fix_after_cell, fix_reason, short_fix};
use super::{Prose, Sign, Teller, code, evidence, prose, ruled_out};
use gpumem_analyzer::{Finding, Fingerprint};
use gpumem_model::recording::Recording;

/// A finding, or several that share one line: made once by [`present`](super::present()), laid out by each
/// output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presentation {
    /// In front of it.
    pub sign: Sign,
    /// Its kind: `Leak`.
    pub heading: &'static str,
    /// Of a library's known leak: `known leak · accelerate`.
    pub tag: Option<String>,
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
    /// What it is recognised by in another session: `3f9a01c2`.
    pub fingerprint: Option<Fingerprint>,
    /// What it rests on.
    pub facts: Vec<Prose>,
    /// Of a library's known leak: which versions have it, and how its cure is proven.
    pub known: Vec<(&'static str, Prose)>,
    /// What to change, or to run once.
    pub remedy: Option<Remedy>,
    /// The remedy for the line after a cell: `….sum().detach()`; may be empty.
    pub after_cell: String,
    /// What would have been enough memory, in the order in which to try it.
    pub cures: Vec<CureRow>,
    /// What else to do, most promising first: one sentence each.
    pub advice: Vec<Prose>,
    /// What it could have been and is not, each with the reason.
    pub ruled_out: Vec<(&'static str, Prose)>,
    /// What each figure of its evidence means.
    pub evidence: Vec<String>,
    /// Where to read more.
    pub link: Option<&'static str>,
}

/// A row of the table of what would have been enough, as the analyzer's [`Cure`](gpumem_analyzer::Cure) says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CureRow {
    /// What to do: `del checkpoint`.
    pub action: Prose,
    /// What else is to be said of it.
    pub remark: Prose,
    /// `frees 720 MiB`; empty if that is not known.
    pub frees: String,
    /// `enough`, `enough together` or `leaves 130 MiB missing`.
    pub fit: String,
    /// With what is above it, or alone.
    pub is_enough: bool,
}

impl CureRow {
    /// ``del checkpoint: frees 720 MiB, enough; no cell has used it since In [3]``.
    fn sentence(&self) -> Prose {
        let fit = [&*self.frees, &*self.fit].map(Prose::from);
        let fit = Prose::joined(&fit, ", ");
        let action = self.action.clone();
        Prose::joined([&prose![action, ": ", fit], &self.remark], "; ")
    }
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
        let mut line = vec![title.clone()];
        if !outlook.is_empty() {
            line.push(outlook.clone());
        }
        Self {
            line,
            row: Prose::joined([&title, &outlook.even()], between),
            title,
            outlook,
            ..Self::default()
        }
    }

    pub(super) fn fact(mut self, fact: impl Into<Prose>) -> Self {
        self.facts.push(fact.into());
        self
    }

    pub(super) fn advice(mut self, advice: impl Into<Prose>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// With what every kind of finding has.
    pub(super) fn about(mut self, teller: &Teller<'_>) -> Self {
        let Teller {
            finding, recording, ..
        } = teller;
        self.sign = Sign::from(*finding);
        self.heading = super::heading(finding);
        self.place = place(finding);
        self.fingerprint = finding.fingerprint(recording);
        self.remedy = Remedy::new(recording, finding);
        self.after_cell = match (finding.release(), &finding.fix) {
            (Some(command), _) => command.to_owned(),
            (None, Some(fix)) => fix_after_cell(fix),
            (None, None) => String::new(),
        };
        self.ruled_out = ruled_out::ruled_out(teller);
        let figures = finding.evidence.iter();
        self.evidence = figures.map(|it| evidence::evidence(teller, it)).collect();
        self
    }

    /// What it rests on, in one line.
    pub fn detail(&self) -> Prose {
        Prose::joined(&self.facts, " · ")
    }

    /// Why the remedy helps, or else what to do first; may be empty.
    pub fn reason(&self) -> Prose {
        let remedy = self.remedy.as_ref();
        let reason = remedy.and_then(|it| it.reason.clone());
        // The outlook says what is enough only together.
        let says_enough = self.cures.first().is_none_or(|it| it.is_enough);
        let reason = reason.or_else(|| {
            self.suggestions()
                .into_iter()
                .next()
                .filter(|_| says_enough)
        });
        reason.map(Prose::sentence).unwrap_or_default()
    }

    /// All that there is to do, most promising first: one sentence each.
    pub fn suggestions(&self) -> Vec<Prose> {
        let cures = self.cures.iter().map(CureRow::sentence);
        cures.chain(self.advice.iter().cloned()).collect()
    }
}

impl Remedy {
    fn new(recording: &Recording, finding: &Finding) -> Option<Self> {
        let Some(fix) = &finding.fix else {
            let command = finding.release()?;
            return Some(Self {
                after: command.to_owned(),
                place: "run once".to_owned(),
                short: code(command).into(),
                ..Self::default()
            });
        };
        let line = finding.fix_line(recording);
        let mut remedy = Self {
            before: fix.before.clone(),
            after: fix.after.clone(),
            line: line.map(|(file, line)| match file {
                Some(file) => format!("{file}:{line}"),
                None => format!("line {line}"),
            }),
            reason: Some(fix_reason(fix)),
            ..Self::default()
        };
        if !fix.elsewhere {
            remedy.short = short_fix(fix);
        }
        remedy.place = match &fix.before {
            None => "run once".to_owned(),
            Some(_) if fix.elsewhere => "another cell".to_owned(),
            Some(_) => {
                remedy.is_here = true;
                place(finding).unwrap_or_default()
            }
        };
        Some(remedy)
    }
}

/// `In [57]`.
fn place(finding: &Finding) -> Option<String> {
    let number = finding.cell.as_ref()?.execution_count?;
    Some(format!("In [{number}]"))
}
