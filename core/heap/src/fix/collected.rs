//! The place in a cell where a value is put into a collection.

use super::reads::Reads;
use super::statement::{ByteSpan, Code, is_of_name, split_words};
use super::{Fix, FixReason};
use gpumem_model::holders::Holder;
use gpumem_model::units::Bytes;

/// What puts one value into a collection, by its name.
const ADDS: [&str; 3] = ["append", "appendleft", "add"];

/// Words and signs that bind a value less tightly than `+`: behind them it is another one.
const LOOSER: [&str; 9] = [
    "if", "else", "and", "or", "not", "in", "is", "for", "lambda",
];

/// What a path goes on with behind a tensor.
const OF_TENSORS: [&str; 4] = [".grad", "._saved", "._base", ".<saved"];

/// And behind an exception.
pub(super) const FRAMES: &str = ".__traceback__";

/// And behind a view of an array.
const BASE: &str = ".base";

/// A statement that puts a value into a collection, and where that value stands in it.
pub(super) struct Collected<'a> {
    code: &'a Code<'a>,
    statement: ByteSpan,
    value: ByteSpan,
    /// The collection as the cell writes it.
    target: ByteSpan,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// `losses.append(…)`
    Appended,
    /// `seen.add(…)`, `recent.appendleft(…)`
    Added,
    /// `cache[key] = …`
    Stored,
    /// `total += …`, `total = total + …`, `losses = [… for …]`
    Bound,
}

impl<'a> Collected<'a> {
    /// The first place that puts a value into `collection`, or into `self`'s attribute of that name; `below` is how
    /// the path to what it keeps goes on.
    pub(super) fn find(code: &'a Code<'a>, collection: &str, below: &str) -> Option<Self> {
        let own = Self::find_exactly(code, collection, below);
        own.or_else(|| {
            let mut dots = collection.match_indices('.');
            dots.find_map(|(dot, _)| {
                Self::find_exactly(code, &format!("self{}", &collection[dot..]), below)
            })
        })
    }

    fn find_exactly(code: &'a Code<'a>, collection: &str, below: &str) -> Option<Self> {
        if collection.is_empty() {
            return None;
        }
        let leads_there = |at: &usize| Self::leads_to(code, *at + collection.len(), below);
        let statements = code.statements_of_blocks().into_iter();
        let places = statements.flat_map(|statement| {
            let places = code.find_word(statement, collection).filter(leads_there);
            places.map(move |at| (statement, at))
        });
        let found =
            places.filter_map(|(statement, at)| Self::at(code, statement, at, collection.len()));
        let mut found: Vec<Self> = found.collect();
        let fits = |it: &Self| it.value_at(below, &OF_TENSORS).is_some();
        let first = found.iter().position(fits).unwrap_or(0);
        (!found.is_empty()).then(|| found.swap_remove(first))
    }

    /// The only call of a method of `object` that hands it a dict with the key of the path:
    /// `run.log({"loss": loss})`.
    pub(super) fn find_handed(code: &'a Code<'a>, object: &str, below: &str) -> Option<Self> {
        let calls = |statement: ByteSpan| {
            let text = code.of_span(statement);
            let name = text.strip_prefix(object)?.strip_prefix('.')?;
            let n = name.bytes().take_while(|byte| is_of_name(*byte)).count();
            let opening = statement.start + object.len() + 1 + n;
            let is_call = code.code(opening) == Some(b'(');
            let closing = code.closing(opening).filter(|_| is_call)?;
            let value = code.trimmed(ByteSpan {
                start: opening + 1,
                end: closing,
            })?;
            let is_dict = code.code(value.start) == Some(b'{') && closing + 1 == statement.end;
            let found = Self {
                code,
                statement,
                value,
                target: ByteSpan {
                    start: statement.start,
                    end: opening,
                },
                how: How::Added,
            };
            let is_it = is_dict && is_one(code, value);
            (is_it && found.value_at(below, &OF_TENSORS).is_some()).then_some(found)
        };
        let mut found = code.statements_of_blocks().into_iter().filter_map(calls);
        let only = found.next()?;
        found.next().is_none().then_some(only)
    }

