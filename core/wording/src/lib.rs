//! Sentences about findings: title, detail, evidence and advice, in the reader's units, as typed spans.
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
//! let leak = wording::present(&recording, leak, Units::Binary);
//! assert_eq!((leak.sign.glyph(), leak.heading), ("▲", "Leak"));
//! assert_eq!(leak.title.plain(), "losses.append(step(batch)) leaks 2 MiB a run");
//! ```
#![forbid(unsafe_code)]

mod advice;
mod cell_state;
mod children;
mod comparison;
mod doubling;
mod evidence;
mod fix;
mod fragmentation;
mod gap;
mod growth;
mod holders;
mod idle;
mod inefficient;
mod known_leak;
mod levels;
mod limits;
mod long_lived;
mod oom;
mod outlived;
mod overlap;
mod presentation;
mod pressure;
mod prose;
mod repeated;
mod retention;
mod ruled_out;
mod sign;
mod spike;
#[cfg(test)]
mod tests;
mod unattributed;
mod verdict;

use gpumem_analyzer::{
    Finding, FindingDetails, FindingGroup, FindingKind, GrowthVerdict, Withdrawn,
};
use gpumem_model::recording::{Device, DeviceKind, Recording, Run};
use gpumem_model::source_text;
use gpumem_model::units::{Units, count};

pub use cell_state::cell_state;
pub use comparison::{outcome, waits_for};
pub use fix::fix_reason;
pub use fragmentation::{EXPANDABLE, no_map};
pub use growth::{has_named_holder, stopped, two_digits, unit};
pub use idle::{IDLE, IDLE_NOTE, NOT_READ, idle, since, twins};
pub use levels::{gap, limited_by, metric, oom_part, part, warning};
pub use limits::OutputLimits;
use limits::{N_NAMES, SHORT_CODE};
pub use oom::{CURES, oom_holder};
pub use outlived::outlived;
pub use overlap::{others, together};
pub use presentation::{CureRow, Presentation, Remedy};
use prose::figure;
pub use prose::{Prose, Span, capitalised, code};
pub use retention::left_by;
pub use sign::Sign;
pub use verdict::{FindingCount, healthy, nothing_found, tally};

/// A finding of this recording, with sizes in `units`.
pub fn present(recording: &Recording, finding: &Finding, units: Units) -> Presentation {
    let teller = Teller {
        recording,
        finding,
        units,
    };
    let own = match &finding.details {
        FindingDetails::Growth(details) => growth::present(&teller, details),
        FindingDetails::UnattributedGrowth(series) => unattributed::present(&teller, series),
        FindingDetails::Fragmentation(details) => fragmentation::present(&teller, details),
        FindingDetails::ReservedGrowth { growth, .. } => {
            fragmentation::of_reserved(&teller, growth)
        }
        FindingDetails::Pressure { n_flushes, usable } => {
            pressure::present(&teller, *n_flushes, *usable)
        }
        FindingDetails::Spike { excess, usual } => spike::present(&teller, *excess, *usual),
        FindingDetails::Repeated { n_all } => repeated::present(&teller, *n_all),
        FindingDetails::Inefficient { used_share } => inefficient::present(&teller, *used_share),
        FindingDetails::Doubling(details) => doubling::present(&teller, details),
        FindingDetails::Gap(series) => gap::present(&teller, series),
        FindingDetails::LongLived { line, held, peak } => {
            long_lived::present(&teller, *line, (*held, *peak))
        }
        FindingDetails::OutOfMemory(breakdown) => oom::present(&teller, breakdown),
        FindingDetails::Retention(details) => retention::present(&teller, details),
        FindingDetails::Outlived(details) => outlived::present(&teller, details),
        FindingDetails::Children(details) => children::present(&teller, details),
    };
    own.about(&teller).known(finding)
}

/// What the report says in one line: its finding, or all of them together; the rest is of the first.
pub fn present_verdict(
    recording: &Recording,
    verdict: &FindingGroup<'_>,
    units: Units,
) -> Presentation {
    let finding = verdict.first();
    let teller = Teller {
        recording,
        finding,
        units,
    };
    let own = match (verdict.findings(), &finding.details) {
        ([_], _) => return present(recording, finding, units),
        (findings, FindingDetails::OutOfMemory(_)) => oom::of_several(&teller, findings),
        (
            findings,
            FindingDetails::Pressure {
                usable: Some(usable),
                ..
            },
        ) => pressure::of_several(&teller, *usable, findings),
        (findings, _) => growth::of_several_settled(&teller, findings),
    };
    own.about(&teller)
}

/// The context of one finding's words.
struct Teller<'a> {
    recording: &'a Recording,
    finding: &'a Finding,
    units: Units,
}

impl Teller<'_> {
    /// The cell's name, as code.
    fn cell(&self) -> Prose {
        match &self.finding.cell {
            Some(cell) => code(&source_text::abridged(&cell.label)).into(),
            None => "a cell".into(),
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
        let own = usize::from(is_accelerator(self.recording.device(device)));
        let mut accelerators = self
            .recording
            .devices()
            .iter()
            .filter(|it| is_accelerator(it));
        match accelerators.nth(own) {
            Some(_) => format!(" on {}", self.device()),
            None => String::new(),
        }
    }
}

/// The heading of a finding.
fn heading(finding: &Finding) -> &'static str {
    match (finding.kind, finding.state) {
        (FindingKind::Leak, _) => "Leak",
        (FindingKind::Growing, Some(GrowthVerdict::NotEnoughData)) => {
            "Growing, too few runs to tell"
        }
        (FindingKind::Growing, _) if is_holder_unknown(finding) => "Growing, holder unknown",
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
        (FindingKind::Outlived, _) => "Deleted, but still held",
        (FindingKind::Children, _) => "Child processes",
    }
}

/// What grows in child processes is held by them.
fn is_holder_unknown(finding: &Finding) -> bool {
    finding.holders.is_empty() && !matches!(finding.details, FindingDetails::Children(_))
}

/// Why a finding was withdrawn.
pub(crate) const fn withdrawn(reason: Withdrawn) -> &'static str {
    match reason {
        Withdrawn::GivenBack => "given back since",
        Withdrawn::Edited => "the cell was edited since",
        Withdrawn::HadEnough => "a later run of the cell had enough",
        Withdrawn::LetGo => "freed since",
        Withdrawn::Returned => "given back when it ended",
        Withdrawn::Expected => "you said so with %gpumem expect",
    }
}

/// The title of a report: `GPU memory`; and where there is no GPU, whose memory it is about.
pub fn title(recording: &Recording) -> (&'static str, Option<&'static str>) {
    let devices = recording.devices();
    let has_others = devices.iter().any(|it| it.kind != DeviceKind::Host);
    if has_others || devices.is_empty() {
        ("GPU memory", None)
    } else {
        ("Memory", Some("no GPU: host memory of this process"))
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

/// `In [12]` with what stands before it; empty if the number is not known.
fn place(before: &str, execution_count: Option<u32>) -> String {
    execution_count.map_or_else(String::new, |n| format!("{before}In [{n}]"))
}

/// `once`, `7 times`.
fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}
