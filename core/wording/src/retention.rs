//! What IPython and Python keep of what the user let go of.

use super::{Presentation, Prose, Teller, code, place, prose, withdrawn};
use gpumem_analyzer::{RetentionDetails, cell_label};
use gpumem_model::holders::RootKind;
use gpumem_model::recording::Recording;
use gpumem_model::units::count;

pub(super) fn present(teller: &Teller<'_>, details: &RetentionDetails) -> Presentation {
    let (kept, on) = (teller.units.size(details.kept), teller.on_device());
    if let Some(reason) = teller.finding.withdrawn {
        let title = format!("IPython kept {kept} that no name of yours reached{on}");
        return Presentation::new(title, withdrawn(reason))
            .fact(since(teller, details))
            .fact(largest(details));
    }
    let title = format!("IPython keeps {kept} that no name of yours reaches{on}");
    Presentation::with_row(title, ": ", what(teller, details))
        .fact(since(teller, details))
        .fact(largest(details))
        .advice(advice(details.place))
}

/// `3 displayed results`.
fn what(teller: &Teller<'_>, details: &RetentionDetails) -> Prose {
    match details.place {
        RootKind::OutputHistory => {
            count(teller.finding.holders.len().max(1), "displayed result").into()
        }
        RootKind::Traceback => "the last exception".into(),
        RootKind::Debugger => prose!["what ", code("%debug"), " looked at"],
        RootKind::RunModule => prose!["what ", code(&details.name), " left"],
        _ => code(&details.name).into(),
    }
}

fn since(teller: &Teller<'_>, details: &RetentionDetails) -> Prose {
    let run = teller.recording.run(details.since);
    run.execution_count.map_or_else(
        || prose!["since ", code(&cell_label(teller.recording, run))],
        |n| format!("since In [{n}]").into(),
    )
}

fn largest(details: &RetentionDetails) -> Prose {
    let RetentionDetails {
        name, path, what, ..
    } = details;
    if path == name {
        prose![&**what]
    } else {
        prose!["the largest: ", &**what, " at ", code(path)]
    }
}

/// Whose run left it there: `left there by f() · In [7]`.
pub fn left_by(recording: &Recording, details: &RetentionDetails) -> String {
    let run = recording.run(details.since);
    let number = place(" · ", run.execution_count);
    format!("left there by {}{number}", cell_label(recording, run))
}

fn advice(place: RootKind) -> Prose {
    match place {
        RootKind::OutputHistory => prose![
            "in an IPython profile ",
            code("c.InteractiveShell.cache_size = 0"),
            " keeps no displayed result from the start"
        ],
        RootKind::Debugger => {
            "the debugger keeps the frames where it stopped, even after another error".into()
        }
        RootKind::RunModule => prose![
            code("%run -i"),
            " runs a script among your own names, where ",
            code("del"),
            " reaches what it made"
        ],
        _ => prose![
            "catch the error where it can happen: then its frames are freed when the ",
            code("except"),
            " block ends; the next uncaught error replaces this one"
        ],
    }
}