    /// False if the text there names another key than the path: `logged['loss']` is not `logged['images']`.
    fn leads_to(code: &Code<'_>, at: usize, below: &str) -> bool {
        let quoted = |text: &str| {
            let text = text.trim();
            let quote = text.chars().next().filter(|it| "'\"".contains(*it))?;
            let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
            (!inner.contains(quote)).then(|| inner.to_owned())
        };
        let key = below.strip_prefix('[').and_then(|it| it.split_once(']'));
        let key = key.and_then(|(key, _)| quoted(key));
        let opens = code.code(at) == Some(b'[');
        let end = Some(at).filter(|_| opens).and_then(|at| code.closing(at));
        let written = end.and_then(|end| {
            let start = at + 1;
            quoted(code.of_span(ByteSpan { start, end }))
        });
        key.is_none() || written.is_none() || key == written
    }

    /// What is done with the collection whose name stands at `at`.
    fn at(code: &'a Code<'a>, statement: ByteSpan, at: usize, n: usize) -> Option<Self> {
        let mut end = at + n;
        let made = |value: ByteSpan, target_end: usize, how: How| {
            let value = code.trimmed(value)?;
            let target = ByteSpan {
                start: at,
                end: target_end,
            };
            is_one(code, value).then_some(Self {
                code,
                statement,
                value,
                target,
                how,
            })
        };
        // `stats['loss'].setdefault(k, []).append(…)`: what stands between the two is passed over.
        let mut last_subscript = None;
        loop {
            match code.code(end)? {
                b'[' => {
                    last_subscript = Some(end);
                    end = code.closing(end)? + 1;
                }
                b'(' if end > at + n => end = code.closing(end)? + 1,
                b'.' => {
                    let name = name_at(code, end + 1);
                    let opens = code.code(name.end) == Some(b'(');
                    let how = match code.of_span(name) {
                        "append" => How::Appended,
                        _ => How::Added,
                    };
                    if opens && ADDS.contains(&code.of_span(name)) {
                        let value = ByteSpan {
                            start: name.end + 1,
                            end: code.closing(name.end)?,
                        };
                        return made(value, end, how);
                    }
                    end = name.end;
                    last_subscript = None;
                }
                _ => break,
            }
            if end >= statement.end {
                return None;
            }
        }
        // What follows is a statement by itself: not a default, not an argument.
        if at != statement.start {
            return None;
        }
        let rest = ByteSpan {
            start: end,
            end: statement.end,
        };
        let rest = code.trimmed(rest)?;
        let text = code.of_span(rest);
        let behind = |n: usize| ByteSpan {
            start: rest.start + n,
            ..rest
        };
        if text.starts_with("+=") {
            return made(behind(2), end, How::Bound);
        }
        if !text.starts_with('=') || text.starts_with("==") {
            return None;
        }
        let value = code.trimmed(behind(1))?;
        match last_subscript {
            Some(subscript) => made(value, subscript, How::Stored),
            None => made(
                added(code, value, code.of_span(ByteSpan { start: at, end }))
                    .or_else(|| each_value(code, value))?,
                end,
                How::Bound,
            ),
        }
    }

    /// It is appended to a list, or the like, in a line of its own.
    pub(super) fn is_list(&self) -> bool {
        let before = &self.code.text[..self.statement.start];
        let line = before.rsplit('\n').next().unwrap_or_default();
        self.how == How::Appended && line.trim().is_empty()
    }

