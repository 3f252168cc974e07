//! What of Python's library and of pyplot keeps objects, and how it does not.

use super::collected::Collected;
use super::statement::{ByteSpan, Code};
use super::{Fix, FixReason, bounded, collection, in_first, once};
use gpumem_model::holders::Holder;

/// What makes futures and tasks.
const MAKES_FUTURES: [&str; 4] = ["submit(", "create_task(", "ensure_future(", "Future("];

/// Of these nobody can say whether they begin anew when they are called again.
const LAZY: [&str; 7] = [
    "iter",
    "map",
    "filter",
    "zip",
    "enumerate",
    "reversed",
    "chain",
];

/// What makes a figure.
const MAKES_FIGURES: [&str; 4] = [
    "plt.subplots(",
    "plt.figure(",
    "pyplot.subplots(",
    "pyplot.figure(",
];

/// What finds the figures that are open.
const READS_FIGURES: [&str; 3] = ["get_fignums(", "get_figlabels(", "fignum_exists("];

/// How many results a cache may keep that gets a bound.
const BOUND: u64 = 8;

/// What a path goes on with behind a function that has a cache.
const CACHE: &str = ".<cache>";

/// The fix for a name that is such an object, or a list of such.
pub(super) fn fix(holder: &Holder, sources: &[&str]) -> Option<Fix> {
    match &*holder.traits.type_name {
        name if name.ends_with("_lru_cache_wrapper") => of_cache(holder, &holder.name, sources),
        "type" if holder.path.contains(CACHE) => {
            let (method, _) = holder.path.split_once(CACHE)?;
            of_cache(holder, method, sources)
        }
        "cycle" => of_cycle(holder, sources),
        _ if holder.name == "matplotlib._pylab_helpers.Gcf.figs" => {
            let reads = |it: &&str| READS_FIGURES.iter().any(|word| it.contains(word));
            (!sources.iter().any(reads)).then(|| of_figures(sources))
        }
        _ if holder.path.ends_with("._result") => of_done(holder, sources),
        _ => None,
    }
}

/// A bound, in the cell that defines the function. None if the cached objects have attributes: a new object
/// may lack what was written to the old one.
fn of_cache(holder: &Holder, function: &str, sources: &[&str]) -> Option<Fix> {
    let result = holder.path.split_once(CACHE).map_or("", |(_, it)| it);
    let attribute = result.split_once("].").map_or("", |(_, it)| it);
    if result.starts_with('[') && attribute.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let name = function.rsplit('.').next().unwrap_or_default();
    let decorated = in_first(sources, FixReason::CacheBounded, |source| {
        let decorator = cache_decorator(source, name)?;
        let bound = if decorator.contains("functools.") {
            "@functools.lru_cache(maxsize=8)"
        } else if decorator.contains("lru_cache") {
            "@lru_cache(maxsize=8)"
        } else {
            "from functools import lru_cache\n@lru_cache(maxsize=8)"
        };
        Some((decorator.to_owned(), bound.to_owned()))
    });
    let clear = || {
        once(
            &format!("{function}.cache_clear()"),
            FixReason::CacheCleared,
        )
    };
    Some(decorated.unwrap_or_else(clear))
}

/// `@cache` or `@lru_cache` above the definition of `function`: without a bound, or with a larger one than [`BOUND`].
fn cache_decorator<'a>(source: &'a str, function: &str) -> Option<&'a str> {
    let word = format!("def {function}(");
    if !source.contains(&word) {
        return None;
    }
    let code = Code::new(source);
    let statements = code.statements().into_iter();
    let statements: Vec<&str> = statements.map(|it| code.of_span(it)).collect();
    let at = statements.iter().position(|it| it.starts_with(&word))?;
    let above = statements[..at].iter().rev().copied();
    let mut decorators = above.take_while(|it| it.starts_with('@'));
    let is_larger = |decorator: &&str| {
        let call: String = decorator.chars().filter(|c| !c.is_whitespace()).collect();
        let call = call.trim_start_matches('@');
        let call = call.strip_prefix("functools.").unwrap_or(call);
        let most = call
            .strip_prefix("lru_cache(")
            .and_then(|it| it.strip_suffix(')'));
        let most = most.map(|it| it.strip_prefix("maxsize=").unwrap_or(it));
        match most {
            Some("" | "None") => true,
            Some(most) => most.parse().is_ok_and(|most: u64| most > BOUND),
            None => ["cache", "lru_cache"].contains(&call),
        }
    };
    decorators.find(is_larger)
}

