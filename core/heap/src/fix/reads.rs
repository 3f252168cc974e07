//! What cells do with what a name collects, line by line, as far as their text tells.
//!
//! No values are followed: where a line may need what a change takes away, the change is not suggested.

use super::statement::is_of_name;
use gpumem_model::source_text::is_name_letter;

/// What only a tensor has, or takes.
const OF_TENSORS: [&str; 7] = [
    ".item(", "stack(", "cat(", ".detach(", ".cpu(", ".numpy(", ".tolist(",
];

/// What shows a value, or takes a number of it.
const SHOWS: [&str; 4] = ["print(", "plot(", "float(", ".item("];

/// What goes through all values of a dict.
const OF_VALUES: [&str; 2] = [".items()", ".values()"];

/// What only names it.
const NAMES: [&str; 4] = ["def ", "del ", "global ", "#"];

/// Whether a text calls what goes back through a graph; an autograd function may define it.
fn goes_back(text: &str) -> bool {
    let mut calls = text.match_indices("backward(");
    text.contains("autograd.grad(") || calls.any(|(at, _)| !text[..at].ends_with("def "))
}

/// How what is collected is read in cells, besides where it is collected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    /// Some line does more than make it empty or count it.
    pub(super) values: bool,
    /// As tensors, or by a function that may do so.
    pub(super) tensors: bool,
    /// To go back through its graph.
    pub(super) graph: bool,
}

impl Reads {
    /// What these do, too.
    pub(super) fn add(&mut self, other: &Self) {
        self.values |= other.values;
        self.tensors |= other.tensors;
        self.graph |= other.graph;
    }

    /// Those of `word` in `sources`; `statement` collects it.
    pub(super) fn find(word: &str, statement: &str, sources: &[&str]) -> Self {
        let mut reads = Self::default();
        for source in sources.iter().filter(|source| source.contains(word)) {
            let has = |text: &str, any: &[&str]| any.iter().any(|it| text.contains(it));
            let source_goes_back = goes_back(source);
            for line in source.lines().map(str::trim) {
                let Some((before, after)) =
                    around(line, word).filter(|_| !statement.contains(line))
                else {
                    continue;
                };
                let is_named = NAMES.iter().any(|it| line.starts_with(it));
                let is_written = is_written(after, word) || is_unpacked(before, after);
                let is_counted = without_object(before).ends_with("len(");
                if is_written || is_counted || is_named {
                    continue;
                }
                reads.values = true;
                let function = callee(before).and_then(|name| {
                    let definition = format!("def {name}(");
                    sources.iter().find(|it| it.contains(&definition))
                });
                let goes_back_here = source_goes_back && !has(line, &SHOWS)
                    || goes_back(line)
                    || function.is_some_and(|it| goes_back(it));
                let is_looped = line.contains("for ") && has(source, &OF_TENSORS);
                reads.graph |= goes_back_here;
                reads.tensors |=
                    goes_back_here || is_looped || function.is_some() || has(line, &OF_TENSORS);
            }
        }
        reads
    }
}

/// What cells do with a collection as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uses {
    /// Nothing so far, or they count it, or take the latest of it.
    None,
    /// They look up what is in it.
    LooksUp,
    /// They take what it has at an index or a key, the next of it, or an attribute.
    Indexes,
    /// They iterate over it, or hand it on.
    Whole,
    /// They go back through the graphs in it.
    GoesBack,
}

/// How a cell uses what `word` collects, as far as its lines tell. It `is_nested` if it is collected in values of it,
/// such as lists of a dict.
pub(super) fn uses(word: &str, source: &str, is_nested: bool) -> Uses {
    let lines = source.lines().map(str::trim);
    let lines = lines.filter(|line| !NAMES.iter().any(|it| line.starts_with(it)));
    let uses = lines.flat_map(|line| {
        let found = occurrences(line, word);
        found.map(|(before, after)| use_at(before, after, is_nested))
    });
    uses.max().unwrap_or(Uses::None)
}

/// How a line uses the word between these.
fn use_at(before: &str, after: &str, is_nested: bool) -> Uses {
    if writes(after) || is_unpacked(before, after) {
        return Uses::None;
    }
    let head = without_object(before).trim_end();
    let looked_up = head.strip_suffix(" in").is_some_and(|head| {
        let since = head.rsplit("for ").next().unwrap_or_default();
        !head.contains("for ") || since.contains(" in ")
    });
    let takes_latest = after.starts_with("[-") || is_nested && takes_latest_of_each(head, after);
    let takes_next = head.ends_with("next(") || head.ends_with("next(iter(");
    if looked_up {
        Uses::LooksUp
    } else if head.ends_with("len(") || takes_latest {
        Uses::None
    } else if takes_next || takes_part(after) {
        Uses::Indexes
    } else {
        Uses::Whole
    }
}

