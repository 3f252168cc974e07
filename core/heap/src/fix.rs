//! What to change so that a holder lets go: the user's own line, before and after.

mod carried;
mod collected;
mod keepers;
mod loops;
mod reads;
mod replaced;
pub(crate) mod statement;
#[cfg(test)]
mod tests;
mod trims;

use collected::Collected;
use gpumem_model::holders::{Holder, RootKind};
use gpumem_model::source_text::{is_name_letter, keeps_nothing};
use gpumem_model::units::Bytes;
pub use loops::{FillingLoop, filling_loop};
use reads::Reads;
pub use reads::Uses;
use statement::{ByteSpan, Code};
pub use trims::Trim;

/// Longer cells are not parsed.
pub const LONGEST: usize = 1 << 15;

/// Types of which a variable can be deleted without a second thought.
const DATA: [&str; 9] = [
    "list",
    "dict",
    "set",
    "tuple",
    "deque",
    "defaultdict",
    "OrderedDict",
    "Tensor",
    "ndarray",
];

/// A suggested change for one holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The line of the cell that makes it hold; `None` if the cell does not show it.
    pub before: Option<String>,
    /// What to write instead, or what to run once if there is no `before`.
    pub after: String,
    /// Why that helps.
    pub reason: FixReason,
    /// The line is in another cell than the one that grew.
    pub elsewhere: bool,
}

/// Why a fix helps. `wording::fix_reason` has the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixReason {
    /// IPython keeps what a cell displays: a `;` keeps it out from now on.
    NotDisplayed,
    /// The same, for what is already kept.
    OutputsReleased,
    /// The last exception keeps the local variables of its functions.
    TracebackReleased,
    /// Objects that refer to each other wait for the garbage collector.
    CyclesCollected,
    /// IPython keeps the namespace of every script that `%run` ran.
    ScriptsForgotten,
    /// The name keeps the old copy until the new one is ready.
    OldCopyFirst,
    /// The name also keeps an autograd graph.
    NameWithGraph,
    /// Only this name keeps it alive.
    Name,
    /// A cache without a bound keeps every result.
    CacheBounded,
    /// The cache keeps its results.
    CacheCleared,
    /// `itertools.cycle` keeps a copy of each item.
    IteratedAgain,
    /// `pyplot` keeps every figure until it is closed.
    FiguresClosed,
    /// A future that is done keeps its result.
    DoneDropped,
    /// A plain number keeps neither device memory nor a graph.
    Number,
    /// Without its graph a tensor keeps only its own values.
    Detached,
    /// A view keeps the whole array; a copy has only its own values.
    Copied,
    /// An exception keeps the frames of its traceback.
    WithoutTraceback,
    /// In host memory it takes nothing of the device.
    InHostMemory,
    /// An exception in a name keeps the frames of its traceback.
    ExceptionDropped,
    /// A hook's function has it.
    HookRemoved,
    /// A library keeps it, and this is its way to let go: `Finding::known_leak` says why.
    KnownLeak,
    /// It is taken out of what has it.
    PartDropped,
    /// The name that has it is deleted.
    NameDropped,
    /// The garbage collector is off.
    CollectorOn,
    /// A hook packs a result as it is, with its graph.
    DetachedInHook,
    /// The graph of a state leads back through all steps before.
    StateDetached,
}

