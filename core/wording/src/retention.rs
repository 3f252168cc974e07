//! What IPython and Python keep of what the user let go of.

use super::{Teller, Words, code, withdrawn};
use gpumem_analyzer::{RetentionDetails, cell_label};
use gpumem_model::holders::RootKind;
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, details: &RetentionDetails) -> Words {
    let (kept, on) = (teller.units.size(details.kept), teller.on_device());
    if let Some(reason) = teller.finding.withdrawn {
        let title = format!("IPython kept {kept} that no name of yours reached{on}");
        return Words::new(title, withdrawn(reason)).detail(detail(teller, details));
    }
    let title = format!("IPython keeps {kept} that no name of yours reaches{on}");
    Words::with_row(title, ": ", what(teller, details))
        .detail(detail(teller, details))
        .advice(advice(details.place))
}

/// `3 displayed results`.
fn what(teller: &Teller<'_>, details: &RetentionDetails) -> String {
    match details.place {
        RootKind::OutputHistory => count(teller.finding.holders.len().max(1), "displayed result"),
        RootKind::Traceback => "the last exception".to_owned(),
        RootKind::Debugger => "what `%debug` looked at".to_owned(),
        RootKind::RunModule => format!("what {} left", code(&details.name)),
        _ => code(&details.name),
    }
}

fn detail(teller: &Teller<'_>, details: &RetentionDetails) -> String {
    let run = teller.recording.run(details.since);
    let when = match run.execution_count {
        Some(n) => format!("since In [{n}]"),
        None => format!("since {}", code(&cell_label(teller.recording, run))),
    };
    let RetentionDetails {
        name, path, what, ..
    } = details;
    if path == name {
        return format!("{when} · {what}");
    }
    format!("{when} · the largest: {what} at {}", code(path))
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
