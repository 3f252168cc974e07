//! The child processes of a session: what grows in them, and a row for each.

use super::cause::CauseLine;
use super::columns::{cut, or_else};
use super::text_table::{self, left, right, table};
use super::{to_text, wrapped};
use gpumem_analyzer::{GrowthVerdict, Severity};
use gpumem_jobs::processes::{ChildEnding, ChildProcesses, Per, ProcessFinding, ProcessRow};
use gpumem_model::recording::Recording;
use gpumem_model::units::{ByteDelta, Bytes, Nanos, count};

/// More children than these are only counted.
const N_ROWS: usize = 20;
/// More names than these are only counted.
const N_NAMES: usize = 8;
/// Fewer copies than these are not worth a line.
const MUCH: Bytes = Bytes::mib(64);
const NAME_COLUMNS: usize = 22;
/// Which column of the table is that of the GPU.
const DEVICE: usize = 5;
/// What is said if nothing is found.
pub const NONE_FOUND: &str = "No child process grows or ended badly.";

/// What is found in the children: a line for each cause, and one for each kind of bad ending.
pub fn process_findings(parent: &Recording, processes: &ChildProcesses) -> Vec<String> {
    let causes = process_causes(parent, processes);
    let mut lines: Vec<String> = causes
        .iter()
        .take(processes.findings.len() + N_NAMES)
        .map(CauseLine::signed)
        .collect();
    let n_more: usize = causes[lines.len()..].iter().map(|it| it.rows.len()).sum();
    lines.extend((n_more > 0).then(|| format!("◆ … and {n_more} more ended badly")));
    lines
}

/// The same, all of them, with the rows in which each cause is seen: what grows, then who ended badly.
pub fn process_causes(parent: &Recording, processes: &ChildProcesses) -> Vec<CauseLine> {
    let rows = &processes.rows;
    let grown = processes.findings.iter().map(|finding| CauseLine {
        severity: match finding.state {
            GrowthVerdict::Leak => Severity::Critical,
            _ => Severity::Warning,
        },
        words: growth_words(finding, rows),
        rows: finding.rows.clone(),
    });
    let died = deaths(rows).into_iter().map(|died| CauseLine {
        severity: Severity::Warning,
        words: death_words(parent, rows, &died),
        rows: died,
    });
    grown.chain(died).collect()
}

/// Children of one kind that ended alike in the same run, the first one first: one cause.
fn deaths(rows: &[ProcessRow]) -> Vec<Vec<usize>> {
    let mut deaths: Vec<Vec<usize>> = Vec::new();
    let cause = |idx: usize| (rows[idx].kind(), rows[idx].ending, rows[idx].ended_in);
    for idx in (0..rows.len()).filter(|idx| rows[*idx].ending.is_bad()) {
        match deaths.iter_mut().find(|it| cause(it[0]) == cause(idx)) {
            Some(died) => died.push(idx),
            None => deaths.push(vec![idx]),
        }
    }
    for died in &mut deaths {
        died.sort_by_key(|idx| rows[*idx].until);
    }
    deaths
}

/// `DataLoader worker 3 (pid 4123) was killed by SIGKILL 3.2 s into In [4]; it held 64 MiB`
fn death_words(parent: &Recording, rows: &[ProcessRow], died: &[usize]) -> String {
    let first = &rows[died[0]];
    if died.len() == 1 {
        let words = ended_words(parent, first, "was", "");
        let held = first.latest.map(|it| format!("; it held {it}"));
        let held = held.unwrap_or_default();
        return format!("{} (pid {}) {words}{held}", first.name, first.pid);
    }
    let n_of_kind = rows.iter().filter(|row| row.kind() == first.kind()).count();
    let kind = plural(first.kind());
    let numbers = numbers(died.iter().map(|idx| &rows[*idx]));
    let words = ended_words(parent, first, "were", ", the first");
    let held = died.iter().filter_map(|idx| rows[*idx].latest).max();
    let held = held.map_or_else(String::new, |it| format!("; they held up to {it} each"));
    format!(
        "{} of {n_of_kind} {kind} ({numbers}) {words}{held}",
        died.len()
    )
}

