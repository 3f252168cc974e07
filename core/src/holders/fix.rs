//! What to change so that a holder lets go: the user's own line, before and after.

use super::{Holder, RootKind};
use crate::units::Bytes;

/// A cure for one holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The line of the cell that makes it hold; `None` where the cell does not show it.
    pub before: Option<String>,
    /// What to write instead, or to run once where there is no `before`.
    pub after: String,
    /// One sentence: why that helps, and what it does not do.
    pub why: &'static str,
}

/// The cure for `holder`, in the words of the cell's text where that shows what
/// holds; `None` where nothing certain can be said.
///
/// `.item()` is advised only where every tensor is a single number, and nothing
/// is taken from a graph that the cell goes back through.
pub fn fix(holder: &Holder, source: Option<&str>) -> Option<Fix> {
    let source = source.unwrap_or_default();
    match holder.kind {
        RootKind::OutputHistory => Some(of_output(source)),
        RootKind::Traceback | RootKind::Debugger => Some(once(
            holder.kind.release()?,
            "the last exception keeps every local variable of the functions it passed through",
        )),
        RootKind::CyclicGarbage => Some(once(
            holder.kind.release()?,
            "the objects refer to each other and wait for a collection; with a `weakref` in one \
             direction they go at once",
        )),
        RootKind::RunModule => Some(once(
            holder.kind.release()?,
            "IPython keeps the namespace of every script that `%run` ran",
        )),
        RootKind::Variable | RootKind::ModuleGlobal => of_name(holder, source),
        RootKind::ThreadFrame | RootKind::System | RootKind::Unnamed => None,
    }
}

fn once(command: &str, why: &'static str) -> Fix {
    Fix {
        before: None,
        after: command.to_owned(),
        why,
    }
}

fn of_output(source: &str) -> Fix {
    let last = source.lines().rfind(|line| !line.trim().is_empty());
    match last.filter(|line| is_displayed(line)) {
        Some(line) => Fix {
            before: Some(line.to_owned()),
            after: format!("{};", line.trim_end()),
            why: "IPython keeps what a cell displays for the whole session; `%gpumem release \
                  outputs` lets go of what is kept already",
        },
        None => once(
            "%gpumem release outputs",
            "IPython keeps what a cell displays for the whole session; a `;` at the end of the \
             last line avoids it",
        ),
    }
}

/// A line that is an expression by itself, whole, and not silenced.
fn is_displayed(line: &str) -> bool {
    let starts_well = line.starts_with(|c: char| c.is_alphabetic() || "_([{".contains(c));
    let is_whole = outside(line).is_some_and(|plain| !plain.contains(['=', ';', '#', ':', '\\']));
    let word = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    let statements = [
        "assert", "break", "continue", "del", "from", "global", "import", "pass", "raise", "return",
    ];
    starts_well && is_whole && !word.is_some_and(|word| statements.contains(&word))
}

fn of_name(holder: &Holder, source: &str) -> Option<Fix> {
    if holder.traits.type_name.ends_with("_lru_cache_wrapper") {
        return Some(of_cache(holder, source));
    }
    let collection = collection(&holder.path);
    let found = source
        .lines()
        .find_map(|line| Collected::of(line.trim(), collection));
    let has_graph = holder.traits.graph > Bytes::ZERO;
    let goes_back = source.contains(&format!("{collection}.backward("));
    match found {
        Some(it) if (holder.traits.scalars || has_graph) && !goes_back => Some(it.cut(holder)),
        Some(it) if !has_graph => it.bounded(collection),
        _ if goes_back => None,
        _ => Some(of_any(holder)),
    }
}

/// What collects, on the way to the largest object: `trainer.losses` of
/// `trainer.losses[3].grad_fn`.
fn collection(path: &str) -> &str {
    let ends = ["[", ".grad_fn", "._saved", ".<"].iter();
    let end = ends.filter_map(|end| path.find(end)).min();
    &path[..end.unwrap_or(path.len())]
}

fn of_any(holder: &Holder) -> Fix {
    let after = format!("del {}", holder.name);
    if holder.traits.graph > Bytes::ZERO {
        return once(
            &after,
            "the graph for the backward pass is kept with it: `.detach()` what is kept, or compute \
             it under `no_grad()` where no backward pass follows",
        );
    }
    once(
        &after,
        "once it is not needed: only this name keeps it alive",
    )
}

