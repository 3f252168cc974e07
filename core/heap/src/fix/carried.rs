//! What a statement makes anew of itself: joined to more (`past = torch.cat([past, new])`), or handed on from step
//! to step (`out, h = rnn(x, h)`).

use super::reads::Reads;
use super::statement::{ByteSpan, Code, is_of_name};
use super::{Fix, FixReason, in_first};
use gpumem_model::source_text::is_name_letter;

/// Functions that join what they are handed, in torch, `NumPy`, JAX, TensorFlow and pandas.
const JOINS: [&str; 12] = [
    "append",
    "c_",
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "pad",
    "r_",
    "stack",
    "vstack",
];

/// Whether a text makes what has this name anew of what it was and more, at once or by another name.
pub(super) fn is_extended(word: &str, source: &str) -> bool {
    let code = Code::new(source);
    let mut joined: Vec<&str> = Vec::new();
    for (targets, value) in bindings(&code) {
        let is_joined = |name: &&str| {
            find(&code, value, name)
                .any(|at| is_in_join(&code, value, at) && !joins_its_items(&code, at, name))
        };
        let passes_on = joined
            .iter()
            .any(|name| code.of_span(value).trim() == *name);
        if passes_on || joined.iter().chain([&word]).any(is_joined) {
            let targets = code.split(targets, b',').into_iter();
            joined.extend(targets.filter_map(|it| bound_name(&code, it)));
        }
    }
    joined.contains(&word)
}

/// The statement that first binds a variable or an attribute, as it can be run again: `past = None`.
pub(super) fn begins(collection: &str, source: &str) -> Option<String> {
    let code = Code::new(source);
    let word = collection.rsplit('.').next()?;
    let attribute = collection
        .split_once('.')
        .map(|(_, it)| format!("self.{it}"));
    bindings(&code).into_iter().find_map(|(targets, value)| {
        let (target, text) = (code.of_span(targets), code.of_span(value));
        let is_own = target == collection && find(&code, value, word).next().is_none();
        let is_empty = text == "None" && attribute.as_deref() == Some(target);
        (is_own || is_empty).then(|| format!("{collection} = {text}"))
    })
}

/// The state that each step is handed and whose graph leads back through all steps before, without that graph:
/// `out, h = rnn(x, h.detach())`. What `word` names is this state, or comes from it.
pub(super) fn fix(word: &str, sources: &[&str]) -> Option<Fix> {
    in_first(sources, FixReason::StateDetached, |source| {
        let code = Code::new(source);
        let bindings = bindings(&code);
        let state_of = |(targets, value): &(ByteSpan, ByteSpan)| {
            let mut names = code.split(*targets, b',').into_iter();
            let handed = |name: &str| handed(&code, *value, name);
            let state =
                names.find_map(|it| Some(code.of_span(it)).filter(|it| handed(it).is_some()));
            Some((state?, *targets, *value))
        };
        let mut states = bindings.iter().filter_map(state_of);
        let (state, targets, value) = states.next().filter(|_| states.next().is_none())?;
        let comes_from_it = of_state(&code, &bindings, (state, targets)).contains(&word);
        let statement = ByteSpan {
            start: targets.start,
            end: value.end,
        };
        let is_carried = || is_carried(&code, &bindings, statement, state);
        let goes_back = || Reads::find(state, code.of_span(statement), sources).graph;
        if !comes_from_it || !is_carried() || goes_back() {
            return None;
        }
        let at = handed(&code, value, state)?;
        let none = format!("{state} = None");
        let detached = if sources.iter().any(|it| it.contains("LSTM")) {
            format!("tuple(it.detach() for it in {state})")
        } else {
            format!("{state}.detach()")
        };
        let detached = if sources.iter().any(|it| it.contains(&none)) {
            format!("{state} if {state} is None else {detached}")
        } else {
            detached
        };
        let (before, after) = (&code.text[statement.start..at], at + state.len());
        Some((
            code.of_span(statement).to_owned(),
            format!("{before}{detached}{}", &code.text[after..statement.end]),
        ))
    })
}

/// Nothing else in the loop around the statement binds the state, and no function is handed it.
fn is_carried(
    code: &Code<'_>,
    bindings: &[(ByteSpan, ByteSpan)],
    statement: ByteSpan,
    state: &str,
) -> bool {
    let indent = |at: usize| {
        let line = code.text[..at].rfind('\n').map_or(0, |it| it + 1);
        code.text[line..]
            .bytes()
            .take_while(u8::is_ascii_whitespace)
            .count()
    };
    let mut others = bindings
        .iter()
        .filter(|(targets, _)| targets.start != statement.start);
    let is_reset = others.any(|(targets, _)| {
        let is_inside = indent(targets.start) >= indent(statement.start);
        is_inside && code.find_word(*targets, state).next().is_some()
    });
    let mut heads = code.statements_of_blocks().into_iter();
    let is_parameter = heads.any(|head| {
        let text = code.of_span(head);
        let is_function = text.starts_with("def ") || text.starts_with("async def ");
        is_function && code.find_word(head, state).next().is_some()
    });
    !is_reset && !is_parameter
}