/// The table of the children; empty if there are none.
pub fn processes(processes: &ChildProcesses, width: usize) -> String {
    if processes.is_empty() {
        return String::new();
    }
    let rows = &processes.rows;
    let title = match rows.len() {
        1 => "Processes · 1 child".to_owned(),
        n => format!("Processes · {n} children"),
    };
    let title = title + &running(rows);
    let head = [
        "process", "pid", "memory", "grew", "highest", "GPU", "ended",
    ];
    let mut cells = vec![text_table::row(head)];
    cells.extend(rows.iter().take(N_ROWS).map(row_cells));
    let mut columns = vec![
        left().min(NAME_COLUMNS).max(NAME_COLUMNS),
        right().min(7),
        right().min(9),
        right().min(10),
        right().min(9),
        right().min(9),
        left().gap(2),
    ];
    // Most children use none.
    if rows.iter().all(|row| row.device_peak.is_none()) {
        columns.remove(DEVICE);
        for row in &mut cells {
            row.remove(DEVICE);
        }
    }
    let mut lines = vec![cut(&title, width)];
    lines.extend(table(&columns, &cells, width));
    let n_more = rows.len().saturating_sub(N_ROWS);
    lines.extend((n_more > 0).then(|| format!("… and {n_more} more")));
    lines.extend(copied_line(rows).map(|line| wrapped(&line, width)));
    to_text(&lines)
}

/// What children copied of their parent's memory, if that is much: many take it for a leak.
pub fn copied_line(rows: &[ProcessRow]) -> Option<String> {
    let copied = rows.iter().filter_map(|row| Some(row.copied?.get()));
    let copied = Bytes::new(copied.fold(0, u64::saturating_add));
    (copied >= MUCH).then(|| {
        format!(
            "{copied} of this are copies of the parent's memory, not a leak: Python writes to each object that \
             a child looks at. Arrays and tensors in place of lists and dicts avoid the copies."
        )
    })
}

/// The children alone: what is found, and the table. Lines are at most `width` columns long.
pub fn process_report(parent: &Recording, found: &ChildProcesses, width: usize) -> String {
    if found.is_empty() {
        return "The session has no child process, or none that was recorded.".to_owned();
    }
    let mut lines = finding_lines(parent, found, width);
    if lines.is_empty() {
        lines.push(format!("○ {NONE_FOUND}"));
    }
    lines.push(String::new());
    lines.push(processes(found, width));
    to_text(&lines)
}

/// The findings, each wrapped.
pub(super) fn finding_lines(
    parent: &Recording,
    found: &ChildProcesses,
    width: usize,
) -> Vec<String> {
    let lines = process_findings(parent, found);
    lines.iter().map(|line| wrapped(line, width)).collect()
}

/// `4 child processes, 1 running`
pub fn title(rows: &[ProcessRow]) -> String {
    let n = match rows.len() {
        0 => return "no child process".to_owned(),
        1 => "1 child process".to_owned(),
        n => format!("{n} child processes"),
    };
    n + &running(rows)
}

/// `, 1 running`; empty if none is.
fn running(rows: &[ProcessRow]) -> String {
    let running = rows.iter().filter(|row| row.ending == ChildEnding::Running);
    match running.count() {
        0 => String::new(),
        n => format!(", {n} running"),
    }
}