/// The loader is called again where `cycle` gives copies: `itertools.cycle(loader())`.
fn of_cycle(holder: &Holder, sources: &[&str]) -> Option<Fix> {
    in_first(sources, FixReason::IteratedAgain, |source| {
        let code = Code::new(source);
        let mut statements = code.statements().into_iter();
        let after = |span: &ByteSpan| {
            let value = code.of_span(*span).strip_prefix(&*holder.name)?;
            let value = value.trim_start().strip_prefix('=')?.trim_start();
            let call = value.strip_prefix("itertools.").unwrap_or(value);
            let loader = call.strip_prefix("cycle(")?.strip_suffix(')')?;
            let (called, arguments) = loader.split_once('(')?;
            // A name may be an iterator: used up, it would never give an item again.
            let numbers = arguments.strip_suffix(')')?;
            let is_plain = numbers
                .chars()
                .all(|c| c.is_ascii_digit() || ", ".contains(c));
            let last = called.rsplit('.').next().unwrap_or_default();
            let forever = if value.starts_with("itertools.") {
                "itertools.count()"
            } else {
                "iter(int, 1)"
            };
            (is_plain && !LAZY.contains(&last)).then(|| {
                format!(
                    "{} = (item for _ in {forever} for item in {loader})",
                    holder.name
                )
            })
        };
        let (span, after) = statements.find_map(|span| Some((span, after(&span)?)))?;
        Some((code.of_span(span).to_owned(), after))
    })
}

/// `pyplot` keeps every figure until it is closed. The same figure is used again: what closes the earlier
/// ones leaves cycles for the garbage collector.
fn of_figures(sources: &[&str]) -> Fix {
    let found = in_first(sources, FixReason::FiguresClosed, |source| {
        let code = Code::new(source);
        let statements = code.statements().into_iter();
        let mut made = statements.filter_map(|span| Some((span, end_of_figure(&code, span)?)));
        let (span, end) = made.next()?;
        let parts = [(span.start, end), (end, span.end)];
        let [opening, closing] = parts.map(|(start, end)| code.of_span(ByteSpan { start, end }));
        let comma = if opening.ends_with('(') { "" } else { ", " };
        let after = format!("{opening}{comma}num=1, clear=True{closing}");
        Some((code.of_span(span).to_owned(), after))
    });
    let by_hand = || once("matplotlib.pyplot.close('all')", FixReason::FiguresClosed);
    found.unwrap_or_else(by_hand)
}

/// Where the arguments of what makes a figure end, if none of them is its number.
fn end_of_figure(code: &Code<'_>, statement: ByteSpan) -> Option<usize> {
    let text = code.of_span(statement);
    let calls = MAKES_FIGURES.iter();
    let opening = calls
        .filter_map(|call| Some(text.find(call)? + call.len() - 1))
        .min()?;
    let end = code.closing(statement.start + opening)?;
    let inside = ByteSpan {
        start: statement.start + opening + 1,
        end,
    };
    let first = code.split(inside, b',').first().copied();
    let first = first.map_or("", |it| code.of_span(it));
    // The first argument of `figure` is its number.
    let is_numbered =
        text[..opening].ends_with("figure") && !first.is_empty() && !first.contains('=');
    let is_named = ["num=", "clear=", "**"].iter().any(|it| text.contains(it));
    (!is_numbered && !is_named).then_some(end)
}

