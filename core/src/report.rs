//! The report and the line after a cell, as plain text.

use std::collections::BTreeSet;

use crate::analyze::{
    Analysis, DeviceSummary, Finding, FindingKind, Lane, Peak, RunRow, Severity, State, cell_label,
};
use crate::recording::{DeviceKind, Recording, Run, RunIdx, RunKind, Status};
use crate::units::{ByteDelta, Bytes};

/// The least that a line on every cell is printed for, as a share of the capacity.
const WORTH_A_LINE: f64 = 0.01;

/// The runs table shows at most this many, the latest.
const N_RUNS: usize = 20;

/// The sign in front of a finding: its severity is never told by colour alone.
pub fn icon(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Critical => "▲",
        Severity::Warning if finding.state == State::Leak => "▲",
        Severity::Warning => "◆",
        Severity::Info => "○",
    }
}

/// The word in front of a finding.
pub fn word(finding: &Finding) -> &'static str {
    match (finding.kind, finding.state) {
        (FindingKind::Leak, _) => "Leak",
        (FindingKind::Growing, State::NotEnoughData) => "Growing, too few runs to tell",
        (FindingKind::Growing, _) => "Growing, holder unknown",
        (FindingKind::Settled, _) => "Settled",
        (FindingKind::Fragmentation, _) => "Fragmentation",
    }
}

/// `17 runs of 6 cells`.
pub fn counts(recording: &Recording) -> String {
    let runs = recording
        .runs()
        .iter()
        .filter(|run| run.kind == RunKind::Cell);
    let cells: BTreeSet<_> = runs.clone().map(|run| run.cell).collect();
    format!(
        "{} of {}",
        plural(runs.count(), "run"),
        plural(cells.len(), "cell")
    )
}

fn plural(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// The whole report for a terminal, lines at most `width` columns long.
pub fn text(recording: &Recording, analysis: &Analysis, width: usize) -> String {
    let mut lines = vec![format!("GPU memory · {}", counts(recording)), String::new()];
    lines.extend(
        analysis
            .devices
            .iter()
            .map(|summary| device_line(recording, summary)),
    );
    lines.push(String::new());
    lines.extend(finding_lines(recording, analysis));
    lines.extend(run_lines(recording, analysis));
    lines.extend(
        analysis
            .warnings
            .iter()
            .map(|warning| format!("! {warning}")),
    );
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let shown: Vec<String> = lines.iter().map(|line| fitted(line, width)).collect();
    shown.join("\n")
}

/// The line after a cell: what its latest run kept, where the device stands; a
/// second line when there is something to say.
pub fn line(recording: &Recording, analysis: &Analysis, run: RunIdx) -> String {
    let rows: Vec<&RunRow> = analysis.rows.iter().filter(|row| row.run == run).collect();
    let shown = shown_rows(recording, &rows);
    let several = shown.len() > 1;
    let mut lines: Vec<String> = shown
        .iter()
        .map(|row| row_line(recording, analysis, row, several))
        .collect();
    if lines.is_empty() {
        lines.push("no level is known for this run: see %gpumem status".to_owned());
    }
    lines.extend(
        analysis
            .findings
            .iter()
            .filter(|finding| finding.runs.contains(&run) && finding.kind != FindingKind::Settled)
            .map(finding_line),
    );
    lines.join("\n")
}

/// A run on which `%gpumem on` speaks: at least 1 % of a capacity moved, or a
/// finding is new. `seen` holds the findings that were told before.
pub fn worth_saying(
    recording: &Recording,
    analysis: &Analysis,
    run: RunIdx,
    seen: &mut BTreeSet<String>,
) -> bool {
    let moved = analysis
        .rows
        .iter()
        .filter(|row| row.run == run)
        .any(|row| {
            let is_host = recording.device(row.device).kind == DeviceKind::Host;
            let kept = row.kept.unwrap_or_default().magnitude();
            let capacity = row.capacity.unwrap_or(Bytes::gib(8));
            !is_host && kept.as_f64() >= WORTH_A_LINE * capacity.as_f64()
        });
    let news = analysis
        .findings
        .iter()
        .filter(|finding| finding.runs.contains(&run) && finding.kind != FindingKind::Settled)
        .filter(|finding| seen.insert(format!("{} {}", finding.state.name(), finding.id)))
        .count();
    moved || news > 0
}

/// The devices of which a line speaks: accelerators that moved, else the first
/// accelerator, else the host.
fn shown_rows<'a>(recording: &Recording, rows: &[&'a RunRow]) -> Vec<&'a RunRow> {
    let is_host = |row: &&&RunRow| recording.device(row.device).kind == DeviceKind::Host;
    let accelerators: Vec<&RunRow> = rows.iter().filter(|row| !is_host(row)).copied().collect();
    let moved: Vec<&RunRow> = accelerators
        .iter()
        .filter(|row| row.kept.is_some_and(|kept| kept != ByteDelta::ZERO))
        .copied()
        .collect();
    match (moved.as_slice(), accelerators.first()) {
        ([], Some(first)) => vec![first],
        ([], None) => rows.iter().take(1).copied().collect(),
        _ => moved,
    }
}