/// `@cache`, `@lru_cache(maxsize=None)`: without a bound.
fn of_cache(holder: &Holder, source: &str) -> Fix {
    let unbounded = |line: &&str| {
        let call = line.trim().strip_prefix('@').unwrap_or_default();
        let call = call.strip_prefix("functools.").unwrap_or(call);
        let call: String = call.chars().filter(|c| !c.is_whitespace()).collect();
        ["cache", "lru_cache(maxsize=None)", "lru_cache(None)"].contains(&&*call)
    };
    let n_unbounded = source.lines().filter(unbounded).count();
    match source.lines().find(unbounded).filter(|_| n_unbounded == 1) {
        Some(line) if line.contains("lru_cache") || line.contains("functools.") => {
            let prefix = if line.contains("functools.") {
                "functools."
            } else {
                ""
            };
            Fix {
                before: Some(line.trim().to_owned()),
                after: format!("@{prefix}lru_cache(maxsize=128)"),
                why: "without a bound the cache keeps every result, and its arguments",
            }
        }
        _ => once(
            &format!("{}.cache_clear()", holder.name),
            "the cache keeps its results, and their arguments; `functools.lru_cache(maxsize=…)` \
             bounds how many",
        ),
    }
}

/// A line that puts a value into a collection, in parts.
struct Collected<'a> {
    line: &'a str,
    /// Up to the value: `losses.append(`, `total += `, `cache[key] = `.
    opening: &'a str,
    value: &'a str,
    /// Behind it: `)`.
    closing: &'a str,
}

impl<'a> Collected<'a> {
    /// The line's parts, if it collects into `collection`, or into the attribute of that name.
    fn of(line: &'a str, collection: &str) -> Option<Self> {
        let (line, _) = line.split_once(" #").unwrap_or((line, ""));
        let line = line.trim_end();
        let own = Self::of_exactly(line, collection);
        own.or_else(|| {
            let (_, attribute) = collection.rsplit_once('.')?;
            Self::of_exactly(line, &format!("self.{attribute}"))
        })
    }

    fn of_exactly(line: &'a str, collection: &str) -> Option<Self> {
        let rest = line.strip_prefix(collection)?;
        let behind = |rest: &'a str, closing: &'a str| {
            let value = rest.strip_suffix(closing)?.trim();
            let opening = &line[..line.len() - rest.len()];
            let is_one = !value.is_empty()
                && outside(value)
                    .is_some_and(|it| !it.contains([',', '=', ';']) && !it.contains(" for "));
            let is_kept_whole = ["yield", "lambda", "*"]
                .iter()
                .all(|it| !value.starts_with(it));
            (is_one && is_kept_whole).then_some(Self {
                line,
                opening,
                value,
                closing,
            })
        };
        if let Some(rest) = rest.strip_prefix(".append(") {
            return behind(rest, ")");
        }
        if let Some(rest) = rest.trim_start().strip_prefix("+= ") {
            return behind(rest, "");
        }
        let in_brackets = rest.strip_prefix('[')?;
        let (key, value) = in_brackets.split_once("] = ")?;
        outside(key).filter(|_| !key.is_empty())?;
        behind(value, "")
    }

    /// The same without the graph; a number where each is a single one.
    fn cut(&self, holder: &Holder) -> Fix {
        let (call, why) = if holder.traits.scalars {
            (
                ".item()",
                "a plain number keeps neither device memory nor a graph; `.item()` waits for the device",
            )
        } else {
            (
                ".detach()",
                "without its graph each keeps only its own values; they still add up, so keep no \
                 more of them than are needed, and where no backward pass follows compute under \
                 `no_grad()`",
            )
        };
        let Self {
            line,
            opening,
            value,
            closing,
        } = self;
        let is_plain = outside(value)
            .is_some_and(|it| it.chars().all(|c| c.is_alphanumeric() || "_.".contains(c)));
        let value = if is_plain {
            format!("{value}{call}")
        } else {
            format!("({value}){call}")
        };
        Fix {
            before: Some((*line).to_owned()),
            after: format!("{opening}{value}{closing}"),
            why,
        }
    }

    /// The same line, and one that drops the oldest.
    fn bounded(&self, collection: &str) -> Option<Fix> {
        let name = self.opening.strip_suffix(".append(");
        let name = name.or_else(|| Some(self.opening.split_once('[')?.0));
        let last = collection.rsplit('.').next()?;
        let name = name.filter(|name| name.ends_with(last))?;
        let drop = if self.opening.ends_with(".append(") {
            format!("del {name}[:-100]")
        } else {
            format!("while len({name}) > 100: {name}.pop(next(iter({name})))")
        };
        Some(Fix {
            before: Some(self.line.to_owned()),
            after: format!("{}\n{drop}", self.line),
            why: "keeps the latest 100 and lets go of the rest; a `deque(maxlen=100)` does it by \
                  itself",
        })
    }
}

