//! The sessions that are kept, as a table; and the line about one that died.

use super::columns::{cut, or_else};
use super::gpu_processes::age;
use super::text_table::{self, left, right, table};
use super::{to_text, wrapped};
use gpumem_analyzer::{Analysis, Severity};
use gpumem_jobs::history::{LastRun, SessionEnding, StoredSession};
use gpumem_model::recording::Recording;
use gpumem_model::units::Units;
use gpumem_wording::present_verdict;

/// Longer names of notebooks are cut.
const LONGEST_NAME: usize = 28;

/// The worst finding of a session in words, with its sign; `None` if nothing is wrong.
pub fn worst_finding(recording: &Recording, analysis: &Analysis) -> Option<String> {
    let verdicts = analysis.verdicts();
    let worst = verdicts.first()?;
    let finding = worst.first();
    let is_bad = finding.severity > Severity::Info && finding.withdrawn.is_none();
    is_bad.then(|| {
        let worst = present_verdict(recording, worst, Units::Binary);
        format!("{} {}", worst.sign, worst.title.plain())
    })
}

/// One row per session, in the order given; lines are at most `width` columns long.
///
/// ```text
/// session   notebook     ended      runs  how it ended     worst finding
/// 3f9a1c2b  train.ipynb  2 min ago    12  died in In [12]  ▲ losses leaks 300 MiB a run
/// ```
pub fn sessions(sessions: &[StoredSession], width: usize) -> String {
    let mut rows = vec![text_table::row(HEADING)];
    rows.extend(sessions.iter().map(row));
    let gap = 2;
    let columns = [
        left(),
        left().max(LONGEST_NAME).gap(gap),
        left().gap(gap),
        right().gap(gap),
        left().gap(gap),
        left().gap(gap),
    ];
    to_text(&table(&columns, &rows, width))
}

const HEADING: [&str; 6] = [
    "session",
    "notebook",
    "ended",
    "runs",
    "how it ended",
    "worst finding",
];

fn row(session: &StoredSession) -> Vec<String> {
    let ago = session.age.map(|it| match session.ending {
        SessionEnding::Running => "–".to_owned(),
        _ => format!("{} ago", age(it)),
    });
    let notebook = session.notebook.as_deref().map_or("–", base_name);
    let notebook = match &session.host {
        Some(host) => format!("{notebook} on {host}"),
        None => notebook.to_owned(),
    };
    let notes = session.baseline.iter().map(|it| format!("baseline {it}"));
    let notes = notes.chain(session.damage.clone());
    let words: Vec<String> = session.worst.clone().into_iter().chain(notes).collect();
    vec![
        session.id.clone(),
        notebook,
        or_else(ago, "–"),
        session.n_runs.to_string(),
        how_it_ended(session),
        if words.is_empty() {
            "–".to_owned()
        } else {
            words.join(" · ")
        },
    ]
}

fn how_it_ended(session: &StoredSession) -> String {
    let last = session.last.as_ref();
    match session.ending {
        SessionEnding::Running => "running".to_owned(),
        SessionEnding::InOrder => "shut down".to_owned(),
        SessionEnding::OutOfMemory => format!("out of memory{}", cell(last)),
        SessionEnding::KilledBySystem => format!("killed by the system{}", cell(last)),
        SessionEnding::Lost if last.is_some_and(|last| last.is_open) => {
            format!("died{}", cell(last))
        }
        SessionEnding::Lost => "died between cells".to_owned(),
    }
}

/// ` in In [12], 23.4 of 24 GiB of cuda:0`
fn place(last: Option<&LastRun>) -> String {
    let fullness = last.map(fullness).unwrap_or_default();
    format!("{}{fullness}", cell(last))
}

/// ` in In [12]`
fn cell(last: Option<&LastRun>) -> String {
    let Some(last) = last else {
        return String::new();
    };
    match last.execution_count {
        Some(n) => format!(" in In [{n}]"),
        None => format!(" in {}", cut(&last.label, LONGEST_NAME)),
    }
}