    /// Where the same function puts the same value into other attributes of the same object: they keep its graph,
    /// too.
    pub(super) fn same_elsewhere(&self) -> Vec<Self> {
        let code = self.code;
        let Some((object, _)) = code.of_span(self.target).split_once('.') else {
            return Vec::new();
        };
        let statements = code.statements_of_blocks();
        let defines = |span: &ByteSpan| {
            let text = code.of_span(*span);
            ["def ", "class ", "async "]
                .iter()
                .any(|it| text.starts_with(it))
        };
        let of_function = statements.split(defines);
        let mut of_function = of_function.filter(|it| it.contains(&self.statement));
        let same = of_function
            .next()
            .unwrap_or_default()
            .iter()
            .filter_map(|span| {
                let mut places = code.find_word(*span, object);
                let at = places.find(|at| code.code(at + object.len()) == Some(b'.'))?;
                let end = name_at(code, at + object.len() + 1).end;
                let found = Self::at(code, *span, at, end - at)?;
                let is_same = code.of_span(found.value) == code.of_span(self.value);
                (is_same && found.statement != self.statement).then_some(found)
            });
        same.collect()
    }

    /// The last name of what it is put into: `vals` of `self.vals`.
    pub(super) fn word(&self) -> &str {
        let target = self.code.of_span(self.target);
        let name = target.split(['[', '(']).next().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default()
    }

    /// From the first to the last of these statements; of several lines all of each.
    pub(super) fn with_all(&self, others: &[Self]) -> ByteSpan {
        let all = || std::iter::once(self).chain(others).map(|it| it.statement);
        let start = all().map(|it| it.start).min().unwrap_or_default();
        let end = all().map(|it| it.end).max().unwrap_or_default();
        let is_of_lines = !others.is_empty() && self.code.text[start..end].contains('\n');
        let before = &self.code.text[..start];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let is_indented = is_of_lines && before[line..].trim().is_empty();
        ByteSpan {
            start: if is_indented { line } else { start },
            end,
        }
    }

    pub(super) fn statement(&self) -> ByteSpan {
        self.statement
    }