/// The fix for `holder`, as a change of the cell's source if that shows the cause; `None` if nothing
/// certain can be said.
///
/// `sources` are the text of the cell that grew and then those of others: what a function keeps is
/// written where the function is. `is_accelerator` says whether host memory is another one.
///
/// `.item()` is suggested only if every tensor is a single number that no cell reads as a tensor, and nothing
/// that a cell runs backward through is detached.
pub fn fix(holder: &Holder, sources: &[&str], is_accelerator: bool) -> Option<Fix> {
    match holder.kind {
        RootKind::OutputHistory if sources.iter().any(|it| reads::takes_results(it)) => None,
        RootKind::OutputHistory => Some(of_output(sources.first().map_or("", bounded))),
        RootKind::Traceback | RootKind::Debugger => {
            Some(once(holder.kind.release()?, FixReason::TracebackReleased))
        }
        RootKind::CyclicGarbage => Some(once(holder.kind.release()?, FixReason::CyclesCollected)),
        RootKind::UncollectedGarbage => Some(once(holder.kind.release()?, FixReason::CollectorOn)),
        RootKind::RunModule => Some(once(holder.kind.release()?, FixReason::ScriptsForgotten)),
        RootKind::Variable | RootKind::ModuleGlobal => of_name(holder, sources, is_accelerator),
        RootKind::ThreadFrame if holder.is_local() => of_name(holder, sources, is_accelerator),
        RootKind::HookCycle => of_hook(sources),
        RootKind::ThreadFrame
        | RootKind::System
        | RootKind::GraphCycle
        | RootKind::GradientCycle
        | RootKind::Unnamed => None,
    }
}

/// What is too long to be parsed shows nothing.
fn bounded<'a>(source: &&'a str) -> &'a str {
    if source.len() > LONGEST { "" } else { source }
}

/// The change of the first text that has one: what stands there, and what to write in its place.
fn in_first(
    sources: &[&str],
    reason: FixReason,
    change: impl Fn(&str) -> Option<(String, String)>,
) -> Option<Fix> {
    sources.iter().enumerate().find_map(|(idx, source)| {
        let (before, after) = change(bounded(source))?;
        Some(Fix {
            before: Some(before),
            after,
            reason,
            elsewhere: idx > 0,
        })
    })
}

fn once(command: &str, reason: FixReason) -> Fix {
    Fix {
        before: None,
        after: command.to_owned(),
        reason,
        elsewhere: false,
    }
}

fn of_output(source: &str) -> Fix {
    let code = Code::new(source);
    let last = code.statements().pop();
    match last.filter(|it| is_displayed(&code, *it)) {
        Some(span) => {
            let before = code.of_span(span);
            Fix {
                before: Some(before.to_owned()),
                after: format!("{before};"),
                reason: FixReason::NotDisplayed,
                elsewhere: false,
            }
        }
        None => once("%gpumem release outputs", FixReason::OutputsReleased),
    }
}

/// An expression by itself, in no block, and not silenced.
fn is_displayed(code: &Code<'_>, span: ByteSpan) -> bool {
    let text = code.of_span(span);
    let in_no_block = span.start == 0 || code.text[..span.start].ends_with(['\n', ';']);
    let is_last = !(span.end..code.len()).any(|at| code.code(at) == Some(b';'));
    let starts_well =
        text.starts_with(|c: char| is_name_letter(c) && !c.is_ascii_digit() || "([{".contains(c));
    let is_whole = code
        .outside(span)
        .is_some_and(|plain| !plain.contains(['=', ':', '\\']));
    let word = text.split(|c: char| !is_name_letter(c)).next();
    let statements = [
        "assert", "break", "continue", "del", "from", "global", "import", "nonlocal", "pass",
        "raise", "return",
    ];
    let is_statement = word.is_some_and(|word| statements.contains(&word));
    in_no_block && is_last && starts_well && is_whole && !is_statement
}

/// A line before the one that rebinds `name`, so that its old value is freed first. `None` if no line
/// of the cell rebinds it, if the new value is computed from the old one, or if the cell frees the old
/// one first.
pub fn fix_of_rerun(name: &str, source: &str) -> Option<Fix> {
    let code = Code::new(source);
    let binds = |span: &ByteSpan| {
        let text = code.of_span(*span);
        let value = text.strip_prefix(name).and_then(|rest| {
            let value = rest.trim_start().strip_prefix('=')?;
            (!value.starts_with('=')).then_some(value)
        });
        value.is_some_and(|value| {
            let start = span.end - value.len();
            let of_value = ByteSpan { start, ..*span };
            code.find_word(of_value, name).next().is_none()
        })
    };
    let span = code.statements().into_iter().find(binds)?;
    let before = code.of_span(span);
    let is_released = code.statements().into_iter().any(|it| {
        let text = code.of_span(it);
        it.end <= span.start
            && text.starts_with("del ")
            && code.find_word(it, name).next().is_some()
    });
    if is_released || before.ends_with("None") {
        return None;
    }
    Some(Fix {
        before: Some(before.to_owned()),
        after: format!("{name} = None\n{before}"),
        reason: FixReason::OldCopyFirst,
        elsewhere: false,
    })
}