/// Those that are done leave a list that nothing reads.
fn of_done(holder: &Holder, sources: &[&str]) -> Option<Fix> {
    let (list, below) = collection(holder);
    let n_places = |source: &&str| {
        let code = Code::new(bounded(source));
        let whole = ByteSpan {
            start: 0,
            end: code.len(),
        };
        code.find_word(whole, list).count()
    };
    let n_places: usize = sources.iter().map(n_places).sum();
    let found = in_first(sources, FixReason::DoneDropped, |source| {
        let code = Code::new(source);
        let added = Collected::find(&code, list, below).filter(Collected::is_list)?;
        let before = code.of_span(added.statement());
        let after = format!("{before}\n{list} = [it for it in {list} if not it.done()]");
        Some((before.to_owned(), after))
    });
    // Another object's `_result` says nothing of `done()`.
    let makes = |source: &&str| MAKES_FUTURES.iter().any(|it| source.contains(it));
    let are_futures = sources.iter().any(makes);
    // Where it is made, and where it is added to.
    found.filter(|_| n_places == 2 && are_futures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::holders::{RootKind, Traits};
    use gpumem_model::units::Bytes;

    #[track_caller]
    fn check(path: &str, type_name: &str, source: &str, expected: Option<(&str, &str)>) {
        let figures = path.find(".figs").map(|at| &path[..at + 5]);
        let name = figures.or_else(|| path.split(['[', '.']).next());
        let name = name.unwrap_or_default();
        let holder = Holder {
            path: path.to_owned(),
            traits: Traits {
                type_name: type_name.to_owned(),
                ..Traits::default()
            },
            ..Holder::new(RootKind::Variable, name, Bytes::mib(9))
        };
        let found = fix(&holder, &[source]);
        let found = found.map(|it| (it.before.unwrap_or_default(), it.after));
        let expected = expected.map(|(before, after)| (before.to_owned(), after.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cycle_calls_its_loader_again() {
        let check = |source: &str, after: Option<&str>| {
            let expected = after.map(|after| (source, after));
            check("batches.<inside>[0]", "cycle", source, expected);
        };
        check(
            "batches = itertools.cycle(loader())",
            Some("batches = (item for _ in itertools.count() for item in loader())"),
        );
        check(
            "batches = cycle(data.batches(32))",
            Some("batches = (item for _ in iter(int, 1) for item in data.batches(32))"),
        );
        check("batches = cycle(loader)", None);
        check("batches = cycle(iter(loader))", None);
        check("batches = cycle(batched(stream, 4))", None);
        check("batches = cycle(zip(a(), b()))", None);
        check("others = cycle(loader())", None);
    }

    #[test]
    fn a_method_gets_a_bound_and_objects_with_state_stay() {
        let method =
            "class Grid:\n    @functools.lru_cache(maxsize=None)\n    def positions(self, n): ...";
        let bound = (
            "@functools.lru_cache(maxsize=None)",
            "@functools.lru_cache(maxsize=8)",
        );
        check(
            "Grid.positions.<cache>[<tuple>]",
            "type",
            method,
            Some(bound),
        );
        let clear = Some(("", "Grid.positions.cache_clear()"));
        check("Grid.positions.<cache>[<tuple>]", "type", "x", clear);
        let kept = "positions.<cache>[<tuple>]";
        let of_function = |decorator: &str| format!("{decorator}\ndef positions(n): ...");
        for decorator in ["@lru_cache", "@lru_cache()", "@lru_cache(maxsize=256)"] {
            let bound = Some((decorator, "@lru_cache(maxsize=8)"));
            let source = of_function(decorator);
            check(kept, "_lru_cache_wrapper", &source, bound);
        }
        let clear = Some(("", "positions.cache_clear()"));
        let small = of_function("@lru_cache(maxsize=4)");
        check(kept, "_lru_cache_wrapper", &small, clear);
        let layers = "@cache\ndef layer(i): ...";
        check("layer.<cache>[0].w", "_lru_cache_wrapper", layers, None);
    }

    #[test]
    fn figures_that_a_cell_finds_by_number_stay() {
        let path = "matplotlib._pylab_helpers.Gcf.figs[1].canvas.figure";
        let source = "f = plt.figure()\nplt.get_fignums()";
        check(path, "OrderedDict", source, None);
    }

    #[test]
    fn figures_are_used_again() {
        let path = "matplotlib._pylab_helpers.Gcf.figs[1].canvas.figure";
        let makes = |before: &str, after: &str| {
            let source = format!("import numpy\n{before}\nax.plot(x)");
            check(path, "OrderedDict", &source, Some((before, after)));
        };
        makes(
            "fig, ax = plt.subplots(2)",
            "fig, ax = plt.subplots(2, num=1, clear=True)",
        );
        makes("f = plt.figure()", "f = plt.figure(num=1, clear=True)");
        let by_hand = Some(("", "matplotlib.pyplot.close('all')"));
        check(path, "OrderedDict", "draw()", by_hand);
        check(path, "OrderedDict", "f = plt.figure(1)", by_hand);
        check(path, "OrderedDict", "f = plt.figure(n)", by_hand);
        check(
            path,
            "OrderedDict",
            "f, a = plt.subplots(clear=True)",
            by_hand,
        );
    }

    #[test]
    fn futures_that_are_done_leave_a_list_that_nothing_reads() {
        let source = "import concurrent.futures\nfutures = []\nfor x in y:\n    futures.append(pool.submit(f, x))";
        let before = "futures.append(pool.submit(f, x))";
        let after = format!("{before}\nfutures = [it for it in futures if not it.done()]");
        check("futures[0]._result", "list", source, Some((before, &after)));
        let read = format!("{source}\nwait(futures)");
        check("futures[0]._result", "list", &read, None);
        let of_own = "jobs = []\njobs.append(Job())";
        check("jobs[0]._result", "list", of_own, None);
    }
}