    /// The statement with a value that keeps less; `None` where nothing certain can be said.
    /// `is_own` is false in another cell than the one that grew. What keeps a graph is changed in `others`, too.
    pub(super) fn changed(
        &self,
        holder: &Holder,
        below: &str,
        reads: &Reads,
        is_own: bool,
        others: &[Self],
    ) -> Option<Fix> {
        let traits = &holder.traits;
        let has_graph = traits.graph > Bytes::ZERO;
        let is_leaf = ["requires_grad", "Parameter("]
            .iter()
            .any(|it| self.code.of_span(self.statement).contains(it));
        let is_moved = !is_leaf && traits.tensor_type == "Tensor" && self.how != How::Bound;
        let is_number = traits.scalars && !reads.tensors;
        let (call, reason, goes_on) = if below.contains(FRAMES) {
            (
                ".with_traceback(None)",
                FixReason::WithoutTraceback,
                &[FRAMES][..],
            )
        } else if below.contains(BASE) && self.how != How::Bound {
            (".copy()", FixReason::Copied, &[BASE][..])
        } else if is_number {
            (".item()", FixReason::Number, &OF_TENSORS[..])
        } else if has_graph {
            (".detach()", FixReason::Detached, &OF_TENSORS[..])
        } else if is_moved {
            (".cpu()", FixReason::InHostMemory, &OF_TENSORS[..])
        } else {
            return None;
        };
        // Where it is inside of what is put there, the cell must show where: the call is a tensor's.
        let value = self.value_at(below, goes_on)?;
        if self.is_one_of_several(holder, value) {
            return None;
        }
        let text = self.code.of_span(value);
        // The array of a tensor is no part of a larger one.
        if reason == FixReason::Copied && text.ends_with(".numpy()") {
            return None;
        }
        let called = if self.code.is_primary(value) {
            format!("{text}{call}")
        } else {
            format!("({text}){call}")
        };
        let binds = |span: &ByteSpan| {
            let rest = self.code.of_span(*span).strip_prefix(text);
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let others: &[Self] = if has_graph { others } else { &[] };
        let all = || std::iter::once(self).chain(others);
        let is_handed = text.bytes().all(is_of_name) && !self.code.statements().iter().any(binds);
        let after = if is_own || !is_handed {
            called
        } else if is_number {
            format!("float({text})")
        } else {
            // What a function is handed may be a plain number, too.
            let method = call.trim_matches(['.', '(', ')']);
            match call.strip_suffix("()") {
                Some(_) if all().any(|it| it.how == How::Bound) => {
                    format!("({called} if hasattr({text}, '{method}') else {text})")
                }
                Some(_) => format!("{called} if hasattr({text}, '{method}') else {text}"),
                None => called,
            }
        };
        // Only part of what is put there.
        if !others.is_empty() && value != self.value {
            return None;
        }
        let mut values: Vec<ByteSpan> = others.iter().map(|it| it.value).collect();
        values.push(value);
        Some(self.with(values, &after, self.with_all(others), reason))
    }

    /// It is a part of what is put there, and other parts of it are tensors, too.
    fn is_one_of_several(&self, holder: &Holder, value: ByteSpan) -> bool {
        let is_of_each = self.code.text[value.end..].trim_start().starts_with("for ");
        let (n_entries, _) = holder.entries();
        value != self.value
            && !is_of_each
            && n_entries > 0
            && holder.traits.n_tensors >= 2 * n_entries
    }

    /// These statements with that in the place of values.
    fn with(
        &self,
        mut values: Vec<ByteSpan>,
        text: &str,
        span: ByteSpan,
        reason: FixReason,
    ) -> Fix {
        values.sort_unstable_by_key(|it| it.start);
        let mut after = String::new();
        let mut start = span.start;
        for value in values {
            let end = value.start;
            after.push_str(self.code.of_span(ByteSpan { start, end }));
            after.push_str(text);
            start = value.end;
        }
        after.push_str(self.code.of_span(ByteSpan { start, ..span }));
        Fix {
            before: Some(self.code.of_span(span).to_owned()),
            after,
            reason,
            elsewhere: false,
        }
    }

    /// Where what is to be changed stands in the value. `below` is its path from the collection on:
    /// `[3][1].grad_fn` of the second in each tuple. Behind it comes nothing, or what it `goes_on` with.
    fn value_at(&self, below: &str, goes_on: &[&str]) -> Option<ByteSpan> {
        let n_steps = match self.how {
            How::Appended | How::Added | How::Stored => self.code.n_brackets(self.target) + 1,
            How::Bound => usize::from(below.starts_with('[')),
        };
        let mut rest = below;
        for _ in 0..n_steps {
            // Of a set nobody can say which it is.
            rest = subscript(rest).map_or(rest, |(_, rest)| rest);
        }
        let mut value = self.value;
        if let Some((argument, after)) = handed(self.code, value, rest) {
            (value, rest) = (argument, after);
        }
        while let Some((key, after)) = subscript(rest) {
            value = part(self.code, value, key)?;
            rest = after;
        }
        let rest = rest.strip_prefix(".<element>").unwrap_or(rest);
        let is_it = rest.is_empty() || goes_on.iter().any(|it| rest.starts_with(it));
        (is_it && !is_literal(self.code, value)).then_some(value)
    }
}

/// One value, and one that is kept as it is: no several arguments, no keyword, no generator.
fn is_one(code: &Code<'_>, value: ByteSpan) -> bool {
    let Some(plain) = code.outside(value) else {
        return false;
    };
    let text = code.of_span(value);
    let is_kept_whole = !text.starts_with('*')
        && split_words(&plain).all(|word| !["yield", "lambda", "for", "async"].contains(&word));
    is_kept_whole && !plain.contains([',', '=', ';', ':'])
}

/// A list, a tuple or a dict that is written there: it has no `.detach()`.
fn is_literal(code: &Code<'_>, value: ByteSpan) -> bool {
    let is_whole = code.closing(value.start) == value.end.checked_sub(1);
    let inside = ByteSpan {
        start: value.start + 1,
        end: value.end.saturating_sub(1),
    };
    let opening = code.code(value.start).filter(|_| is_whole);
    match opening {
        Some(b'(') => code.split(inside, b',').len() > 1,
        opening => opening.is_some_and(|it| b"[{".contains(&it)),
    }
}

/// The key of a path that begins with one, as Python writes it, and what follows: `1` and `.grad_fn`
/// of `[1].grad_fn`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let code = Code::new(path);
    path.starts_with('[').then_some(())?;
    let end = code.closing(0)?;
    Some((&path[1..end], &path[end + 1..]))
}

