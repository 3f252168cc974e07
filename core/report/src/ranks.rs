//! The ranks of a job: what is found by comparing them, and a row for each.

use std::collections::BTreeSet;

use super::cause::CauseLine;
use super::columns::or_else;
use super::text_table::{self, left, right, table};
use super::{to_text, wrapped};
use gpumem_analyzer::{GrowthVerdict, Severity};
use gpumem_jobs::ranks::{Rank, RankCause, RankEnding, RankFinding, RankRow, Ranks};
use gpumem_model::printable::printable;
use gpumem_model::units::{Bytes, Nanos, count};

/// More ranks than these are only counted.
const N_ROWS: usize = 32;
/// More numbers than these are only counted.
const N_NAMED: usize = 8;
/// A smaller correction of a clock is not worth a word.
const MUCH: Nanos = Nanos::millis(10);
const NODE_COLUMNS: usize = 12;
/// Of a worker.
const NAME_COLUMNS: usize = 20;

/// What is found in the ranks of a job: one sentence for each cause, with its sign.
pub fn rank_findings(found: &Ranks) -> Vec<String> {
    let causes = rank_causes(found);
    causes.iter().map(CauseLine::signed).collect()
}

/// The same, with the rows in which each cause is seen.
pub fn rank_causes(found: &Ranks) -> Vec<CauseLine> {
    let findings = found.findings.iter();
    let causes = findings.map(|finding| CauseLine {
        severity: severity(&finding.cause),
        words: finding_words(found, finding),
        rows: finding.rows.clone(),
    });
    causes.collect()
}

const fn severity(cause: &RankCause) -> Severity {
    match cause {
        RankCause::Ended { .. }
        | RankCause::Growth {
            state: GrowthVerdict::Leak,
        } => Severity::Critical,
        RankCause::Growth { .. } => Severity::Warning,
        RankCause::Differs { .. } => Severity::Info,
    }
}

/// The report on the ranks of a job: what is found, what opens the report of the rank to look at, and the
/// ranks, those to look at first. Lines are at most `width` columns long.
pub fn ranks(job: &[Rank], found: &Ranks, width: usize) -> String {
    let mut lines = vec![wrapped(&title(job, found), width), String::new()];
    let findings = rank_findings(found);
    if findings.is_empty() {
        lines.push(format!("○ {}", none_found(found)));
    }
    lines.extend(findings.iter().map(|line| wrapped(line, width)));
    if let Some(first) = found.findings.first() {
        let row = &found.rows[first.rows[0]];
        if let Some(command) = opening(job, row) {
            lines.push(String::new());
            lines.push(format!(
                "The report of {} {}, with holders and fixes: {command}",
                found.noun(),
                row.called()
            ));
        }
    }
    lines.push(String::new());
    lines.extend(rank_table(found, width));
    let notes = notes(job, found);
    lines.extend((!notes.is_empty()).then(String::new));
    lines.extend(notes.iter().map(|line| wrapped(line, width)));
    to_text(&lines)
}

/// What is said if nothing is found.
pub fn none_found(found: &Ranks) -> String {
    format!(
        "No {} ran out of memory, grows, or differs from the others.",
        found.noun()
    )
}

/// The command that shows the report of a rank; `None` if it lies in no file.
pub fn opening(job: &[Rank], row: &RankRow) -> Option<String> {
    let id = &job[row.rank].id;
    let command = || format!("jupyter gpumem report {}", quoted(&printable(id)));
    (!id.is_empty()).then(command)
}

/// As a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/\\._-+:@%,".contains(c);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// `4 ranks on 2 machines · job 4711`
pub fn title(job: &[Rank], found: &Ranks) -> String {
    let nodes: BTreeSet<&str> = found.rows.iter().map(|row| &*row.node).collect();
    let mut title = count(n_all(found), found.noun());
    if nodes.len() > 1 {
        title = format!("{title} on {}", count(nodes.len(), "machine"));
    }
    let jobs = job.iter().find_map(|rank| rank.fact("slurm_job"));
    match jobs {
        Some(job) => format!("{title} · job {job}"),
        None => title,
    }
}

fn finding_words(found: &Ranks, finding: &RankFinding) -> String {
    match &finding.cause {
        RankCause::Ended {
            step,
            wanted,
            later,
        } => ended_words(found, finding, (*step, *wanted), later),
        RankCause::Growth { state } => growth_words(found, finding, *state),
        RankCause::Differs { median, spread } => {
            let row = &found.rows[finding.rows[0]];
            let peak = row.peak.unwrap_or_default();
            let who = who(found, finding);
            let (verb, most) = match finding.rows.len() {
                1 => ("needs", String::new()),
                _ => ("need", "up to ".to_owned()),
            };
            format!(
                "{who} {verb} {most}{peak} at the highest, against {median} (median; half of the ranks lie within \
                 {spread})"
            )
        }
    }
}