/// Where a call is handed the name as it is, by its place or by a keyword.
fn handed(code: &Code<'_>, value: ByteSpan, name: &str) -> Option<usize> {
    let is_path = name.bytes().all(|it| is_of_name(it) || it == b'.');
    let mut found = code.find_word(value, name).filter(|_| is_path);
    found.find(|at| {
        let before = code.text[value.start..*at].trim_end();
        let after = code.text[at + name.len()..value.end].trim_start();
        let is_whole = before.ends_with(['(', ',', '=']) && after.starts_with([',', ')']);
        is_whole && code.depth(*at) > code.depth(value.start) && !is_in_join(code, value, *at)
    })
}

/// The state, what is bound with it, and what comes from these.
fn of_state<'a>(
    code: &Code<'a>,
    bindings: &[(ByteSpan, ByteSpan)],
    (state, targets): (&'a str, ByteSpan),
) -> Vec<&'a str> {
    let names = |targets: ByteSpan| {
        let targets = code.split(targets, b',').into_iter();
        targets
            .filter_map(|it| bound_name(code, it))
            .collect::<Vec<_>>()
    };
    let mut known = names(targets);
    known.push(state);
    for (targets, value) in bindings {
        if known
            .iter()
            .any(|it| find(code, *value, it).next().is_some())
        {
            known.extend(names(*targets));
        }
    }
    known
}

/// What stands left and right of each statement's `=`.
fn bindings(code: &Code<'_>) -> Vec<(ByteSpan, ByteSpan)> {
    let is_plain = |(targets, value): &(ByteSpan, ByteSpan)| targets.start != value.start;
    assignments(code).into_iter().filter(is_plain).collect()
}

/// The same, and of `n += 1` what stands left of the `+`, and all of it.
pub(super) fn assignments(code: &Code<'_>) -> Vec<(ByteSpan, ByteSpan)> {
    let statements = code.statements_of_blocks().into_iter();
    let parts = statements.filter_map(|statement| {
        let at = (statement.start..statement.end).find(|at| {
            code.code(*at) == Some(b'=') && code.depth(*at) == code.depth(statement.start)
        })?;
        let before = ByteSpan {
            end: at,
            ..statement
        };
        let text = code.of_span(before);
        if code.code(at + 1) == Some(b'=') || text.ends_with(['=', '!', '<', '>', ':']) {
            return None;
        }
        let target = text.trim_end_matches(|c: char| "+-*/%&|^@".contains(c));
        let is_augmented = target.len() < text.len();
        let targets = code.trimmed(ByteSpan {
            end: statement.start + target.len(),
            ..statement
        })?;
        let value = code.trimmed(ByteSpan {
            start: if is_augmented {
                statement.start
            } else {
                at + 1
            },
            ..statement
        })?;
        Some((targets, value))
    });
    parts.collect()
}

/// The variable or the attribute that a target binds or stores into: `k` of `self.k` and `k["a"]`.
pub(super) fn bound_name<'a>(code: &Code<'a>, target: ByteSpan) -> Option<&'a str> {
    let path = code.of_span(target).split(['[', ':']).next()?.trim();
    let name = path.rsplit('.').next()?;
    (!name.is_empty() && name.bytes().all(is_of_name)).then_some(name)
}

/// Where a variable or an attribute of this name stands.
pub(super) fn find(code: &Code<'_>, span: ByteSpan, name: &str) -> impl Iterator<Item = usize> {
    let is_name = |at: usize| code.code(at).is_some_and(is_of_name);
    let found = code.of_span(span).match_indices(name);
    found.filter_map(move |(offset, _)| {
        let at = span.start + offset;
        let goes_on = at > 0 && is_name(at - 1) || is_name(at + name.len());
        (!goes_on && code.code(at).is_some()).then_some(at)
    })
}

/// Whether it is in the brackets of a call that joins.
pub(super) fn is_in_join(code: &Code<'_>, span: ByteSpan, place: usize) -> bool {
    is_in_call(code, span, place, &JOINS)
}