fn row_line(recording: &Recording, analysis: &Analysis, row: &RunRow, several: bool) -> String {
    let run = recording.run(row.run);
    let device = recording.device(row.device);
    let mut parts = Vec::new();
    if several || device.kind == DeviceKind::Host {
        parts.push(device.label.clone());
    }
    parts.push(kept_words(row.kept));
    let used = row.device_used.1.or(row.process_used.1).or(row.reserved.1);
    match (used, row.capacity) {
        (Some(used), Some(capacity)) => parts.push(format!("{used} of {capacity}")),
        (Some(used), None) => parts.push(format!("{used} used")),
        _ => {}
    }
    parts.extend(row.peak.map(peak_words));
    let summary = analysis
        .devices
        .iter()
        .find(|summary| summary.device == row.device);
    parts.extend(
        summary
            .and_then(DeviceSummary::free)
            .map(|free| format!("{free} free")),
    );
    parts.extend(run.ended.map(|ended| ended.since(run.started).to_string()));
    parts.extend(status_word(run.status).map(str::to_owned));
    parts.join(" · ")
}

fn kept_words(kept: Option<ByteDelta>) -> String {
    match kept {
        None => "kept: not known".to_owned(),
        Some(ByteDelta::ZERO) => "kept nothing".to_owned(),
        Some(kept) if kept < ByteDelta::ZERO => format!("gave back {}", kept.magnitude()),
        Some(kept) => format!("{kept} kept"),
    }
}

fn peak_words(peak: Peak) -> String {
    match peak {
        Peak::Exact(peak) => format!("peak {peak}"),
        Peak::Between { low, high } => format!("peak {low} to {high}"),
        Peak::AtLeast(low) => format!("peak at least {low}"),
    }
}

fn status_word(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok => None,
        Status::Running => Some("still running"),
        Status::Error => Some("failed"),
        Status::Interrupted => Some("interrupted"),
        Status::OutOfMemory => Some("out of memory"),
    }
}

/// `▲ losses.append(…) keeps 420 MiB more after every run · grew in all 12 runs …`
fn finding_line(finding: &Finding) -> String {
    format!("{} {} · {}", icon(finding), finding.title, finding.detail)
}

fn device_line(recording: &Recording, summary: &DeviceSummary) -> String {
    let device = recording.device(summary.device);
    let mut parts = vec![
        format!("{} {}", device.label, device.name)
            .trim_end()
            .to_owned(),
    ];
    let used = summary.device_used.or(summary.process_used);
    match (used, summary.capacity) {
        (Some(used), Some(capacity)) => parts.push(format!("{used} of {capacity} used")),
        (Some(used), None) => parts.push(format!("{used} used")),
        _ => {}
    }
    let figures = [
        ("allocated", summary.allocated),
        ("reserved", summary.reserved),
        (
            "this process",
            summary
                .process_used
                .filter(|_| summary.lane != Lane::Allocated),
        ),
        ("highest", summary.peak),
    ];
    parts.extend(
        figures
            .into_iter()
            .filter_map(|(name, level)| Some(format!("{name} {}", level?))),
    );
    parts.extend(summary.free().map(|free| format!("{free} free")));
    parts.join(" · ")
}

