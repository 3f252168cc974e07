//! What IPython and Python keep of what the user let go of.

use super::{Teller, Words, withdrawn};
use crate::analyze::{RetentionDetails, cell_label};
use crate::holders::RootKind;

pub(super) fn words(teller: &Teller<'_>, details: &RetentionDetails) -> Words {
    Words {
        title: title(teller, details),
        detail: detail(teller, details),
        suggestions: match teller.finding.withdrawn {
            Some(_) => Vec::new(),
            None => vec![advice(details.place).to_owned()],
        },
    }
}

fn title(teller: &Teller<'_>, details: &RetentionDetails) -> String {
    let kept = teller.units.size(details.kept);
    let (who, verb) = match details.place {
        RootKind::OutputHistory if teller.finding.holders.len() > 1 => {
            ("displayed results", "keep")
        }
        RootKind::Traceback => ("the last exception", "keeps"),
        _ => (&*details.name, "keeps"),
    };
    if teller.finding.withdrawn.is_some() {
        let had = if verb == "keep" { "kept" } else { "had kept" };
        return format!("{who} {had} {kept}, but no longer");
    }
    format!("{who} {verb} {kept} that none of your names reaches")
}

fn detail(teller: &Teller<'_>, details: &RetentionDetails) -> String {
    let run = teller.recording.run(details.since);
    let when = match run.execution_count {
        Some(n) => format!("since In [{n}]"),
        None => format!("since {}", cell_label(teller.recording, run)),
    };
    let RetentionDetails {
        name, path, what, ..
    } = details;
    if let Some(reason) = teller.finding.withdrawn {
        return format!("{} · it was there {when}", withdrawn(reason));
    }
    if path == name {
        return format!("{when} · {what}");
    }
    format!("{when} · the largest: {what} at {path}")
}

fn advice(place: RootKind) -> &'static str {
    match place {
        RootKind::OutputHistory => {
            "in an IPython profile `c.InteractiveShell.cache_size = 0` keeps no displayed result \
             from the start"
        }
        RootKind::Debugger => {
            "the debugger keeps the frames where it stopped, even after another error"
        }
        RootKind::RunModule => {
            "`%run -i` runs a script among your own names, where `del` reaches what it made"
        }
        _ => {
            "catch the error where it can happen: then its frames are freed when the `except` block ends; the next uncaught error replaces this one"
        }
    }
}
