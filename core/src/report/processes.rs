//! The child processes of a session: what grows in them, and a row for each.

use super::columns::{cut, padded};
use super::wrapped;
use crate::analyze::State;
use crate::printable::{printable, printable_lines};
use crate::processes::{Ending, Per, ProcessFinding, ProcessRow, Processes};
use crate::recording::Recording;
use crate::units::{ByteDelta, Bytes, Nanos};
use crate::wording::count;

/// More children than these are only counted.
const N_ROWS: usize = 20;
/// More names than these are only counted.
const N_NAMES: usize = 8;
/// Fewer copies than these are not worth a line.
const MUCH: Bytes = Bytes::mib(64);
const NAME_COLUMNS: usize = 22;

/// What is found in the children: a line for each cause, and one for each kind of bad ending.
///
/// ```
/// use gpumem_core::processes::Processes;
/// use gpumem_core::recording::Recording;
/// use gpumem_core::report::process_findings;
///
/// assert!(process_findings(&Recording::default(), &Processes::default()).is_empty());
/// ```
pub fn process_findings(parent: &Recording, processes: &Processes) -> Vec<String> {
    let grown = processes.findings.iter();
    let grown = grown.map(|finding| growth_line(finding, &processes.rows));
    let mut lines: Vec<String> = grown.collect();
    let died: Vec<&ProcessRow> = processes
        .rows
        .iter()
        .filter(|row| row.ending.is_bad())
        .collect();
    for row in died.iter().take(N_NAMES) {
        let name = printable(&row.name);
        let so_far = row
            .latest
            .map_or_else(String::new, |it| format!("; it held {it}"));
        let words = ending_words(parent, row);
        lines.push(format!("◆ {name} (pid {}) {words}{so_far}", row.pid));
    }
    let n_more = died.len().saturating_sub(N_NAMES);
    lines.extend((n_more > 0).then(|| format!("◆ … and {n_more} more ended badly")));
    lines
}

/// The table of the children; empty if there are none. Example: [`process_findings`].
pub fn processes(processes: &Processes, width: usize) -> String {
    if processes.is_empty() {
        return String::new();
    }
    let rows = &processes.rows;
    let n_running = rows
        .iter()
        .filter(|row| row.ending == Ending::Running)
        .count();
    let mut title = format!("Processes · {}", of_children(rows.len()));
    if n_running > 0 {
        title = format!("{title}, {n_running} running");
    }
    let head = [
        "process", "pid", "memory", "grew", "highest", "GPU", "ended",
    ];
    // Most children use none.
    let has_device = rows.iter().any(|row| row.device_peak.is_some());
    let mut lines = vec![title, table_line(head.map(str::to_owned), has_device)];
    let shown = rows.iter().take(N_ROWS);
    lines.extend(shown.map(|row| row_line(row, has_device)));
    let n_more = rows.len().saturating_sub(N_ROWS);
    lines.extend((n_more > 0).then(|| format!("… and {n_more} more")));
    let mut lines: Vec<String> = lines.iter().map(|line| cut(line, width)).collect();
    lines.extend(copied_line(rows).map(|line| wrapped(&line, width)));
    printable_lines(&lines.join("\n"))
}

/// What children copied of their parent's memory, if that is much: many take it for a leak.
fn copied_line(rows: &[ProcessRow]) -> Option<String> {
    let copied = rows.iter().filter_map(|row| Some(row.copied?.get()));
    let copied = Bytes::new(copied.fold(0, u64::saturating_add));
    (copied >= MUCH).then(|| {
        format!(
            "{copied} of this are copies of the parent's memory, not a leak: Python writes to each object that \
             a child looks at. Arrays and tensors in place of lists and dicts avoid the copies."
        )
    })
}

/// The findings, each wrapped.
pub(super) fn finding_lines(parent: &Recording, found: &Processes, width: usize) -> Vec<String> {
    let lines = process_findings(parent, found);
    lines.iter().map(|line| wrapped(line, width)).collect()
}

fn of_children(n: usize) -> String {
    match n {
        1 => "1 child".to_owned(),
        n => format!("{n} children"),
    }
}

