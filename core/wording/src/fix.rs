//! Why a fix helps, and its limits.

use super::{Prose, SHORT_CODE, code, prose};
use gpumem_heap::{Fix, FixReason, changed_text};
use gpumem_model::source_text::is_name_letter;

/// Why a fix helps, in one sentence, and where its line is if that is not in the cell that grew.
pub fn fix_reason(fix: &Fix) -> Prose {
    let reason = reason(fix.reason);
    if fix.elsewhere {
        prose!["in another cell: ", reason]
    } else {
        reason
    }
}

/// A fix in as few words as tell it from another; empty if only its line does.
pub(super) fn short_fix(fix: &Fix) -> Prose {
    let Some(before) = &fix.before else {
        return code(&fix.after).into();
    };
    let changed = changed_text(before, &fix.after);
    match fix.reason {
        FixReason::OldCopyFirst => prose![code(changed), " first"],
        FixReason::NotDisplayed => prose![code(";"), " at the end of the line"],
        FixReason::CacheBounded => code(fix.after.lines().last().unwrap_or_default()).into(),
        // The same call in several statements.
        FixReason::Number | FixReason::Detached if changed.contains([';', '\n']) => {
            let end = changed.find(')').map_or(0, |at| at + 1);
            code(&changed[..end]).into()
        }
        _ if changed.is_empty() || changed.chars().count() > SHORT_CODE => Prose::default(),
        _ => code(changed).into(),
    }
}

/// A fix for the line after a cell: `….sum().detach()`, with the call that it follows.
pub(super) fn fix_after_cell(fix: &Fix) -> String {
    let short = short_fix(fix).plain();
    let place = if fix.elsewhere {
        " in another cell"
    } else {
        ""
    };
    // What the owner may want is not emptied at a glance: the report says what that frees.
    let empties = matches!(fix.reason, FixReason::Name | FixReason::NameWithGraph);
    match (&fix.before, short.as_str()) {
        (_, "") => String::new(),
        (None, _) if empties => String::new(),
        (Some(before), added) if added.starts_with('.') => {
            let at = fix.after.find(added).unwrap_or_default();
            format!(
                "…{}{added}{place}",
                last_call(&fix.after[..at.min(before.len())])
            )
        }
        _ => format!("{short}{place}"),
    }
}

/// `.sum()` at the end of a line.
fn last_call(code: &str) -> &str {
    let Some(callee) = code.strip_suffix("()") else {
        return "";
    };
    let name = callee.rfind(|letter| !is_name_letter(letter));
    match name {
        Some(dot) if code[dot..].starts_with('.') => &code[dot..],
        _ => "",
    }
}

fn reason(reason: FixReason) -> Prose {
    match reason {
        FixReason::NotDisplayed => prose![
            "IPython keeps what a cell displays for the whole session; ",
            code("%gpumem release outputs"),
            " frees what is already kept"
        ],
        FixReason::OutputsReleased => prose![
            "IPython keeps what a cell displays for the whole session; a ",
            code(";"),
            " at the end of the last line avoids it"
        ],
        FixReason::TracebackReleased => {
            "the last exception keeps every local variable of the functions it passed through"
                .into()
        }
        FixReason::CyclesCollected => prose![
            "the objects refer to each other and wait for a collection; with a ",
            code("weakref"),
            " in one direction they are freed at once"
        ],
        FixReason::ScriptsForgotten => prose![
            "IPython keeps the namespace of every script that ",
            code("%run"),
            " ran"
        ],
        FixReason::OldCopyFirst => prose![
            "the name keeps the old copy until the new one is ready; with ",
            code("None"),
            " it goes first, even in a first run, when ",
            code("del"),
            " would fail"
        ],
        FixReason::NameWithGraph => prose![
            "the graph for the backward pass is kept with it: ",
            code(".detach()"),
            " what is kept, or compute it under ",
            code("no_grad()"),
            " if no backward pass follows"
        ],
        FixReason::Name => "frees what it keeps now; the cell will keep it again".into(),
        FixReason::CacheBounded => {
            "the cache keeps its results, and their arguments; choose how many you need"
                .into()
        }
        FixReason::CacheCleared => prose![
            "the cache keeps its results, and their arguments; ",
            code("functools.lru_cache(maxsize=…)"),
            " bounds how many"
        ],
        FixReason::IteratedAgain => prose![
            code("cycle"),
            " keeps every item that it has given; this asks for them again instead"
        ],
        FixReason::FiguresClosed => prose![
            code("pyplot"),
            " keeps every figure until it is closed: use the same one again"
        ],
        FixReason::DoneDropped => "a future that is done keeps its result".into(),
        FixReason::Number => {
            "a plain number keeps neither device memory nor a graph; reading it waits for the device"
                .into()
        }
        FixReason::Detached => {
            "each keeps the graph that it came from; detached, only its own values stay, and those still add up"
                .into()
        }
        FixReason::Copied => "a view keeps the whole array; a copy has only its own values".into(),
        FixReason::WithoutTraceback => {
            "an exception keeps the local variables of every function it passed through; its text and type stay"
                .into()
        }
        FixReason::InHostMemory => {
            "a copy in host memory takes nothing of the device; it still adds up there".into()
        }
        FixReason::ExceptionDropped => {
            "an exception keeps its traceback, whose frames keep every local variable".into()
        }
        FixReason::HookRemoved => "the function of the hook has it".into(),
        // The entry says why.
        FixReason::KnownLeak => Prose::default(),
        FixReason::PartDropped => "frees it now; what put it there may do so again".into(),
        FixReason::NameDropped => "frees it, if no cell needs this name any more".into(),
        FixReason::DetachedInHook => {
            "packed as it is, a result is saved by the graph that it refers to, and both stay for ever; \
             Python's collector does not see the graph"
                .into()
        }
        FixReason::StateDetached => {
            "its graph leads back through every step before; detached, it begins anew at each".into()
        }
        FixReason::CollectorOn => {
            "with the collector off, objects that refer to each other are never freed".into()
        }
    }
}
