//! What should be dead and lives on.

use super::advice::against_graph_cycle;
use super::{Presentation, Prose, Teller, code, figure, place, prose, withdrawn};
use gpumem_analyzer::known_leaks::known_leak;
use gpumem_analyzer::{OutlivedDetails, Withdrawn};
use gpumem_model::holders::{Outlived, RootKind, WayOut};
use gpumem_model::recording::RunIdx;
use gpumem_model::source_text::deletes;
use gpumem_model::units::{Bytes, Units};

/// Less than this share of what a variable held is part of it.
const NEARLY_ALL: f64 = 0.95;

pub(super) fn present(teller: &Teller<'_>, details: &OutlivedDetails) -> Presentation {
    let keeps = keeps(details, teller.units);
    let gone = gone(details, is_deleted(teller, details.since));
    let size = |bytes: Bytes| teller.units.size(bytes);
    let freed = prose![
        "freed ",
        figure(size(details.had.saturating_sub(details.alive))),
        " of ",
        size(details.had)
    ];
    if teller.finding.withdrawn == Some(Withdrawn::Expected) {
        let title = prose!["expected: ", gone, ", ", keeps, teller.on_device()];
        return Presentation::new(title, withdrawn(Withdrawn::Expected));
    }
    if let Some(reason) = teller.finding.withdrawn {
        let title = prose![
            code(&details.name),
            " lived on: ",
            keeps,
            teller.on_device()
        ];
        return Presentation::new(title, withdrawn(reason)).fact(freed);
    }
    let title = prose![gone, ", but ", keeps, teller.on_device()];
    let is_off = details.way_out == Some(WayOut::Collector);
    let off = is_off.then_some("the garbage collector is off");
    let off = off.map(Prose::from).unwrap_or_default();
    let mut shown = Presentation::new(title.clone(), Prose::joined([&off, &freed], "; "));
    shown.line = vec![title];
    shown.line.extend(is_off.then_some(off));
    if !details.what.is_empty() && !is_off {
        let since = place(", held since ", details.held_since_execution_count);
        shown = shown.fact(prose!["kept: ", &*details.what, since]);
    }
    if !details.is_alone && details.kind.is_named() {
        shown = shown.fact("other names may hold it, too");
    }
    match advice(details) {
        Some(advice) => shown.advice(advice),
        None => shown,
    }
}

/// What is to be said of a variable that was let go of, in two lines.
pub fn outlived(found: &Outlived, is_deleted: bool, units: Units) -> (Prose, Prose) {
    let details = OutlivedDetails {
        name: found.name.clone(),
        is_rebound: found.is_rebound,
        had: found.had,
        alive: found.n_bytes,
        kind: found.kind,
        holder: found.holder.clone(),
        path: found.path.clone(),
        what: found.what.clone(),
        way_out: found.way_out,
        is_alone: found.is_alone,
        held_since: None,
        held_since_execution_count: None,
        given_back: Vec::new(),
        since: RunIdx(0),
        since_execution_count: None,
    };
    let title = prose![gone(&details, is_deleted), ", but ", keeps(&details, units)];
    let known = known_leak(&found.library_objects, &found.path, false);
    let call = known.and_then(|(_, call)| call);
    let way_out = match (call.as_deref().unwrap_or(&found.code), advice(&details)) {
        ("", advice) => advice.unwrap_or_default(),
        (fix, _) => prose!["fix: ", code(fix)],
    };
    (title, way_out)
}

fn gone(details: &OutlivedDetails, is_deleted: bool) -> Prose {
    match (details.is_rebound, is_deleted) {
        (true, _) => prose![code(&details.name), " has a new object"],
        (false, true) => prose![code(&details.name), " is deleted"],
        (false, false) => prose![code(&details.name), " is gone"],
    }
}

/// `accelerator._models[0] keeps its 600 MiB`.
fn keeps(details: &OutlivedDetails, units: Units) -> Prose {
    let who: Prose = match details.kind {
        kind if kind.is_garbage() => "cyclic garbage".into(),
        kind if kind.is_graph_cycle() => "its own autograd graph".into(),
        RootKind::Unnamed => "something that no name of Python's leads to".into(),
        RootKind::OutputHistory | RootKind::Traceback | RootKind::Debugger => {
            code(&details.holder).into()
        }
        RootKind::ThreadFrame => code(&details.holder).into(),
        RootKind::System => prose![code(&details.holder), " (", code(&details.path), ")"],
        _ => code(&details.path).into(),
    };
    let its = if details.is_rebound {
        "the old one's"
    } else {
        "its"
    };
    let size = |bytes: Bytes| units.size(bytes);
    if details.alive.as_f64() >= NEARLY_ALL * details.had.as_f64() {
        prose![who, " keeps ", its, " ", size(details.alive)]
    } else {
        let (alive, had) = (size(details.alive), size(details.had));
        prose![who, " keeps ", alive, " of ", its, " ", had]
    }
}

/// The cell of that run says so.
pub(super) fn is_deleted(teller: &Teller<'_>, run: RunIdx) -> bool {
    let run = teller.recording.run(run);
    deletes(teller.recording.text(run).unwrap_or_default())
}

fn advice(details: &OutlivedDetails) -> Option<Prose> {
    let path = code(&details.path);
    match (details.way_out, details.kind) {
        (Some(WayOut::Exception), _) => Some(prose![
            "if a cell still needs the exception: ",
            code("error.with_traceback(None)"),
            " takes only its frames away; ",
            code("except … as e"),
            " alone lets go of it at the end of the block"
        ]),
        (Some(WayOut::Thread), RootKind::ThreadFrame) => Some(prose![
            code(&details.holder),
            " still runs and has it in a local variable: end the thread or the task, or let it drop the variable"
        ]),
        (Some(WayOut::Thread), _) => Some(prose![
            "a thread put it into the ",
            code("threading.local"),
            " ",
            code(&details.holder),
            " and keeps it as long as it lives: end the thread, or let it delete the attribute"
        ]),
        (Some(WayOut::Collector), _) => Some(prose![
            code("%gpumem release cycles"),
            " frees it once; ",
            code("gc.enable()"),
            " frees the next ones, too"
        ]),
        (None, RootKind::Unnamed) => Some("C++ code or a library may keep it".into()),
        (None, kind) if kind.is_graph_cycle() => Some(against_graph_cycle(kind)),
        (None, kind) if kind.is_ipython() => kind.release().map(|it| code(it).into()),
        (None, _) => Some(prose!["what keeps it is ", path]),
        _ => None,
    }
}