/// Whether it is in the brackets of a call of one of these functions.
pub(super) fn is_in_call(code: &Code<'_>, span: ByteSpan, place: usize, of: &[&str]) -> bool {
    let opens = |at: &usize| code.code(*at).is_some_and(|it| b"([".contains(&it));
    (span.start..place).filter(opens).any(|at| {
        let called = code.text[..at].trim_end();
        let start = called
            .bytes()
            .rposition(|it| !is_of_name(it))
            .map_or(0, |it| it + 1);
        of.contains(&&called[start..]) && code.closing(at).is_some_and(|end| place < end)
    })
}

/// The call joins what is in it, and nothing with it: `kept = torch.cat(kept)`.
fn joins_its_items(code: &Code<'_>, at: usize, name: &str) -> bool {
    let is_alone = code.text[at + name.len()..]
        .trim_start()
        .starts_with([',', ')']);
    let called = code.text[..at].trim_end().strip_suffix('(');
    let function = called.and_then(|it| it.rsplit(|c: char| !is_name_letter(c)).next());
    let joins_items = |it: &str| JOINS.contains(&it) && !["append", "pad"].contains(&it);
    is_alone && function.is_some_and(joins_items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_joined_to_itself_is_extended() {
        let check = |word: &str, source: &str, expected: bool| {
            assert_eq!(is_extended(word, source), expected, "{source}");
        };
        check("past", "past = torch.cat([past, new], dim=1)", true);
        check(
            "k",
            "self.k = k if self.k is None else torch.cat((self.k, k))",
            true,
        );
        check(
            "k",
            "self.k, self.v = cat([self.k, k]), cat([self.v, v])",
            true,
        );
        check(
            "cache",
            "k = torch.cat([cache['k'], k])\ncache['k'] = k",
            true,
        );
        check("frame", "frame = pd.concat([frame, read()])", true);
        check("rows", "rows = np.r_[rows, new]", true);
        check("past", "new = torch.cat([a, b])\npast = new", false);
        check("past", "past = np.append(past, new)", true);
        check("past", "past = torch.cat((past, new))", true);
        check("past", "past = norm(torch.cat(past), dim=-1)", false);
        check("past", "past = np.stack(past, 0)", false);
        check("past", "past = torch.cat([norm(past), new])", true);
        check("past", "past = f(past)", false);
        check("past", "x = torch.cat([past, new])", false);
        check("past", "past += torch.cat([past, new])", false);
        check("past", "past = torch.cat([pasta, 'past'])", false);
        check("images", "images = all_images[:n].copy()", false);
    }

    #[test]
    fn a_state_is_handed_on_without_its_graph() {
        let check = |word: &str, sources: &[&str], expected: Option<&str>| {
            let fix = fix(word, sources);
            let after = fix.as_ref().map(|it| &*it.after);
            assert_eq!(after, expected, "{sources:?}");
        };
        let steps = "for x in xs:\n    h = cell(x, h)\n    loss = head(h).mean()";
        check("h", &[steps], Some("h = cell(x, h.detach())"));
        check(
            "loss",
            &["loss.item()", steps],
            Some("h = cell(x, h.detach())"),
        );
        check("other", &[steps], None);
        let lstm = "rnn = nn.LSTM(8, 8)\nh = None";
        let detached = "out, h = rnn(x, h if h is None else tuple(it.detach() for it in h))";
        check("out", &["out, h = rnn(x, h)", lstm], Some(detached));
        check(
            "h",
            &["h = step(x, state=h)"],
            Some("h = step(x, state=h.detach())"),
        );
        check("h", &["h = h + step(x)"], None);
        check("h", &["h = torch.cat([h, x])"], None);
        check("h", &["h = step(h[0])"], None);
        // Not from step to step.
        check(
            "out",
            &["for x in xs:\n    out = f(x)\n    out = g(out)"],
            None,
        );
        check(
            "x",
            &["def f(self, x):\n    for g in gs:\n        x = g(x)"],
            None,
        );
        let begins = "h = None\nfor x in xs:\n    out, h = rnn(x, h)";
        let detached = "out, h = rnn(x, h if h is None else h.detach())";
        check("out", &[begins], Some(detached));
        // The next cell goes back through all steps.
        check("h", &[steps, "h.sum().backward()"], None);
    }

    #[test]
    fn it_begins_where_it_is_bound_without_itself() {
        let check = |name: &str, source: &str, expected: Option<&str>| {
            assert_eq!(begins(name, source).as_deref(), expected, "{source}");
        };
        check(
            "past",
            "x = 1; past = torch.zeros(0, 8)",
            Some("past = torch.zeros(0, 8)"),
        );
        check("past", "past = torch.cat([past, new])", None);
        check(
            "layer.k",
            "def __init__(self):\n    self.k = None",
            Some("layer.k = None"),
        );
        check("layer.k", "def f(self, k):\n    self.k = k", None);
    }
}
