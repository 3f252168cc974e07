//! The report and the line after a cell, as plain text.

use std::collections::BTreeSet;

use crate::analyze::{
    Analysis, DeviceSummary, Finding, FindingKind, Lane, Peak, RunRow, Severity, State, cell_label,
};
use crate::recording::{DeviceKind, Recording, RunIdx, RunKind, Status};
use crate::units::{ByteDelta, Bytes};

/// The least that a line on every cell is printed for, as a share of the capacity.
const WORTH_A_LINE: f64 = 0.01;

/// The table of runs has at most this many lines, the latest.
const N_LINES: usize = 20;

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
    let mut prose = vec![format!("GPU memory · {}", counts(recording)), String::new()];
    prose.extend(
        analysis
            .devices
            .iter()
            .map(|summary| device_line(recording, summary)),
    );
    prose.push(String::new());
    prose.extend(finding_lines(recording, analysis));
    let warnings = analysis
        .warnings
        .iter()
        .map(|warning| format!("! {warning}"));
    prose.extend(warnings);
    let mut lines: Vec<String> = prose.iter().map(|line| wrapped(line, width)).collect();
    lines.extend(run_lines(recording, analysis, width));
    lines.dedup_by(|next, line| next.is_empty() && line.is_empty());
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n")
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

/// A table of the runs: those of one cell in a row are one line.
fn run_lines(recording: &Recording, analysis: &Analysis, width: usize) -> Vec<String> {
    let rows: Vec<&RunRow> = analysis
        .rows
        .iter()
        .filter(|row| recording.run(row.run).kind == RunKind::Cell)
        .filter(|row| is_told(recording, analysis, row))
        .collect();
    let same = |a: &&RunRow, b: &&RunRow| {
        let (of_a, of_b) = (recording.run(a.run), recording.run(b.run));
        (a.device, of_a.revision, of_a.status) == (b.device, of_b.revision, of_b.status)
    };
    let groups: Vec<&[&RunRow]> = rows.chunk_by(same).collect();
    if groups.is_empty() {
        return Vec::new();
    }
    let n_hidden = groups.len().saturating_sub(N_LINES);
    let mut lines = vec![table_line(["In", "runs", "kept", "peak", "time"], "cell")];
    if n_hidden > 0 {
        lines.push(format!("… and {n_hidden} earlier"));
    }
    lines.extend(
        groups[n_hidden..]
            .iter()
            .map(|rows| group_line(recording, rows)),
    );
    lines.iter().map(|line| cut(line, width)).collect()
}

/// The table speaks of accelerators, and of the host where there is none.
fn is_told(recording: &Recording, analysis: &Analysis, row: &RunRow) -> bool {
    let is_host = |device| recording.device(device).kind == DeviceKind::Host;
    let only_host = analysis.devices.iter().all(|device| is_host(device.device));
    only_host || !is_host(row.device)
}

fn group_line(recording: &Recording, rows: &[&RunRow]) -> String {
    let runs = || rows.iter().map(|row| recording.run(row.run));
    let number = |n: Option<u32>| n.map_or_else(|| " ".to_owned(), |n| n.to_string());
    let numbers: BTreeSet<Option<u32>> = runs().map(|run| run.execution_count).collect();
    let span = match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) if first != last => {
            format!("[{}–{}]", number(*first), number(*last))
        }
        (first, _) => format!("[{}]", number(first.copied().flatten())),
    };
    let kept = rows
        .iter()
        .filter_map(|row| row.kept)
        .reduce(|sum, kept| sum + kept);
    let peaks = rows.iter().filter_map(|row| row.peak);
    let peak = peaks.max_by_key(|peak| (peak.low(), peak.is_exact()));
    let time = runs()
        .filter_map(|run| Some(run.ended?.since(run.started)))
        .reduce(|sum, time| sum + time);
    let run = recording.run(rows[0].run);
    let status = status_word(run.status).map_or_else(String::new, |word| format!(" ({word})"));
    table_line(
        [
            &span,
            &rows.len().to_string(),
            &kept.map_or_else(|| "?".to_owned(), |kept| kept.to_string()),
            &peak.map_or_else(
                || "?".to_owned(),
                |peak| match peak {
                    Peak::Exact(peak) => peak.to_string(),
                    Peak::Between { low, .. } | Peak::AtLeast(low) => format!("≥ {low}"),
                },
            ),
            &time.map_or_else(|| "…".to_owned(), |time| time.to_string()),
        ],
        &format!("{}{status}", cell_label(recording, run)),
    )
}