/// `rank 2 ran out of memory first, in step 87: 2 GiB were wanted; rank 0 failed 1.2 s after it`
fn ended_words(
    found: &Ranks,
    finding: &RankFinding,
    (step, wanted): (Option<u64>, Option<Bytes>),
    later: &[(usize, Nanos)],
) -> String {
    let row = &found.rows[finding.rows[0]];
    let how = match row.ending {
        RankEnding::OutOfMemory => "ran out of memory",
        RankEnding::KilledBySystem => "was killed by the system (out of memory)",
        RankEnding::Failed => "failed",
        _ => "stopped without a word",
    };
    let first = if later.is_empty() { "" } else { " first" };
    let noun = found.noun();
    let mut words = format!("{noun} {} {how}{first}", row.called());
    if row.name.is_some() {
        words = format!("{words} at {}", row.until);
    }
    if let Some(step) = step {
        let what = if row.steps_are_runs { "run" } else { "step" };
        words = format!("{words}, in {what} {step}");
    }
    if let Some(wanted) = wanted {
        words = format!("{words}: {wanted} were wanted");
    }
    let reported = later
        .iter()
        .find(|(idx, _)| found.rows[*idx].ending.is_reported());
    let reported = reported.map(|(idx, after)| (found.rows[*idx].called(), after));
    match (later, reported) {
        ([], _) => words,
        ([_], Some((next, after))) => format!("{words}; {noun} {next} stopped {after} after it"),
        ([(next, _)], None) => {
            format!("{words}; then {noun} {}", found.rows[*next].called())
        }
        (all, Some((next, after))) => format!(
            "{words}; {} others stopped after it, {noun} {next} after {after}",
            all.len()
        ),
        (all, None) => format!("{words}; then {} others", all.len()),
    }
}

/// `rank 2 keeps 40 MiB a step, held by losses; the others keep nothing`
fn growth_words(found: &Ranks, finding: &RankFinding, state: GrowthVerdict) -> String {
    let rows = finding.rows.iter().map(|idx| &found.rows[*idx]);
    let grown: Vec<_> = rows.filter_map(|row| row.growth.as_ref()).collect();
    let Some(first) = grown.first() else {
        return String::new();
    };
    let fastest = grown
        .iter()
        .map(|it| it.per_step)
        .max()
        .unwrap_or(first.per_step);
    let per = if first.counts_steps { "step" } else { "run" };
    let is_one = grown.len() == 1;
    let verb = match (state, is_one) {
        (GrowthVerdict::Leak, true) => "keeps",
        (GrowthVerdict::Leak, false) => "keep",
        _ => "may keep",
    };
    let (most, each) = if is_one {
        ("", "")
    } else {
        ("up to ", " each")
    };
    let who = who(found, finding);
    let fastest = fastest.magnitude();
    let mut words = match &first.task {
        Some(task) => {
            let keeps = if state == GrowthVerdict::Leak {
                "keeps"
            } else {
                "may keep"
            };
            format!("`{task}` {keeps} {most}{fastest} a task on {who}")
        }
        None => format!("{who} {verb} {most}{fastest} a {per}{each}"),
    };
    if let Some(holder) = &first.holder {
        words = format!("{words}, held by {}", holder_words(holder));
    }
    let n_growing = found.rows.iter().filter(|row| row.growth.is_some()).count();
    let n_others = found.rows.len() - n_growing;
    if n_growing == grown.len() && n_others > 0 {
        let others = if n_others == 1 {
            "the other keeps"
        } else {
            "the others keep"
        };
        words = format!("{words}; {others} nothing");
    }
    words
}

/// What the user set on a worker is called by its name.
fn holder_words(holder: &str) -> String {
    match holder.strip_prefix("get_worker().") {
        Some(name) => format!("worker state `{name}`"),
        None => holder.to_owned(),
    }
}

/// `rank 2`, `all 4 ranks`, `3 of 4 ranks (0, 1, 3)`
fn who(found: &Ranks, finding: &RankFinding) -> String {
    let (n, n_all, noun) = (finding.rows.len(), n_all(found), found.noun());
    if n == 1 {
        return format!("{noun} {}", found.rows[finding.rows[0]].called());
    }
    if n == n_all {
        return format!("all {n} {noun}s");
    }
    let mut seen = finding.rows.clone();
    seen.sort_unstable();
    let names = seen.iter().map(|idx| found.rows[*idx].called());
    format!("{n} of {n_all} {noun}s ({})", listed(names))
}

/// A worker that was started anew is one all the same.
fn n_all(found: &Ranks) -> usize {
    if found.are_workers() {
        found.n_expected
    } else {
        found.rows.len()
    }
}