/// Whether a line takes the latest of each value, or counts it: `{k: v[-1] for k, v in kept.items()}`.
fn takes_latest_of_each(head: &str, after: &str) -> bool {
    let rest = OF_VALUES.iter().find_map(|it| after.strip_prefix(it));
    let target = head
        .strip_suffix(" in")
        .and_then(|it| it.rsplit_once("for "));
    let (Some(rest), Some((element, target))) = (rest, target) else {
        return false;
    };
    let value = target.rsplit([',', ' ']).next().unwrap_or_default();
    let is_latest = |(before, after): (&str, &str)| {
        // An item, and in that the latest: `v["loss"][-1]`.
        let items = after.split(']').take_while(|it| it.starts_with('['));
        before.ends_with("len(") || items.last().is_some_and(|it| it.starts_with("[-"))
    };
    let mut uses = [element, rest]
        .into_iter()
        .flat_map(|it| occurrences(it, value));
    let mut n_uses = 0;
    let is_all = uses.all(|it| {
        n_uses += 1;
        is_latest(it)
    });
    !value.is_empty() && is_all && n_uses > 0
}

/// What stands before the object whose attribute follows: `len(` of `len(self.`.
fn without_object(before: &str) -> &str {
    if before.ends_with('.') {
        before.trim_end_matches(|c| is_name_letter(c) || c == '.')
    } else {
        before
    }
}

/// Whether a part of a word is taken: an item, or an attribute that is no view of all items.
fn takes_part(after: &str) -> bool {
    let item = after.strip_prefix('[').and_then(|it| it.split_once(']'));
    let is_whole = |item: &str| item.starts_with(':') || item.ends_with(':');
    let takes_item = after.starts_with('[') && !item.is_some_and(|(item, _)| is_whole(item));
    let is_view = OF_VALUES.iter().any(|it| after.starts_with(it));
    takes_item || after.starts_with('.') && !is_view
}

/// Whether a word is only written to; `after` follows it.
fn writes(after: &str) -> bool {
    // What stands in the brackets may have some of its own.
    let item = after.strip_prefix('[').and_then(|it| {
        let mut ends = it
            .match_indices(']')
            .map(|(end, _)| it[end + 1..].trim_start());
        ends.find(|rest| {
            ["=", "+=", ".append("]
                .iter()
                .any(|sign| rest.starts_with(sign))
        })
    });
    let written = item.unwrap_or(after);
    let writes = [".append(", ".add(", ".extend(", "+=", ".clear(", "="];
    after.starts_with('(')
        || writes.iter().any(|it| written.starts_with(it)) && !written.starts_with("==")
}

/// Whether a line only writes to a word, or calls a method of the same name; `after` follows the word.
fn is_written(after: &str, word: &str) -> bool {
    let item = after.strip_prefix('[').and_then(|it| it.split_once(']'));
    let written = item.map_or(after, |(_, it)| it.trim_start());
    let writes = [".append(", "+=", ".clear(", "="];
    let is_compared = written.starts_with("==");
    let is_only_written = writes.iter().any(|it| written.starts_with(it)) && !is_compared;
    after.starts_with('(') || is_only_written && around(after, word).is_none()
}

/// Whether a word is one of several names that a line binds: `kept, seen = [], {}`.
fn is_unpacked(before: &str, after: &str) -> bool {
    let is_of_names = |c: char| is_name_letter(c) || ",. ".contains(c);
    let rest = after.trim_start_matches(is_of_names);
    let is_bound = rest.starts_with('=') && !rest.starts_with("==");
    is_bound && before.chars().all(is_of_names) && (before.contains(',') || after.starts_with(','))
}

/// Whether what follows a word in its line makes it empty, or another one.
fn empties(after: &str, word: &str) -> bool {
    after.starts_with(".clear(") || after.strip_prefix('=').is_some_and(|it| !it.contains(word))
}

/// Whether a cell reads what the word collects, and empties it below.
pub(super) fn is_emptied(word: &str, source: &str) -> bool {
    let mut is_read = false;
    for line in source.lines().map(str::trim) {
        let Some((_, after)) = around(line, word) else {
            continue;
        };
        if is_read && empties(after, word) {
            return true;
        }
        is_read |= !is_written(after, word);
    }
    false
}

/// Whether a cell looks up what the word collects before it adds to that: `if key not in cache:`.
pub(super) fn is_cache(word: &str, source: &str) -> bool {
    source.lines().map(str::trim).any(|line| {
        let condition = line
            .strip_prefix("if ")
            .or_else(|| line.strip_prefix("elif "));
        let condition = condition.filter(|it| it.contains(" not in "));
        condition
            .and_then(|it| around(it, word))
            .is_some_and(|(before, _)| without_object(before).ends_with(" not in "))
    })
}

