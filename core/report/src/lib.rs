//! The report, and the line after a cell, as plain text for a terminal.
//!
//! ```
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_model::recording::RunIdx;
//! use gpumem_report as report;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let analysis = analyze(&recording, &Rules::default());
//! let text = report::text(&recording, &analysis, 80);
//! assert!(text.starts_with("GPU memory · 12 runs of 1 cell"));
//!
//! let news = report::news(&recording, &analysis, RunIdx(11), &mut report::ShownFindings::default());
//! let line = report::line(&recording, &analysis, RunIdx(11), &news, 80);
//! assert!(line.starts_with("+2 MiB kept"));
//! ```
#![forbid(unsafe_code)]

mod cause;
mod cells;
mod children;
pub mod chrome_trace;
pub mod columns;
mod comparison;
mod csv;
mod figures;
mod gpu_processes;
mod holders;
mod idle;
pub mod json;
mod levels;
mod line;
mod lines;
mod markdown;
mod outlived;
pub mod processes;
pub mod ranks;
mod sessions;
mod sources;
pub mod table;
#[cfg(test)]
mod tests;
mod text_table;
mod verdict;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;

pub use cause::CauseLine;
pub use children::{LivingProcess, living_children};
pub use comparison::comparison;
pub use csv::csv;
pub use gpu_processes::gpu_process_table;
pub use holders::holders;
pub use levels::levels;
pub use line::{News, ShownFindings, forecast_line, has_new_finding, line, news};
pub use markdown::{markdown, markdown_code, markdown_text};
pub use outlived::outlived_lines;
pub use processes::{process_causes, process_findings, process_report, processes};
pub use ranks::{rank_causes, rank_findings, ranks};
pub use sessions::{cut_off, last_session, sessions, worst_finding};
pub use sources::sources;

use self::columns::{cut, in_parts, or_else, to_text, wrapped};
use self::text_table::{left, right, table};
use gpumem_analyzer::{Analysis, DeviceSummary, Overlap, Peak, RunRow, cell_label};
use gpumem_jobs::processes::ChildProcesses;
use gpumem_model::recording::{Recording, Status};
use gpumem_model::units::{ByteDelta, count};
pub use gpumem_wording::{counts, gap, limited_by, others, warning};

/// The table of runs shows at most this many lines, the latest.
const N_LINES: usize = 20;

/// Devices beyond these are only counted.
const N_DEVICES: usize = 32;

/// The whole report for a terminal in the page's order: the worst finding with its fix, the others,
/// warnings, what each cell kept, the devices as they are now, runs, and traces.
///
/// Lines are at most `width` columns long, except code to be copied.
pub fn text(recording: &Recording, analysis: &Analysis, width: usize) -> String {
    text_with(recording, analysis, &ChildProcesses::default(), width)
}

/// The same with the session's child processes: what is found in them precedes the verdict on the
/// session's own process.
pub fn text_with(
    recording: &Recording,
    analysis: &Analysis,
    children: &ChildProcesses,
    width: usize,
) -> String {
    let (title, note) = gpumem_wording::title(recording);
    let parts = [Some(title), note, Some(&counts(recording))];
    let title = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let mut lines = vec![wrapped(&title, width), String::new()];
    let found = processes::finding_lines(recording, children, width);
    if !found.is_empty() {
        lines.extend(found);
        lines.extend([String::new(), "In this process:".to_owned()]);
    }
    lines.extend(verdict::lines(recording, analysis, width));
    let warnings = analysis.warnings.iter();
    lines.extend(warnings.map(|it| wrapped(&format!("! {}", warning(recording, it)), width)));
    lines.push(String::new());
    lines.extend(cells::lines(recording, analysis, width));
    lines.push(String::new());
    let devices = analysis.devices.iter().take(N_DEVICES);
    lines.extend(devices.map(|summary| wrapped(&device_line(recording, summary), width)));
    let n_more = analysis.devices.len().saturating_sub(N_DEVICES);
    lines.extend((n_more > 0).then(|| format!("… and {}", count(n_more, "more device"))));
    lines.push(String::new());
    lines.extend(idle::lines(
        recording,
        &analysis.idle,
        has_many(recording),
        width,
    ));
    lines.push(String::new());
    lines.extend(run_lines(recording, analysis, width));
    lines.push(String::new());
    lines.extend(processes(children, width).lines().map(str::to_owned));
    lines.push(String::new());
    lines.extend(lines::traced(recording, width));
    lines.dedup_by(|next, line| next.is_empty() && line.is_empty());
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    to_text(&lines)
}

fn status_word(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok => None,
        Status::Running => Some("still running"),
        Status::Error => Some("failed"),
        Status::Interrupted => Some("interrupted"),
        Status::OutOfMemory => Some("out of memory"),
        Status::Died => Some("the kernel died"),
    }
}

/// `cuda:0 Tesla T4 · 6.9 GiB of 14.7 GiB used · allocated 5.1 GiB + 0.9 GiB cache + … · 7.8 GiB free`
fn device_line(recording: &Recording, summary: &DeviceSummary) -> String {
    let device = recording.device(summary.device);
    let mut parts = vec![
        format!("{} {}", device.label, device.name)
            .trim_end()
            .to_owned(),
    ];
    parts.extend(use_of_limit(summary, " used"));
    parts.extend(composition(summary));
    parts.extend(summary.peak.map(|peak| format!("highest {peak}")));
    parts.extend(summary.free().map(|free| format!("{free} free")));
    if parts.len() == 1 {
        parts.push("no level is known".to_owned());
    }
    parts.join(" · ")
}

