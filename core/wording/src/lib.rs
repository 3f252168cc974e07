//! Sentences about findings: title, detail, evidence and advice, in the reader's units.
//!
//! [`analyze`](gpumem_analyzer) finds facts; every sentence about them is made here, one file per kind,
//! so that changing a sentence touches one file.
//!
//! ```
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_model::units::Units;
//! use gpumem_wording as wording;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let analysis = analyze(&recording, &Rules::default());
//! let leak = &analysis.findings[0];
//! assert_eq!((wording::icon(leak), wording::heading(leak)), ("▲", "Leak"));
//! let words = wording::words(&recording, leak, Units::Binary);
//! assert_eq!(words.title, "`losses.append(step(batch))` leaks 2 MiB a run");
//! ```
#![forbid(unsafe_code)]

mod advice;
mod doubling;
mod evidence;
mod fix;
mod fragmentation;
mod gap;
mod growth;
mod holders;
mod inefficient;
mod levels;
mod long_lived;
mod oom;
mod overlap;
mod pressure;
mod repeated;
mod retention;
mod ruled_out;
mod spike;
#[cfg(test)]
mod tests;
mod unattributed;
mod verdict;

use gpumem_analyzer::{Details, Finding, FindingKind, Severity, State, Verdict, Withdrawn};
use gpumem_model::printable::printable;
use gpumem_model::recording::{Device, Recording, Run};
use gpumem_model::source_text;
use gpumem_model::units::{Units, count};

pub use evidence::evidence;
pub use fix::fix_after_cell;
pub use fix::{fix_reason, short_fix};
pub use growth::{two_digits, unit};
pub use levels::{gap, limited_by};
pub use levels::{metric, oom_part, part, warning};
pub use oom::oom_holder;
pub use overlap::{others, together};
pub use ruled_out::ruled_out;
pub use verdict::{Tally, calm_sign, capitalised, healthy, sentence, tally};

/// A finding in words. Code is in backticks, what stands out between `**`: [`plain`] takes both away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// One sentence: what happens where.
    pub title: String,
    /// What has come of it so far, and what will; may be empty.
    pub outlook: String,
    /// Both in one line.
    pub row: String,
    /// For the line after a cell, in parts between which it may be broken.
    pub line: Vec<String>,
    /// What it rests on, separated by `·`; may be empty.
    pub detail: String,
    /// What to do, most promising first: one sentence each.
    pub suggestions: Vec<String>,
}

impl Words {
    fn new(title: impl Into<String>, outlook: impl Into<String>) -> Self {
        Self::with_row(title.into(), "; ", outlook.into())
    }

    /// Title and outlook are separated by `between` where they share a line.
    fn with_row(title: String, between: &str, outlook: String) -> Self {
        let row = match unmarked(&outlook) {
            empty if empty.is_empty() => title.clone(),
            outlook => format!("{title}{between}{outlook}"),
        };
        let parts = [plain(&title), plain(&outlook)];
        Self {
            line: parts.into_iter().filter(|part| !part.is_empty()).collect(),
            title,
            outlook,
            row,
            ..Self::default()
        }
    }

    fn detail(self, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }

    fn advice(self, advice: impl Into<String>) -> Self {
        Self {
            suggestions: vec![advice.into()],
            ..self
        }
    }
}

/// Words without their marks, for a terminal.
pub fn plain(words: &str) -> String {
    unmarked(words).replace('`', "")
}