/// A hook written as `lambda t: t`, detaching what it packs.
fn of_hook(sources: &[&str]) -> Option<Fix> {
    const HOOKS: &str = "saved_tensors_hooks(lambda ";
    sources.iter().enumerate().find_map(|(idx, source)| {
        let at = source.find(HOOKS)?;
        let rest = &source[at + HOOKS.len()..];
        let (tensor, packed) = rest.split_once(": ")?;
        let is_packed_as_it_is = packed.strip_prefix(tensor)?.starts_with([',', ')']);
        is_packed_as_it_is.then(|| Fix {
            before: Some(format!("{HOOKS}{tensor}: {tensor}")),
            after: format!("{HOOKS}{tensor}: {tensor}.detach()"),
            reason: FixReason::DetachedInHook,
            elsewhere: idx > 0,
        })
    })
}

fn of_name(holder: &Holder, sources: &[&str], is_accelerator: bool) -> Option<Fix> {
    if let Some(fix) = keepers::fix(holder, sources) {
        return Some(fix);
    }
    let (collection, below) = collection(holder);
    // Most cells do not have the word, and need not be parsed.
    let word = collection.rsplit('.').next().unwrap_or_default();
    let shown = sources
        .iter()
        .enumerate()
        .filter(|(_, it)| it.contains(word));
    let has_graph = holder.traits.graph > Bytes::ZERO;
    if let Some(fix) = has_graph.then(|| carried::fix(word, sources)).flatten() {
        return Some(fix);
    }
    let mut goes_back = false;
    let mut changed = shown.filter_map(|(idx, source)| {
        let code = Code::new(bounded(source));
        let found = Collected::find(&code, collection, below)?;
        if below.contains(collected::FRAMES) && sources.iter().any(|it| reads::needs_frames(it)) {
            return Some(None);
        }
        let others = found.same_elsewhere();
        let span = if holder.traits.graph > Bytes::ZERO {
            found.with_all(&others)
        } else {
            found.statement()
        };
        let mut reads = Reads::find(word, code.of_span(span), sources);
        for other in others.iter().filter(|_| span != found.statement()) {
            reads.add(&Reads::find(other.word(), code.of_span(span), sources));
        }
        goes_back |= reads.graph;
        let fix = found.changed(holder, below, &reads, idx == 0, &others);
        // What is read again is computed with, on the device.
        let may_move = is_accelerator && !reads.values;
        let fix = fix.filter(|it| may_move || it.reason != FixReason::InHostMemory);
        Some(fix.map(|fix| Fix {
            elsewhere: idx > 0,
            ..fix
        }))
    });
    // Where several cells add to it, a change of one is no cure.
    let first = changed.next().flatten();
    let only = first.filter(|_| changed.next().is_none());
    if goes_back {
        return None;
    }
    only.or_else(|| of_argument(holder, sources))
        .or_else(|| of_any(holder, sources))
}

/// What cells hand to a method of the object, which keeps it: `run.log({"loss": loss})`. If several do, a change of
/// one is no cure.
fn of_argument(holder: &Holder, sources: &[&str]) -> Option<Fix> {
    let (collection, below) = collection(holder);
    let (object, _) = collection.split_once('.')?;
    let word = collection.rsplit('.').next()?;
    let mut fixes = sources.iter().enumerate().filter_map(|(idx, source)| {
        let code = Code::new(bounded(source));
        let found = Collected::find_handed(&code, object, below)?;
        let reads = Reads::find(word, code.of_span(found.statement()), sources);
        let fix = found.changed(holder, below, &reads, true, &[])?;
        Some(Fix {
            elsewhere: idx > 0,
            ..fix
        })
    });
    let only = fixes.next()?;
    let loses_graph = [FixReason::Number, FixReason::Detached].contains(&only.reason);
    (fixes.next().is_none() && loses_graph).then_some(only)
}