/// `0, 1, 3 and 20 more`
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let n_all = names.len();
    let named: Vec<String> = names.take(N_NAMED).collect();
    let named = named.join(", ");
    match n_all.saturating_sub(N_NAMED) {
        0 => named,
        n => format!("{named} and {n} more"),
    }
}

/// Those of findings first, then by number.
fn rank_table(found: &Ranks, width: usize) -> Vec<String> {
    let named = found.findings.iter().flat_map(|it| &it.rows).copied();
    let all = 0..found.rows.len();
    let mut seen = BTreeSet::new();
    let rows: Vec<usize> = named.chain(all).filter(|idx| seen.insert(*idx)).collect();
    let what = step_name(found);
    let (many, each) = (format!("{what}s"), format!("a {what}"));
    let head = [
        found.noun(),
        "machine",
        "device",
        "memory",
        "highest",
        "outside",
        &many,
        &each,
        "ended",
    ];
    let mut cells = vec![text_table::row(head)];
    let shown = rows.iter().take(N_ROWS);
    cells.extend(shown.map(|idx| row_cells(&found.rows[*idx])));
    let columns = [
        right().min(4).max(NAME_COLUMNS),
        left().min(NODE_COLUMNS).max(NODE_COLUMNS),
        left().min(7).max(7),
        right().min(9),
        right().min(9),
        right().min(9),
        right().min(6),
        right().min(10),
        left().gap(2),
    ];
    let mut lines = table(&columns, &cells, width);
    let n_more = rows.len().saturating_sub(N_ROWS);
    lines.extend(
        (n_more > 0).then(|| format!("… and {}", count(n_more, &format!("more {}", found.noun())))),
    );
    lines
}

fn row_cells(row: &RankRow) -> Vec<String> {
    let grows = row.growth.as_ref();
    let per_step = grows.filter(|it| it.counts_steps != row.steps_are_runs);
    vec![
        row.called(),
        row.node.clone(),
        or_else(row.device.as_ref(), "?"),
        or_else(row.latest, "?"),
        or_else(row.peak, "?"),
        or_else(row.outside.filter(|it| *it > Bytes::ZERO), ""),
        row.n_steps.to_string(),
        or_else(per_step.map(|it| it.per_step), ""),
        ending_words(row),
    ]
}

/// `out of memory at 31 s`
pub fn ending_words(row: &RankRow) -> String {
    match row.ending {
        RankEnding::Running => "running".to_owned(),
        RankEnding::InOrder => "in order".to_owned(),
        RankEnding::OutOfMemory => format!("out of memory at {}", row.until),
        RankEnding::Failed => format!("failed at {}", row.until),
        RankEnding::KilledBySystem => format!("out of memory, killed at {}", row.until),
        RankEnding::Lost => format!("stopped at {}", row.until),
    }
}

/// What ranks are joined by.
pub fn step_name(found: &Ranks) -> &'static str {
    let has_loops = found.rows.iter().any(|row| !row.steps_are_runs);
    if has_loops { "step" } else { "run" }
}

/// What the recordings of workers lack. Of one that died its end says enough.
fn lacks(job: &[Rank], found: &Ranks) -> Vec<String> {
    let alive = found
        .rows
        .iter()
        .filter(|row| row.name.is_some() && !row.ending.is_bad());
    let said = alive.flat_map(|row| job[row.rank].recording.missing());
    let said: Vec<&str> = said.collect();
    let each: BTreeSet<&str> = said.iter().copied().collect();
    let note = |words: &&str| {
        let n = said.iter().filter(|it| *it == words).count();
        format!("! On {n} of {}: {words}", count(n_all(found), "worker"))
    };
    each.iter().map(note).collect()
}

/// What else is known: skew, clocks, ranks that left nothing.
pub fn notes(job: &[Rank], found: &Ranks) -> Vec<String> {
    let mut notes = Vec::new();
    if !found.missing.is_empty() {
        let numbers = listed(found.missing.iter().map(u32::to_string));
        let (what, verb) = match found.missing.len() {
            1 => ("rank", "has"),
            _ => ("ranks", "have"),
        };
        notes.push(format!(
            "! of {} ranks, {what} {numbers} {verb} no recording here",
            found.n_expected
        ));
    }
    if let Some(skew) = found.skew {
        let what = step_name(found);
        notes.push(format!(
            "The last {} ends a {what} {skew} after the first (median).",
            found.noun()
        ));
    }
    if let Some(correction) = found.correction.filter(|it| *it >= MUCH) {
        let what = step_name(found);
        notes.push(format!(
            "Times are by the ends of {what}s: clocks of machines were put right by up to {correction}."
        ));
    }
    if found.rows.iter().any(|row| row.outside > Some(Bytes::ZERO)) {
        notes.push(
            "Outside: what a process uses beside what its frameworks reserved: context, NCCL, libraries.".to_owned(),
        );
    }
    notes.extend(lacks(job, found));
    notes
}