/// Words without what makes a figure stand out; code may have two stars of its own.
pub fn unmarked(words: &str) -> String {
    let parts = words.split('`').enumerate();
    let parts = parts.map(|(idx, part)| match idx % 2 {
        0 => part.replace("**", ""),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// A name or a line of code as code.
fn code(text: &str) -> String {
    format!("`{}`", printable(text).replace('`', "'"))
}

/// The words for a finding of this recording, with sizes in `units`.
pub fn words(recording: &Recording, finding: &Finding, units: Units) -> Words {
    let teller = Teller {
        recording,
        finding,
        units,
    };
    match &finding.details {
        Details::Growth(details) => growth::words(&teller, details),
        Details::UnattributedGrowth(series) => unattributed::words(&teller, series),
        Details::Fragmentation(details) => fragmentation::words(&teller, details),
        Details::ReservedGrowth { growth, .. } => fragmentation::of_reserved(&teller, growth),
        Details::Pressure { n_flushes } => pressure::words(&teller, *n_flushes),
        Details::Spike { excess, usual } => spike::words(&teller, *excess, *usual),
        Details::Repeated { n_all } => repeated::words(&teller, *n_all),
        Details::Inefficient { used_share } => inefficient::words(&teller, *used_share),
        Details::Doubling(details) => doubling::words(&teller, details),
        Details::Gap(series) => gap::words(&teller, series),
        Details::LongLived { line, held, peak } => {
            long_lived::words(&teller, *line, (*held, *peak))
        }
        Details::OutOfMemory(breakdown) => oom::words(&teller, breakdown),
        Details::Retention(details) => retention::words(&teller, details),
    }
}

/// The words for what the report says in one line: as of its finding, or of all of them together.
pub fn verdict_words(recording: &Recording, verdict: &Verdict<'_>, units: Units) -> Words {
    let finding = verdict.first();
    let teller = Teller {
        recording,
        finding,
        units,
    };
    match (verdict.findings(), finding.kind) {
        ([_], _) => words(recording, finding, units),
        (findings, FindingKind::OutOfMemory) => oom::of_several(&teller, findings),
        (findings, FindingKind::Pressure) => pressure::of_several(&teller, findings),
        (findings, _) => growth::of_several_settled(&teller, findings),
    }
}

/// The context of one finding's words.
struct Teller<'a> {
    recording: &'a Recording,
    finding: &'a Finding,
    units: Units,
}

impl Teller<'_> {
    /// The cell's name, as code.
    fn cell(&self) -> String {
        match &self.finding.cell {
            Some(cell) => code(&source_text::abridged(&cell.label)),
            None => "a cell".to_owned(),
        }
    }

    /// The first run that it rests on.
    fn run(&self) -> Option<&Run> {
        let first = self.finding.runs.first()?;
        Some(self.recording.run(*first))
    }

    /// The device's label.
    fn device(&self) -> &str {
        &self.recording.device(self.finding.device).label
    }

    /// ` on cuda:1`, where it could be another one.
    fn on_device(&self) -> String {
        let is_accelerator = |device: &Device| device.kind.is_accelerator();
        let Some(device) = self.finding.known_device() else {
            return " on a device that is not read".to_owned();
        };
        let devices = self.recording.devices();
        let n_accelerators = devices.iter().filter(|it| is_accelerator(it)).count();
        let is_only = n_accelerators <= usize::from(is_accelerator(self.recording.device(device)));
        if is_only {
            String::new()
        } else {
            format!(" on {}", self.device())
        }
    }
}

/// The sign in front of a finding, because colour alone must not show its severity.
pub fn icon(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Critical => "▲",
        Severity::Warning if finding.state == Some(State::Leak) => "▲",
        Severity::Warning => "◆",
        Severity::Info => "○",
    }
}

/// The heading of a finding.
pub fn heading(finding: &Finding) -> &'static str {
    match (finding.kind, finding.state) {
        (FindingKind::Leak, _) => "Leak",
        (FindingKind::Growing, Some(State::NotEnoughData)) => "Growing, too few runs to tell",
        (FindingKind::Growing, _) if finding.holders.is_empty() => "Growing, holder unknown",
        (FindingKind::Growing, _) => "Growing",
        (FindingKind::Bounded, _) => "Bounded",
        (FindingKind::Settled, _) => "Settled",
        (FindingKind::Fragmentation, _) => "Fragmentation",
        (FindingKind::Pressure, _) => "Memory pressure",
        (FindingKind::Spike, _) => "Spike",
        (FindingKind::Repeated, _) => "Repeated driver allocation",
        (FindingKind::Inefficient, _) => "Inefficient reservation",
        (FindingKind::Doubling, _) => "Old and new copy alive together",
        (FindingKind::Gap, _) => "Growth outside the allocator",
        (FindingKind::LongLived, _) => "Long-lived",
        (FindingKind::OutOfMemory, _) => "Out of memory",
        (FindingKind::Retention, _) => "Kept by IPython",
    }
}

/// Why a finding was withdrawn.
pub(crate) const fn withdrawn(reason: Withdrawn) -> &'static str {
    match reason {
        Withdrawn::GivenBack => "given back since",
        Withdrawn::Edited => "the cell was edited since",
        Withdrawn::HadEnough => "a later run of the cell had enough",
        Withdrawn::LetGo => "freed since",
        Withdrawn::Returned => "given back when it ended",
    }
}

/// The size of a recording in words: `17 runs of 6 cells`.
pub fn counts(recording: &Recording) -> String {
    let runs = recording.runs().iter().filter(|run| run.parent.is_none());
    let cells = recording.cells().iter();
    let run_once = cells.filter(|cell| recording.latest_run(cell.idx).is_some());
    format!(
        "{} of {}",
        count(runs.count(), "run"),
        count(run_once.count(), "cell")
    )
}

/// `once`, `7 times`.
fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" · ")
}