/// `DataLoader worker 3 (pid 4123) keeps 12 MiB a step: +240 MiB in 20 steps`
fn growth_words(finding: &ProcessFinding, rows: &[ProcessRow]) -> String {
    let grown: Vec<&ProcessRow> = finding.rows.iter().map(|idx| &rows[*idx]).collect();
    let first = grown[0];
    let Some(growth) = &first.growth else {
        return String::new();
    };
    let (per_step, step) = rate(growth.per, growth.bytes_per_step);
    let total = growth.growth.total.magnitude();
    let verb = match (finding.state, finding.n_named) {
        (GrowthVerdict::Leak, 1) => "keeps",
        (GrowthVerdict::Leak, _) => "keep",
        _ => "may keep",
    };
    if finding.n_named == 1 {
        let name = &first.name;
        let over = over(growth.per, growth.n_steps);
        return format!(
            "{name} (pid {}) {verb} {per_step} {step}: {total} more after {over}",
            first.pid
        );
    }
    let of_kind = format!(
        "{} of {} {}",
        finding.n_named,
        finding.n_of_kind,
        plural(&finding.kind)
    );
    let totals = grown.iter().filter_map(|row| row.growth.as_ref());
    let all: Bytes = totals.map(|it| it.growth.total.magnitude()).sum();
    format!(
        "{of_kind} {verb} up to {per_step} {step} each ({}): {all} more together",
        numbers(grown.iter().copied())
    )
}

/// `0, 1, 3 and 20 more`: what tells children of one kind apart.
fn numbers<'a>(rows: impl Iterator<Item = &'a ProcessRow>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let number = row.name[row.kind().len()..].trim_start_matches(['-', ' ', '_']);
        if !names.contains(&number) {
            names.push(number);
        }
    }
    let n_more = names.len().saturating_sub(N_NAMES);
    names.truncate(N_NAMES);
    names.sort_by_key(|name| (name.len(), *name));
    let named = names.join(", ");
    match n_more {
        0 => named,
        n => format!("{named} and {n} more"),
    }
}

fn plural(kind: &str) -> String {
    if kind.is_empty() {
        "processes".to_owned()
    } else if kind.ends_with("rocess") {
        format!("{kind}es")
    } else {
        format!("{kind}s")
    }
}

/// What is kept, and in what: without steps in a second.
pub fn rate(per: Per, bytes: ByteDelta) -> (Bytes, &'static str) {
    match per {
        Per::Step => (bytes.magnitude(), "a step"),
        Per::Run => (bytes.magnitude(), "a run"),
        Per::Span(span) => {
            let per_second = bytes.as_f64() / span.as_f64().max(1.0) * 1e9;
            (ByteDelta::from_f64(per_second).magnitude(), "a second")
        }
    }
}

fn over(per: Per, n_steps: usize) -> String {
    match per {
        Per::Step => count(n_steps, "step"),
        Per::Run => count(n_steps, "run"),
        Per::Span(span) => Nanos::new(span.get() * n_steps as u64).to_string(),
    }
}

fn row_cells(row: &ProcessRow) -> Vec<String> {
    vec![
        row.name.clone(),
        row.pid.to_string(),
        or_else(row.latest, "?"),
        or_else(row.grew(), "?"),
        or_else(row.peak, "?"),
        or_else(row.device_used, "?"),
        short_ending(row.ending),
    ]
}

/// For the table.
pub fn short_ending(ending: ChildEnding) -> String {
    match ending {
        ChildEnding::Running => "running".to_owned(),
        ChildEnding::InOrder => "in order".to_owned(),
        ChildEnding::Lost => "not known".to_owned(),
        ChildEnding::Failed(code) => format!("exit code {code}"),
        ChildEnding::KilledBySystem => "out of memory".to_owned(),
        ChildEnding::Killed(signal) => signal_name(signal),
    }
}

/// `was killed by SIGKILL 3.2 s into In [4]`; of several, `verb` is `were` and `first` says of which one
/// the time is.
fn ended_words(parent: &Recording, row: &ProcessRow, verb: &str, first: &str) -> String {
    let words = match row.ending {
        ChildEnding::Failed(code) => format!("failed with exit code {code}"),
        ChildEnding::KilledBySystem => format!("{verb} killed by the system: out of memory"),
        ending => format!("{verb} killed by {}", short_ending(ending)),
    };
    let run = row.ended_in.map(|run| parent.run(run));
    let number = run.and_then(|run| Some((run.execution_count?, run.started)));
    match number {
        Some((number, began)) => {
            format!(
                "{words}{first} {} into In [{number}]",
                row.until.since(began)
            )
        }
        None => words,
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