/// `▲ DataLoader worker 3 (pid 4123) keeps 12 MiB a step: +240 MiB in 20 steps`
fn growth_line(finding: &ProcessFinding, rows: &[ProcessRow]) -> String {
    let grown: Vec<&ProcessRow> = finding.rows.iter().map(|idx| &rows[*idx]).collect();
    let first = grown[0];
    let Some(growth) = &first.growth else {
        return String::new();
    };
    let sign = match finding.state {
        State::Leak => '▲',
        _ => '◆',
    };
    let (per_step, step) = rate(growth.per, growth.bytes_per_step);
    let total = growth.growth.total.magnitude();
    let verb = match (finding.state, finding.n_named) {
        (State::Leak, 1) => "keeps",
        (State::Leak, _) => "keep",
        _ => "may keep",
    };
    if finding.n_named == 1 {
        let name = printable(&first.name);
        let over = over(growth.per, growth.n_steps);
        return format!(
            "{sign} {name} (pid {}) {verb} {per_step} {step}: {total} more after {over}",
            first.pid
        );
    }
    let of_kind = format!(
        "{} of {} {}",
        finding.n_named,
        finding.n_of_kind,
        printable(&plural(&finding.kind))
    );
    let totals = grown.iter().filter_map(|row| row.growth.as_ref());
    let all = totals.fold(Bytes::ZERO, |sum, it| {
        Bytes::new(sum.get().saturating_add(it.growth.total.magnitude().get()))
    });
    let mut names: Vec<&str> = Vec::new();
    for row in &grown {
        let number = row.name[row.kind().len()..].trim_start_matches(['-', ' ', '_']);
        if !names.contains(&number) {
            names.push(number);
        }
    }
    let n_more = names.len().saturating_sub(N_NAMES);
    names.truncate(N_NAMES);
    names.sort_by_key(|name| (name.len(), *name));
    let more = match n_more {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!(
        "{sign} {of_kind} {verb} up to {per_step} {step} each ({}{more}): {all} more together",
        printable(&names.join(", "))
    )
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
fn rate(per: Per, bytes: ByteDelta) -> (Bytes, &'static str) {
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

fn row_line(row: &ProcessRow, has_device: bool) -> String {
    let size = |level: Option<Bytes>| level.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let cells = [
        printable(&row.name),
        row.pid.to_string(),
        size(row.latest),
        row.grew()
            .map_or_else(|| "?".to_owned(), |it| it.to_string()),
        size(row.peak),
        size(row.device_used),
        short_ending(row.ending),
    ];
    table_line(cells, has_device)
}

fn table_line(cells: [String; 7], has_device: bool) -> String {
    let [name, pid, memory, grew, highest, device, ended] = cells;
    let name = padded(&cut(&name, NAME_COLUMNS), NAME_COLUMNS);
    let device = if has_device {
        format!(" {device:>9}")
    } else {
        String::new()
    };
    format!("{name} {pid:>7} {memory:>9} {grew:>10} {highest:>9}{device}  {ended}")
}

/// For the table.
fn short_ending(ending: Ending) -> String {
    match ending {
        Ending::Running => "running".to_owned(),
        Ending::InOrder => "in order".to_owned(),
        Ending::Lost => "not known".to_owned(),
        Ending::Failed(code) => format!("exit code {code}"),
        Ending::KilledBySystem => "out of memory".to_owned(),
        Ending::Killed(signal) => signal_name(signal),
    }
}

/// `was killed by SIGKILL 3.2 s into In [4]`
fn ending_words(parent: &Recording, row: &ProcessRow) -> String {
    let words = match row.ending {
        Ending::Failed(code) => format!("failed with exit code {code}"),
        Ending::KilledBySystem => "was killed by the system: out of memory".to_owned(),
        ending => format!("was killed by {}", short_ending(ending)),
    };
    let run = row.ended_in.map(|run| parent.run(run));
    let number = run.and_then(|run| Some((run.execution_count?, run.started)));
    match number {
        Some((number, began)) => {
            format!("{words} {} into In [{number}]", row.until.since(began))
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