/// `, 23.4 of 24 GiB of cuda:0`
fn fullness(last: &LastRun) -> String {
    last.fullest.as_ref().map_or_else(String::new, |fullest| {
        let (used, capacity) = (fullest.used.to_string(), fullest.capacity.to_string());
        // One unit is enough.
        let used = match (used.split_once(' '), capacity.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => number.to_owned(),
            _ => used,
        };
        format!(", {used} of {capacity} of {}", fullest.device)
    })
}

/// What a session lacks whose process died in a run; `None` of any other.
/// [`Recording::missing`](Recording::missing) then says so.
pub fn cut_off(session: &StoredSession) -> Option<String> {
    let is_over = session.ending != SessionEnding::Running;
    let last = session
        .last
        .as_ref()
        .filter(|last| last.is_open && is_over)?;
    let cell = match last.execution_count {
        Some(n) => format!("In [{n}]"),
        None => format!("`{}`", cut(&last.label, LONGEST_NAME)),
    };
    Some(format!(
        "the kernel died in {cell}: its last readings are missing"
    ))
}

/// What the next kernel says of a session that died; at most `width` columns a line.
pub fn last_session(session: &StoredSession, width: usize) -> String {
    let of = session.notebook.as_deref().map(base_name);
    let of = of.map_or_else(String::new, |name| format!(" of {name}"));
    let ago = session.age.map(|it| format!(" {} ago", age(it)));
    let ago = ago.unwrap_or_default();
    let place = place(session.last.as_ref());
    let how = match session.ending {
        SessionEnding::OutOfMemory => format!("ran out of memory{ago}{place}"),
        SessionEnding::KilledBySystem => {
            format!("was killed{ago}{place}: the system had run out of memory")
        }
        _ => format!("died{ago}{place}"),
    };
    let line = format!("the last session{of} {how}; `%gpumem_report --session last`");
    to_text(&[wrapped(&line, width)])
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::testing::{run, session};
    use gpumem_model::units::{Bytes, Nanos};

    fn stored(ending: SessionEnding, last: LastRun) -> StoredSession {
        StoredSession {
            id: "3f9a1c2b".to_owned(),
            notebook: Some("work/train.ipynb".to_owned()),
            host: None,
            age: Some(Nanos::millis(130_000)),
            ending,
            last: Some(last),
            n_runs: 12,
            worst: None,
            baseline: None,
            size: Bytes::ZERO,
            damage: None,
        }
    }

    fn last(is_open: bool) -> LastRun {
        LastRun {
            execution_count: Some(12),
            is_open,
            ..LastRun::default()
        }
    }

    #[track_caller]
    fn check(ending: SessionEnding, is_open: bool, expected: &str) {
        let table = sessions(&[stored(ending, last(is_open))], 100);
        let row = table.lines().nth(1).expect("a row");
        assert_eq!(
            row,
            format!("3f9a1c2b  train.ipynb  2 min ago    12  {expected}")
        );
    }

    #[test]
    fn each_session_says_how_it_ended() {
        check(SessionEnding::InOrder, false, "shut down     –");
        check(
            SessionEnding::OutOfMemory,
            false,
            "out of memory in In [12]  –",
        );
        check(
            SessionEnding::KilledBySystem,
            true,
            "killed by the system in In [12]  –",
        );
        check(SessionEnding::Lost, true, "died in In [12]  –");
        check(SessionEnding::Lost, false, "died between cells  –");
    }

    #[test]
    fn the_worst_finding_of_a_healthy_session_is_none() {
        let (healthy, analysis) = session(&[("f()", &vec![run(0); 12])]);
        assert_eq!(worst_finding(&healthy, &analysis), None);
    }

    #[test]
    fn memory_that_ran_out_is_said_first() {
        let session = stored(SessionEnding::OutOfMemory, last(false));
        let line = last_session(&session, 200);
        assert!(
            line.contains("ran out of memory 2 min ago in In [12]"),
            "{line}"
        );
    }
}