/// What stands outside of brackets and quotation marks; `None` where they do not close.
fn outside(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut open: Vec<char> = Vec::new();
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(mark), c) if c == mark => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ')' | ']' | '}') if open.last() == Some(&c) => {
                open.pop();
            }
            (None, ')' | ']' | '}') => return None,
            (None, c) if open.is_empty() => plain.push(c),
            _ => {}
        }
    }
    (open.is_empty() && quote.is_none()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::{Rest, Traits};

    fn holder(kind: RootKind, path: &str, type_name: &str) -> Holder {
        let name = path.split(['[', '.']).next().unwrap_or_default();
        Holder {
            name: name.to_owned(),
            kind,
            retained: Bytes::mib(9),
            grown: None,
            path: path.to_owned(),
            what: String::new(),
            traits: Traits {
                type_name: type_name.to_owned(),
                ..Traits::default()
            },
            branches: Vec::new(),
            more: Rest::default(),
        }
    }

    fn with_graph(path: &str, scalars: bool) -> Holder {
        let mut holder = holder(RootKind::Variable, path, "list");
        holder.traits.graph = Bytes::mib(8);
        holder.traits.scalars = scalars;
        holder
    }

    #[track_caller]
    fn check(holder: &Holder, source: &str, before: Option<&str>, after: &str) {
        let found = fix(holder, Some(source)).expect("a fix");
        assert_eq!((found.before.as_deref(), &*found.after), (before, after));
    }

    #[test]
    fn a_scalar_is_kept_as_a_number_and_a_tensor_without_its_graph() {
        let line = "    losses.append(model(x, y).sum())  # for the plot";
        let shown = Some("losses.append(model(x, y).sum())");
        let source = format!("for x in data:\n{line}");
        let losses = with_graph("losses[0].grad_fn", true);
        check(
            &losses,
            &source,
            shown,
            "losses.append(model(x, y).sum().item())",
        );
        let losses = with_graph("losses[0].grad_fn", false);
        check(
            &losses,
            &source,
            shown,
            "losses.append(model(x, y).sum().detach())",
        );
        check(
            &with_graph("total.grad_fn", true),
            "total += a * b",
            Some("total += a * b"),
            "total += (a * b).item()",
        );
        check(
            &with_graph("trainer.history[0]", false),
            "self.history.append(out)",
            Some("self.history.append(out)"),
            "self.history.append(out.detach())",
        );
        check(
            &with_graph("seen['a']", false),
            "seen[key] = out",
            Some("seen[key] = out"),
            "seen[key] = out.detach()",
        );
    }

    #[test]
    fn what_goes_back_through_its_graph_keeps_it() {
        let total = with_graph("total.grad_fn", true);
        assert_eq!(fix(&total, Some("total += loss\ntotal.backward()")), None);
    }

    #[test]
    fn what_the_cell_does_not_show_is_said_in_general() {
        let losses = with_graph("losses[0].grad_fn", true);
        for source in [
            "train()",
            "my_losses.append(x)",
            "losses.append(x for x in y)",
        ] {
            check(&losses, source, None, "del losses");
        }
        assert!(fix(&losses, None).is_some());
    }

    #[test]
    fn a_collection_without_graphs_gets_a_bound() {
        let cache = holder(RootKind::Variable, "cache['a']", "dict");
        check(
            &cache,
            "cache[key] = batch",
            Some("cache[key] = batch"),
            "cache[key] = batch\nwhile len(cache) > 100: cache.pop(next(iter(cache)))",
        );
        let kept = holder(RootKind::Variable, "kept[0]", "list");
        check(
            &kept,
            "kept.append(batch)",
            Some("kept.append(batch)"),
            "kept.append(batch)\ndel kept[:-100]",
        );
        let memo = holder(RootKind::Variable, "embed.<inside>", "_lru_cache_wrapper");
        check(
            &memo,
            "@functools.cache\ndef embed(x): ...",
            Some("@functools.cache"),
            "@functools.lru_cache(maxsize=128)",
        );
        check(&memo, "embed(x)", None, "embed.cache_clear()");
    }

    #[test]
    fn what_ipython_keeps_has_its_own_cures() {
        let output = holder(RootKind::OutputHistory, "Out[3]", "Tensor");
        check(
            &output,
            "x = f()\nmodel(x)\n",
            Some("model(x)"),
            "model(x);",
        );
        for source in [
            "x = f()",
            "model(\n  x\n)",
            "del x",
            "model(x);",
            "if x:\n    y",
        ] {
            check(&output, source, None, "%gpumem release outputs");
        }
        let error = holder(RootKind::Traceback, "sys.last_value", "ValueError");
        check(&error, "", None, "%gpumem release traceback");
        let nobody = holder(RootKind::Unnamed, "unnamed", "");
        assert_eq!(fix(&nobody, None), None);
    }
}