/// `6.9 GiB of 14.7 GiB used`, against the smallest limit; and whose that is, if not the device's.
fn use_of_limit(summary: &DeviceSummary, verb: &str) -> Option<String> {
    let Some(limit) = summary.limits.first() else {
        let used = summary.device_used.or(summary.process_used)?;
        return Some(format!("{used} used"));
    };
    let of = match limit.used {
        Some(used) => format!("{used} of {}{verb}", limit.bytes),
        None => format!("{} in all", limit.bytes),
    };
    Some(match limited_by(limit.by) {
        Some(words) => format!("{of} ({words})"),
        None => of,
    })
}

/// What makes up the widest level that is known: the narrowest one and the gaps above it.
fn composition(summary: &DeviceSummary) -> Option<String> {
    let (name, narrowest) = summary.narrowest()?;
    let name = match name {
        "process_used" => "this process",
        // That is said already.
        "device_used" => return None,
        name => name,
    };
    let mut words = format!("{name} {narrowest}");
    for it in summary.gaps() {
        let sign = match it.size.cmp(&ByteDelta::ZERO) {
            Ordering::Equal => continue,
            Ordering::Greater => '+',
            Ordering::Less => '−',
        };
        let (size, filled_by) = (it.size.magnitude(), gap(&it));
        write!(words, " {sign} {size} {filled_by}").expect("a string takes in every text");
    }
    Some(words)
}

/// A table of the runs: those of one cell in a row are one line.
fn run_lines(recording: &Recording, analysis: &Analysis, width: usize) -> Vec<String> {
    // The table speaks of accelerators, and of all that there is where there is none.
    let is_accelerator = |device| recording.device(device).kind.is_accelerator();
    let mut devices = analysis.devices.iter();
    let has_accelerator = devices.any(|it| is_accelerator(it.device));
    let rows: Vec<&RunRow> = analysis
        .rows
        .iter()
        .filter(|row| recording.run(row.run).parent.is_none())
        .filter(|row| !has_accelerator || is_accelerator(row.device))
        .collect();
    let same = |a: &&RunRow, b: &&RunRow| {
        let (of_a, of_b) = (recording.run(a.run), recording.run(b.run));
        let is_alone = |row: &RunRow| row.overlap.is_none();
        (a.device, of_a.revision, of_a.status, is_alone(a))
            == (b.device, of_b.revision, of_b.status, is_alone(b))
    };
    let groups: Vec<&[&RunRow]> = rows.chunk_by(same).collect();
    if groups.is_empty() {
        return Vec::new();
    }
    let n_hidden = groups.len().saturating_sub(N_LINES);
    let mut rows = vec![text_table::row([
        "In", "runs", "kept", "peak", "time", "cell",
    ])];
    let shown = groups[n_hidden..].iter();
    rows.extend(shown.map(|rows| group_row(recording, rows, has_many(recording))));
    let columns = [
        left().min(8),
        right().min(4),
        right().min(10),
        right().min(10),
        right().min(9),
        left().gap(2),
    ];
    let mut lines = table(&columns, &rows, width);
    if n_hidden > 0 {
        lines.insert(1, cut(&format!("… and {n_hidden} earlier"), width));
    }
    lines
}

/// There are several accelerators: each is named.
fn has_many(recording: &Recording) -> bool {
    let devices = recording.devices().iter();
    devices.filter(|it| it.kind.is_accelerator()).count() > 1
}

fn group_row(recording: &Recording, rows: &[&RunRow], is_one_of_many: bool) -> Vec<String> {
    let runs = || rows.iter().map(|row| recording.run(row.run));
    let numbers: BTreeSet<Option<u32>> = runs().map(|run| run.execution_count).collect();
    let span = match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) if first != last => {
            format!("[{}–{}]", or_else(*first, " "), or_else(*last, " "))
        }
        (first, _) => format!("[{}]", or_else(first.copied().flatten(), " ")),
    };
    let kept = rows
        .iter()
        .filter_map(|row| row.kept_alone())
        .reduce(|sum, kept| sum + kept);
    let peaks = rows.iter().filter_map(|row| row.peak);
    let peak = peaks.max_by_key(|peak| (peak.low(), peak.is_exact()));
    let time = runs()
        .filter_map(|run| Some(run.ended?.since(run.started)))
        .reduce(|sum, time| sum + time);
    let run = recording.run(rows[0].run);
    let status = status_word(run.status).map_or_else(String::new, |word| format!(" ({word})"));
    let device = if is_one_of_many {
        format!("{} · ", recording.device(rows[0].device).label)
    } else {
        String::new()
    };
    vec![
        span,
        rows.len().to_string(),
        or_else(kept, "?"),
        match peak {
            None => "?".to_owned(),
            Some(Peak::Exact(peak)) => peak.to_string(),
            Some(Peak::Between { low, .. } | Peak::AtLeast(low)) => format!("≥ {low}"),
        },
        or_else(time, "…"),
        format!(
            "{device}{}{}{status}",
            beside(recording, rows),
            cell_label(recording, run)
        ),
    ]
}

/// `+7 MiB with In [4] · `, where other runs were under way.
fn beside(recording: &Recording, rows: &[&RunRow]) -> String {
    let overlaps: Vec<Overlap> = rows.iter().filter_map(|row| row.overlap).collect();
    let who = match rows {
        _ if overlaps.is_empty() => return String::new(),
        [row] => others(recording, recording.run(row.run)),
        _ => "others".to_owned(),
    };
    let moved: Option<ByteDelta> = overlaps.iter().map(|it| it.moved).sum();
    format!("{} with {who} · ", or_else(moved, "?"))
}