/// The statement of a cell that adds to a holder, or else the first that has its name.
pub fn keeping_statement<'a>(holder: &Holder, source: &'a str) -> Option<&'a str> {
    let code = Code::new(bounded(&source));
    let (collection, below) = collection(holder);
    let found = Collected::find(&code, collection, below).map(|it| it.statement());
    let name = holder
        .name
        .split(['.', ' '])
        .next()
        .filter(|name| !name.is_empty())?;
    let statements = code.statements().into_iter();
    let named = statements.filter(|it| code.find_word(*it, name).next().is_some());
    let named: Vec<&str> = named.map(|it| code.of_span(it)).collect();
    let keeps = |it: &&str| !it.starts_with("del ") && !keeps_nothing(it);
    let first = named.iter().copied().find(keeps);
    let found = found.map(|span| code.of_span(span));
    found.or(first).or_else(|| named.first().copied())
}

/// Whether a cell reads what a holder collects, and empties it below: accumulates a loss over some batches, say.
pub fn is_emptied(holder: &Holder, source: &str) -> bool {
    collected_name(holder).is_some_and(|word| reads::is_emptied(word, source))
}

/// Whether a cell empties what a holder collects below a line that adds to it.
pub fn is_let_go(holder: &Holder, source: &str) -> bool {
    collected_name(holder).is_some_and(|word| reads::is_let_go(word, source))
}

/// Whether a cell adds to what a holder collects only if that does not have it yet.
pub fn is_cache(holder: &Holder, source: &str) -> bool {
    collected_name(holder).is_some_and(|word| reads::is_cache(word, source))
}

/// Whether a cell makes a holder anew of what it was and more: `past = torch.cat([past, new])`.
pub fn is_extended(holder: &Holder, source: &str) -> bool {
    let word = collected_name(holder).filter(|word| source.contains(word));
    word.is_some_and(|word| carried::is_extended(word, bounded(&source)))
}

/// Whether a cell binds a variable anew each time without what it was: `out = net(batch)`.
pub fn is_replaced(holder: &Holder, source: &str) -> bool {
    let word = collected_name(holder).filter(|word| *word == holder.name);
    word.is_some_and(|word| source.contains(word) && replaced::is_replaced(word, bounded(&source)))
}

/// How cells keep what a holder collects from growing without end.
pub fn trim(holder: &Holder, sources: &[&str]) -> Option<Trim> {
    trims::trim(collected_name(holder)?, sources)
}

/// How cells use what a holder collects.
pub fn uses(holder: &Holder, sources: &[&str]) -> Uses {
    let Some(word) = collected_name(holder) else {
        return Uses::None;
    };
    // No cell names what an object of a library has inside, such as `jobs.queue`.
    let is_written = |source: &&str| {
        let mut found = source.match_indices(word);
        found.any(|(at, _)| {
            let after = source[at + word.len()..].chars().next();
            source[..at].ends_with('.') && !after.is_some_and(is_name_letter)
        })
    };
    let (path, rest) = collection(holder);
    let is_nested = n_items(rest) > 1;
    let is_attribute = path.contains('.');
    if is_attribute && !sources.iter().any(is_written) {
        return Uses::None;
    }
    let has_graph = holder.traits.graph > Bytes::ZERO;
    if has_graph && Reads::find(word, "", sources).graph {
        return Uses::GoesBack;
    }
    let naming = sources.iter().filter(|it| it.contains(word));
    let naming = naming.map(|it| Code::new(bounded(it)).only_code());
    let uses = naming.map(|it| reads::uses(word, &it, is_nested));
    uses.max().unwrap_or(Uses::None)
}