/// Whether a cell empties what the word collects below a line that adds to it.
pub(super) fn is_let_go(word: &str, source: &str) -> bool {
    let of_word = source.lines().filter_map(|line| around(line.trim(), word));
    let mut of_word = of_word.map(|(_, after)| after);
    of_word.any(|after| writes(after) && !empties(after, word))
        && of_word.any(|after| empties(after, word))
}

/// What stands before and after a word that stands by itself in a line.
pub(super) fn around<'a>(line: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(word).find_map(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let goes_on = |byte: Option<&u8>| byte.is_some_and(|it| is_of_name(*it));
        let is_apart = !goes_on(before.as_bytes().last()) && !goes_on(after.as_bytes().first());
        is_apart.then(|| (before, after.trim_start()))
    })
}

/// The same of each time that it does.
pub(super) fn occurrences<'a>(
    line: &'a str,
    word: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (_, after) = around(rest, word)?;
        rest = after;
        let before = line[..line.len() - after.len()].trim_end();
        Some((before.strip_suffix(word).unwrap_or(before), after))
    })
}

/// The function that is called with what follows: `mean` of `x = mean(`.
fn callee(before: &str) -> Option<&str> {
    let call = without_object(before).strip_suffix('(')?;
    let start = call
        .bytes()
        .rposition(|it| !is_of_name(it))
        .map_or(0, |at| at + 1);
    Some(&call[start..]).filter(|name| !name.is_empty())
}

/// Whether a cell takes a displayed result, as `Out[3]` or `_`.
pub(super) fn takes_results(source: &str) -> bool {
    let taken = ["Out[", "(_)", "(_.", "(_[", " _.", " _[", "__)"];
    source.starts_with("_.") || taken.iter().any(|it| source.contains(it))
}