fn finding_lines(recording: &Recording, analysis: &Analysis) -> Vec<String> {
    if recording.runs().is_empty() {
        return vec![
            "No run is recorded yet: put %%gpumem on a cell and run it, or %gpumem on for all."
                .to_owned(),
        ];
    }
    if analysis.findings.is_empty() {
        return vec![
            format!(
                "✓ nothing grows: {} checked for growth from run to run and step to step, and for \
             fragmentation",
                counts(recording)
            ),
            String::new(),
        ];
    }
    analysis
        .findings
        .iter()
        .flat_map(|finding| {
            let device = &recording.device(finding.device).label;
            let place = match finding.cell.as_ref().and_then(|cell| cell.execution_count) {
                Some(n) => format!("In [{n}] · {device}"),
                None => device.clone(),
            };
            let mut lines = vec![
                format!("{} {} · {}", icon(finding), word(finding), finding.title),
                format!("  {place} · {}", finding.detail),
            ];
            lines.extend(
                finding
                    .suggestions
                    .iter()
                    .map(|advice| format!("  → {advice}")),
            );
            lines.push(String::new());
            lines
        })
        .collect()
}

fn run_lines(recording: &Recording, analysis: &Analysis) -> Vec<String> {
    let rows: Vec<&RunRow> = analysis
        .rows
        .iter()
        .filter(|row| recording.run(row.run).kind == RunKind::Cell)
        .filter(|row| is_told(recording, analysis, row))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let n_hidden = rows.len().saturating_sub(N_RUNS);
    let mut lines = vec![format!(
        "{:<7} {:>10} {:>10}  {:<8} {}",
        "In", "kept", "peak", "time", "cell"
    )];
    if n_hidden > 0 {
        lines.push(format!("… and {n_hidden} earlier"));
    }
    lines.extend(rows[n_hidden..].iter().map(|row| run_line(recording, row)));
    lines
}

/// The table speaks of accelerators, and of the host where there is none.
fn is_told(recording: &Recording, analysis: &Analysis, row: &RunRow) -> bool {
    let is_host = |device| recording.device(device).kind == DeviceKind::Host;
    let only_host = analysis.devices.iter().all(|device| is_host(device.device));
    only_host || !is_host(row.device)
}

fn run_line(recording: &Recording, row: &RunRow) -> String {
    let run: &Run = recording.run(row.run);
    let number = run
        .execution_count
        .map_or_else(|| "[ ]".to_owned(), |n| format!("[{n}]"));
    let kept = row
        .kept
        .map_or_else(|| "?".to_owned(), |kept| kept.to_string());
    let peak = match row.peak {
        Some(Peak::Exact(peak)) => peak.to_string(),
        Some(peak) => format!("≥ {}", peak.low()),
        None => "?".to_owned(),
    };
    let time = run.ended.map_or_else(
        || "…".to_owned(),
        |ended| ended.since(run.started).to_string(),
    );
    let status = status_word(run.status).map_or_else(String::new, |word| format!(" ({word})"));
    format!(
        "{number:<7} {kept:>10} {peak:>10}  {time:<8} {}{status}",
        cell_label(recording, run)
    )
}

/// A line that fits the width, with `…` where it was cut.
fn fitted(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let is_prose =
        line[indent..].starts_with(['→', '▲', '◆', '○', '✓', '!']) || line.starts_with("  In [");
    if is_prose {
        return wrapped(line, width, indent + 2);
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Broken between words, the further lines indented by `indent`.
fn wrapped(line: &str, width: usize, indent: usize) -> String {
    let mut words = line.trim_start().split(' ');
    let own_indent = indent - 2;
    let first = words.next().unwrap_or_default();
    let mut lines = vec![format!("{}{first}", " ".repeat(own_indent))];
    for word in words {
        let last = lines.last_mut().expect("it begins with one");
        if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("{}{word}", " ".repeat(indent)));
        }
    }
    lines.join("\n")
}