/// How many items follow each other at the start of a path: two in `['a.weight'][0].grad_fn`.
fn n_items(path: &str) -> usize {
    let code = Code::new(path);
    let item = |at: &usize| code.closing(*at).filter(|_| path[*at..].starts_with('['));
    std::iter::successors(item(&0), |end| item(&(end + 1))).count()
}

/// The last name of what collects: `losses` of `trainer.losses`.
fn collected_name(holder: &Holder) -> Option<&str> {
    let name = collection(holder).0.rsplit('.').next();
    name.filter(|name| !name.is_empty())
}

/// What collects, on the way to the largest object, and the rest of it: `trainer.losses` and `[3].grad_fn`
/// of `trainer.losses[3].grad_fn`, `outs` and `[0]` of `encode().<locals>.outs[0]`, `seen` and `[0]` of
/// `log.<closure>.seen[0]`.
fn collection(holder: &Holder) -> (&str, &str) {
    let written = |path| {
        let local = str::split_once(path, "().<locals>.").map(|(_, path)| path);
        let path = local.filter(|_| holder.is_local()).unwrap_or(path);
        in_closure(path).unwrap_or(path)
    };
    let path = written(&*holder.path);
    let within = holder.traits.grows_in.as_ref().filter(|it| it.is_all);
    // A text that stands for a key may be written in several ways.
    if let Some(within) = within.filter(|it| !it.path.ends_with(']')) {
        let within = written(&within.path);
        return (within, path.strip_prefix(within).unwrap_or_default());
    }
    let ends = ["[", ".grad_fn", "._saved", ".<"].iter();
    let end = ends.filter_map(|end| path.find(end)).min();
    path.split_at(end.unwrap_or(path.len()))
}

/// What follows the name of a function's variable that another function in it keeps: `seen[0]` of
/// `log.<closure>.seen[0]`.
fn in_closure(path: &str) -> Option<&str> {
    const CLOSURE: &str = ".<closure>.";
    let names = path.split('[').next().unwrap_or_default();
    Some(&path[names.rfind(CLOSURE)? + CLOSURE.len()..])
}

/// A variable of data: no model, no trainer, no class.
pub fn is_data(holder: &Holder) -> bool {
    holder.kind == RootKind::Variable && DATA.contains(&&*holder.traits.type_name)
}

/// Of data that is there to be collected, and to be thrown away: not of a model, a trainer or a class.
fn of_any(holder: &Holder, sources: &[&str]) -> Option<Fix> {
    // Deleted, it would be missed by the statement that extends it.
    if sources.iter().any(|it| is_extended(holder, it)) {
        let (collection, _) = collection(holder);
        let mut begins = sources
            .iter()
            .filter_map(|it| carried::begins(collection, bounded(it)));
        // No cell binds a function's variable.
        let is_of_cells = in_closure(&holder.path).is_none();
        return begins
            .next()
            .filter(|_| is_of_cells)
            .map(|it| once(&it, FixReason::Name));
    }
    let traits = &holder.traits;
    // Without its variable a module may fail.
    let is_data = is_data(holder);
    let reason = if traits.graph > Bytes::ZERO {
        FixReason::NameWithGraph
    } else {
        FixReason::Name
    };
    // Results of a worker's tasks have a name that is no expression.
    let is_name = !holder.name.contains(' ') || holder.name.contains('…');
    // What others hold, too, is not freed with this name.
    let is_shared = holder.traits.is_shared;
    // Without its name the cell would fail, or bind it again.
    let has_clear = !["tuple", "Tensor", "ndarray"].contains(&&*traits.type_name);
    let emptied = match &traits.grows_in {
        None => Some(&holder.name).filter(|_| has_clear && is_name),
        // What collects is in it, and is all that may go.
        Some(within) => {
            Some(&within.path).filter(|path| within.is_all && !path.contains(['<', '…']))
        }
    };
    let emptied = emptied.filter(|_| is_data && !is_shared);
    emptied.map(|it| once(&format!("{it}.clear()"), reason))
}