/// What is handed to `partial(f, …)`, by a path that goes on with `.args[0]`, and the rest of that path.
fn handed<'p>(code: &Code<'_>, value: ByteSpan, path: &'p str) -> Option<(ByteSpan, &'p str)> {
    let (idx, rest) = subscript(path.strip_prefix(".args")?)?;
    let text = code.of_span(value);
    let opening = text.find('(')?;
    let is_partial = ["partial", "functools.partial"].contains(&&text[..opening]);
    let is_whole = code.closing(value.start + opening)? == value.end - 1;
    let inside = ByteSpan {
        start: value.start + opening + 1,
        end: value.end - 1,
    };
    let arguments = code.split(inside, b',');
    // The first is the function.
    let argument = arguments.get(idx.parse::<usize>().ok()? + 1)?;
    (is_partial && is_whole).then_some((*argument, rest))
}

/// What stands at an index of a tuple or a list that is written there, or at a key of a dict; of a comprehension what
/// each of them is made of.
fn part(code: &Code<'_>, value: ByteSpan, key: &str) -> Option<ByteSpan> {
    if let Some(each) = each_value(code, value) {
        return Some(each);
    }
    let is_whole = code.closing(value.start)? == value.end - 1;
    let inside = ByteSpan {
        start: value.start + 1,
        end: value.end - 1,
    };
    let parts = code.split(inside, b',');
    let opening = code.code(value.start)?;
    let is_starred = |part: &ByteSpan| code.of_span(*part).starts_with('*');
    let is_sequence = opening == b'[' || (opening == b'(' && parts.len() > 1);
    if !is_whole || parts.iter().any(is_starred) {
        return None;
    }
    if is_sequence {
        return parts.get(key.parse::<usize>().ok()?).copied();
    }
    let mut items = parts.iter().filter(|_| opening == b'{');
    items.find_map(|item| match *code.split(*item, b':') {
        [its_key, value] => (bare(code.of_span(its_key)) == bare(key)).then_some(value),
        _ => None,
    })
}

/// A key without its quotation marks.
fn bare(key: &str) -> &str {
    key.trim_matches(['\'', '"'])
}

/// The value that is added to the same: `x` of `total + x`.
fn added(code: &Code<'_>, value: ByteSpan, target: &str) -> Option<ByteSpan> {
    let rest = code.of_span(value).strip_prefix(target)?.trim_start();
    let rest = rest.strip_prefix('+')?;
    let added = code.trimmed(ByteSpan {
        start: value.end - rest.len(),
        ..value
    })?;
    let plain = code.outside(added)?;
    let is_whole = !plain.contains(['<', '>', '!', '&', '|', '^'])
        && split_words(&plain).all(|word| !LOOSER.contains(&word));
    is_whole.then_some(added)
}

/// What each value of a list's or a dict's comprehension is: `f(x)` of `[f(x) for x in y]` and `{x: f(x) for x in y}`.
fn each_value(code: &Code<'_>, value: ByteSpan) -> Option<ByteSpan> {
    let opening = code.code(value.start)?;
    let is_whole = code.closing(value.start) == Some(value.end - 1);
    let inside = ByteSpan {
        start: value.start + 1,
        end: value.end - 1,
    };
    let depth = code.depth(value.start) + 1;
    let mut words = code.find_word(inside, "for");
    let end = words.find(|at| code.depth(*at) == depth && is_whole)?;
    let item = code.trimmed(ByteSpan { end, ..inside })?;
    let each = match (opening, &*code.split(item, b':')) {
        (b'[', _) => item,
        (b'{', [_, value]) => *value,
        _ => return None,
    };
    (!code.of_span(each).ends_with(" async")).then_some(each)
}

/// The name that begins there; empty where none does.
fn name_at(code: &Code<'_>, start: usize) -> ByteSpan {
    let is_end = |at: &usize| !code.code(*at).is_some_and(is_of_name);
    let end = (start..code.len()).find(is_end).unwrap_or(code.len());
    ByteSpan { start, end }
}