fn table_line([span, runs, kept, peak, time]: [&str; 5], cell: &str) -> String {
    format!("{span:<8} {runs:>4} {kept:>10} {peak:>10} {time:>9}  {cell}")
}

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Broken between words where it is too long, the further lines indented by two more.
fn wrapped(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let mut words = line.trim_start().split(' ');
    let first = words.next().unwrap_or_default();
    let mut lines = vec![format!("{}{first}", " ".repeat(indent))];
    for word in words {
        let last = lines.last_mut().expect("it begins with one");
        if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("{}{word}", " ".repeat(indent + 2)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::analyze::{Rules, analyze};
    use crate::recording::Header;
    use crate::testing::{Play, run, session};

    fn quickstart() -> Vec<(&'static str, Vec<Play>)> {
        vec![
            ("model = build()", vec![run(1200)]),
            (
                "losses.append(model(batch).sum())",
                vec![run(420).peak(900); 12],
            ),
            ("validate(model, loader)", vec![run(0).peak(1400); 3]),
            (
                "cache = warm(model)",
                [vec![run(600), run(120)], vec![run(0); 8]].concat(),
            ),
        ]
    }

    fn reported(cells: &[(&str, Vec<Play>)]) -> (Recording, Analysis) {
        let cells: Vec<(&str, &[Play])> = cells
            .iter()
            .map(|(source, plays)| (*source, plays.as_slice()))
            .collect();
        let (recording, _) = session(&cells);
        let analysis = analyze(&recording, &Rules::default());
        (recording, analysis)
    }

    #[test]
    fn the_report_reads_from_the_worst_to_the_runs() {
        let (recording, analysis) = reported(&quickstart());
        assert_snapshot!(text(&recording, &analysis, 100));
    }

    #[test]
    fn a_narrow_terminal_breaks_lines_between_words() {
        let (recording, analysis) = reported(&quickstart());
        let shown = text(&recording, &analysis, 60);
        assert!(
            shown.lines().all(|line| line.chars().count() <= 60),
            "{shown}"
        );
    }

    #[test]
    fn no_run_says_what_to_do() {
        let recording = Recording::new(Header::default());
        let analysis = analyze(&recording, &Rules::default());
        assert_snapshot!(text(&recording, &analysis, 80));
    }

    #[test]
    fn nothing_found_says_what_was_checked() {
        let (recording, analysis) = reported(&[("validate()", vec![run(0); 3])]);
        assert_snapshot!(text(&recording, &analysis, 80));
    }

    #[track_caller]
    fn check_line(cells: &[(&str, Vec<Play>)], expected: &str) {
        let (recording, analysis) = reported(cells);
        let last = recording.runs().last().expect("a run").idx;
        assert_eq!(line(&recording, &analysis, last), expected);
    }

    #[test]
    fn the_line_says_what_was_kept_and_where_the_device_stands() {
        check_line(
            &[("x = f()", vec![run(420).seconds(2)])],
            "+420 MiB kept · 1.5 GiB of 16 GiB · peak at least 420 MiB · 14.5 GiB free · 2.0 s",
        );
        check_line(
            &[("x = f()", vec![run(420), run(-420)])],
            "gave back 420 MiB · 1.09 GiB of 16 GiB · peak at least 420 MiB · 14.9 GiB free · 1.0 s",
        );
        check_line(
            &[("x = f()", vec![run(0).status(Status::Interrupted)])],
            "kept nothing · 1.09 GiB of 16 GiB · peak at least 0 B · 14.9 GiB free · 1.0 s · interrupted",
        );
    }

    #[test]
    fn a_second_line_stands_only_where_there_is_something_to_say() {
        check_line(
            &[("losses.append(1)", vec![run(420); 2])],
            "+420 MiB kept · 1.91 GiB of 16 GiB · peak at least 840 MiB · 14.1 GiB free · 1.0 s\n\
             ○ losses.append(1) kept 420 MiB more in each of 2 runs · grew in all 2 runs, 420 MiB each \
             · 14.1 GiB left: out of memory in about 34 runs · 7 more runs tell a leak from a warm-up",
        );
    }

    #[test]
    fn only_what_moved_or_is_new_is_worth_a_line() {
        let mut seen = BTreeSet::new();
        let mut check = |cells: &[(&str, Vec<Play>)], expected: bool| {
            let (recording, analysis) = reported(cells);
            let last = recording.runs().last().expect("a run").idx;
            assert_eq!(
                worth_saying(&recording, &analysis, last, &mut seen),
                expected
            );
        };
        check(&[("x = f()", vec![run(420)])], true);
        check(&[("x = f()", vec![run(10)])], false);
        check(&[("x = f()", vec![run(10); 2])], true);
        check(&[("x = f()", vec![run(10); 3])], false);
        check(&[("x = f()", vec![run(10); 9])], true);
        check(&[("x = f()", vec![run(10); 10])], false);
    }
}