/// Whether what reads the frames of errors is in a cell, or an error is raised while another one is handled:
/// that keeps the frames of the other one.
pub(super) fn needs_frames(source: &str) -> bool {
    let reads = ["traceback", "exc_info"];
    let mut handler = None;
    let raises = source.lines().any(|line| {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        handler = handler.filter(|it| *it < depth || text.is_empty());
        let is_raised = handler.is_some() && text.starts_with("raise ");
        if text.starts_with("except") {
            handler = Some(depth);
        }
        is_raised
    });
    raises || reads.iter().any(|it| source.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_by_their_names() {
        for cell in ["norms.append(_.sum())", "x = f(__)", "Out[3].sum()"] {
            assert!(takes_results(cell), "{cell}");
        }
        for cell in [
            "for _ in range(3): step()",
            "_, x = f()",
            "a.b_.c",
            "x = 1_000",
            "_t('a')",
        ] {
            assert!(!takes_results(cell), "{cell}");
        }
    }

    #[test]
    fn a_cache_is_read_before_it_is_filled() {
        let check = |condition: &str, expected: bool| {
            let cell = format!("{condition}\n    cls.cache[n] = make(n)");
            assert_eq!(is_cache("cache", &cell), expected, "{condition}");
        };
        check("if n not in cls.cache:", true);
        check("elif n not in cache and n > 2:", true);
        check("if cache not in n:", false);
        check("if n in cls.cache:", false);
        check("for n not in cache:", false);
        check("if n not in cls.cached:", false);
    }

    #[test]
    fn a_collection_is_used_as_a_whole_or_hardly() {
        let check = |cell: &str, expected: Uses| {
            let cell = format!("kept = []\nkept.append(f(x))\n{cell}");
            assert_eq!(uses("kept", &cell, true), expected, "{cell}");
        };
        for cell in [
            "",
            "del kept",
            "kept_too = 1",
            "# kept",
            "kept[name] = x",
            "kept[f'{x}'].append(y)",
            "kept, losses = [], []",
        ] {
            check(cell, Uses::None);
        }
        for cell in [
            "print(len(kept), 'of them')",
            "print(f'{kept[-1]:.3f}')",
            "sum(x for x in kept[-20:])",
            "kept[f'call{len(kept)}'] = x",
            "return len(self.kept) / seconds",
            "print(len(log.kept), log.kept[-1].text())",
            "def forward(ctx, x):\n    F.kept.append(x)\ndef backward(ctx, g):\n    x = F.kept[-1]",
        ] {
            check(cell, Uses::None);
        }
        for cell in [
            "print({k: v[-1] for k, v in kept.items()})",
            "shown = {k: round(v['loss'][-1], 4) for k, v in self.kept.items()}",
            "for v in kept.values(): print(len(v), v[-1].item())",
        ] {
            check(cell, Uses::None);
        }
        for cell in [
            "if node in kept:",
            "if node in self.kept:",
            "rows = [x for x in xs if x not in kept]",
        ] {
            check(cell, Uses::LooksUp);
        }
        for cell in [
            "result = torch.cat(kept)",
            "for x in kept[:3]:",
            "mean = torch.stack(self.kept[20:]).mean(0)",
            "return kept",
            "print(sum(x.nbytes for x in kept))",
            "rows = [kept[i] for i, _ in enumerate(kept)]",
        ] {
            check(cell, Uses::Whole);
        }
        check("for name, x in kept.items():", Uses::Whole);
        check("{k: sum(v) / len(v) for k, v in kept.items()}", Uses::Whole);
        check("{k: (v[0], v[-1]) for k, v in kept.items()}", Uses::Whole);
        let of_tensors = "last = [v[-1] for v in kept.values()]";
        assert_eq!(uses("kept", of_tensors, false), Uses::Whole);
        check("x = kept[i]", Uses::Indexes);
        check("print(next(kept)[:3])", Uses::Indexes);
        check("first = next(iter(self.kept))", Uses::Indexes);
        check("batch = kept[i:i + 32]", Uses::Indexes);
        check("labels = kept.logits.argmax(-1)", Uses::Indexes);
    }

    #[test]
    fn what_is_read_and_emptied_was_accumulated() {
        for cell in [
            "total = total + f(x)\nif step % 8 == 0:\n    total.backward()\n    total = 0",
            "sum(total).backward()\ntotal.clear()",
        ] {
            assert!(is_emptied("total", cell), "{cell}");
        }
        for cell in [
            "total = []\nnet = Net()",
            "total.append(f(x))",
            "total = 0\nfor x in xs:\n    total += f(x)\nprint(total)",
            "total.append(f(x))\nprint(total[-1])",
        ] {
            assert!(!is_emptied("total", cell), "{cell}");
        }
    }

    #[test]
    fn an_error_in_a_handler_keeps_the_first() {
        let cell = |handler: &str| format!("try:\n    f()\nexcept E as e:\n    {handler}\nraise X");
        assert!(needs_frames(&cell("raise X('no') from e")));
        assert!(needs_frames(&cell("print(e.__traceback__)")));
        assert!(!needs_frames(&cell("errors.append(e)")));
        assert!(!needs_frames(&cell("raise")));
        assert!(!needs_frames("def f():\n    raise ValueError"));
    }

    #[track_caller]
    fn check(cell: &str, expected: [bool; 3]) {
        let own = "loss = net(x)\nloss.backward()\nlosses.append(loss)";
        let Reads {
            values,
            tensors,
            graph,
        } = Reads::find("losses", "losses.append(loss)", &[own, "losses = []", cell]);
        assert_eq!([values, tensors, graph], expected, "{cell}");
    }

    #[test]
    fn numbers_are_shown_and_counted() {
        check("losses.clear()\nprint(len(losses))", [false; 3]);
        check("del losses\nother_losses.item()", [false; 3]);
        check("losses, n = [], 0", [false; 3]);
        check("self.n, self.losses = 0, []", [false; 3]);
        check("f(n, losses, x=1)", [true, false, false]);
        check(
            "def train(losses):\n    loss.backward()\n    global losses",
            [false; 3],
        );
        for cell in [
            "print(f'{losses[-1]:.3f} of {len(losses)}')",
            "mean = sum(losses) / len(losses)",
            "plt.plot(losses)",
            "np.mean(losses[-10:])",
            "rows = [float(it) for it in losses]",
        ] {
            check(cell, [true, false, false]);
        }
    }

    #[test]
    fn what_is_only_written_is_not_read() {
        for cell in [
            "losses['length'].append(20)\nloss.backward()",
            "losses[step] += 1\nlosses[-1] = 0\nloss.backward()",
            "total = (x * w).losses()\ntotal.backward()",
        ] {
            check(cell, [false; 3]);
        }
        check("losses.append(losses[-1].item())", [true, true, false]);
        check("if losses[-1] == best:", [true, false, false]);
    }

    #[test]
    fn tensors_are_stacked_and_read() {
        for cell in [
            "print(losses[-1].item())",
            "def curve():\n    return [it.item() for it in losses]",
            "class Meter:\n    def mean(self):\n        return torch.stack(self.losses).mean()",
            "def mean(values):\n    return torch.stack(values).mean()\nmean(losses)",
            "for it in losses:\n    print(it.item())",
        ] {
            check(cell, [true, true, false]);
        }
    }

    #[test]
    fn a_backward_pass_goes_through_a_graph() {
        for cell in [
            "torch.stack(losses).mean().backward()\nlosses.clear()",
            "total = -(torch.stack(losses) * w).sum()\ntotal.backward()",
            "g = torch.autograd.grad(losses[-1], net.parameters())",
            "for it in losses:\n    it.backward()",
        ] {
            check(cell, [true; 3]);
        }
    }
}
