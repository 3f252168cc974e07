//! What is made anew each time without what it was: `out = net(batch)`.

use super::carried::{assignments, bound_name, find, is_in_call, is_in_join};
use super::statement::{ByteSpan, Code, is_of_name};
use gpumem_model::source_text::has_word;

/// What these return has no graph.
const WITHOUT_GRAPH: [&str; 6] = ["argmax", "detach", "item", "multinomial", "numpy", "tolist"];

/// A longer text is not followed.
const MAX_ASSIGNED: usize = 300;

/// Whether a text binds a variable anew each time, and never from its old value or from a state that is carried on:
/// then its graph is that of the last time.
pub(super) fn is_replaced(word: &str, source: &str) -> bool {
    let code = Code::new(source);
    let uses = |value: ByteSpan, name: &str| {
        let mut found = find(&code, value, name);
        found.any(|at| !is_cut(&code, value, at, name))
    };
    let mut assigned: Vec<(&str, ByteSpan)> = Vec::new();
    for (targets, value) in assignments(&code) {
        if !is_understood(&code, targets, value) {
            return false;
        }
        let targets = code.split(targets, b',').into_iter();
        let names = targets.filter_map(|it| bound_name(&code, it));
        assigned.extend(names.map(|name| (name, value)));
    }
    let is_bound = assigned.iter().any(|(name, _)| *name == word);
    if !is_bound || assigned.len() > MAX_ASSIGNED || is_changed(&code, word) {
        return false;
    }
    let values_of = |of: &str| -> Vec<ByteSpan> {
        let own = assigned.iter().filter(|(name, _)| *name == of);
        own.map(|(_, value)| *value).collect()
    };
    // A loop hands over a new one each time. What is joined to itself is there, and would have the graph, too.
    let is_carried = |name: &str| {
        let is_joined = |it: &ByteSpan| find(&code, *it, name).any(|at| is_in_join(&code, *it, at));
        let is_own = |it: &ByteSpan| uses(*it, name) && !is_joined(it);
        values_of(name).iter().any(is_own) && !is_loop_target(&code, name)
    };
    let mut origins = vec![word];
    let mut n_followed = 0;
    while let Some(name) = origins.get(n_followed).copied() {
        n_followed += 1;
        let values = values_of(name);
        for (other, _) in &assigned {
            let is_new = *other == word || !origins.contains(other);
            if !is_new || !values.iter().any(|it| uses(*it, other)) {
                continue;
            }
            if *other == word || is_carried(other) {
                return false;
            }
            origins.push(other);
        }
    }
    true
}

/// Not `a = b = f(b)`, `(a, b) = f(b)` or a walrus.
fn is_understood(code: &Code<'_>, targets: ByteSpan, value: ByteSpan) -> bool {
    let depth = code.depth(value.start);
    let is_sign = |at: usize| code.code(at) == Some(b'=');
    let assigns = |at: usize| {
        let before = at.checked_sub(1).and_then(|it| code.code(it));
        let is_compared = is_sign(at + 1) || before.is_some_and(|it| b"=!<>".contains(&it));
        let is_walrus = before == Some(b':');
        is_sign(at) && !is_compared && (is_walrus || code.depth(at) == depth)
    };
    let is_augmented = targets.start == value.start;
    let is_bracket = code.of_span(targets).starts_with(['(', '[', '*']);
    is_augmented || !is_bracket && !(value.start..value.end).any(assigns)
}

/// What is made of the name there has no graph: `x.detach()`, `out.logits[0].argmax()`, `multinomial(f(x))`.
fn is_cut(code: &Code<'_>, value: ByteSpan, at: usize, name: &str) -> bool {
    let mut end = at + name.len();
    while end < value.end {
        match code.code(end) {
            Some(b'.') => {
                let rest = &code.text[end + 1..value.end];
                let n = rest.bytes().take_while(|it| is_of_name(*it)).count();
                if WITHOUT_GRAPH.contains(&&rest[..n]) {
                    return true;
                }
                end += 1 + n;
            }
            Some(b'(' | b'[') => match code.closing(end) {
                Some(closing) => end = closing + 1,
                None => break,
            },
            _ => break,
        }
    }
    is_in_call(code, value, at, &WITHOUT_GRAPH)
}

/// A statement calls it or assigns a part of it, and may change it.
fn is_changed(code: &Code<'_>, word: &str) -> bool {
    let is_of_it = |statement: &str| {
        let rest = statement.strip_prefix(word);
        rest.is_some_and(|rest| rest.starts_with(['.', '[']) && !rest.starts_with(".backward("))
    };
    let mut statements = code.statements_of_blocks().into_iter();
    statements.any(|it| is_of_it(code.of_span(it)))
}

/// A loop binds it.
fn is_loop_target(code: &Code<'_>, name: &str) -> bool {
    let mut heads = code.statements_of_blocks().into_iter();
    heads.any(|head| {
        let target = code
            .of_span(head)
            .strip_prefix("for ")
            .and_then(|it| it.split_once(" in "));
        target.is_some_and(|(target, _)| has_word(target, name))
    })
}

#[cfg(test)]
mod tests {
    use super::is_replaced;

    #[track_caller]
    fn check(expected: bool, text: &str) {
        assert_eq!(is_replaced("out", text), expected, "{text}");
    }

    #[test]
    fn the_output_of_the_last_batch_is_replaced() {
        check(true, "for x in xs:\n    out = net(x)");
        check(
            true,
            "for x in xs:\n    x = x.to(device)\n    h = f(x)\n    out = g(h)",
        );
        check(
            true,
            "for x in xs:\n    out = net(x)\n    loss = out.mean()\n    out.backward()",
        );
        check(
            true,
            "for _ in range(9):\n    out = net(ids)\n    ids = torch.cat([ids, out.argmax()])",
        );
        check(
            true,
            "for _ in range(9):\n    out = net(ids)\n    ids = net.step(out.logits[0].argmax(-1))",
        );
        check(
            true,
            "for _ in range(9):\n    out = net(ids)\n    ids = torch.multinomial(f(out), 1)",
        );
        check(true, "for x in xs:\n    out = net(x, last=x == y)");
        check(true, "out = None\nfor x in xs: out, aux = net(x)");
    }

    #[test]
    fn what_leads_back_is_no_replacement() {
        check(false, "for x in xs:\n    out = cell(x, out)");
        check(false, "for x in xs:\n    out += f(x)");
        check(
            false,
            "out = 0\nfor x in xs:\n    out = out + f(x) / n.item()",
        );
        check(false, "for x in xs:\n    out, h = rnn(x, h)\ndel h");
        check(false, "for x in xs:\n    new = f(x, out)\n    out = new");
        check(
            false,
            "for x in xs:\n    total += f(x)\n    out = total / n",
        );
        check(
            false,
            "out = torch.zeros(())\nfor x in xs:\n    out.add_(f(x))",
        );
        check(
            false,
            "out = torch.zeros(9)\nfor i in range(9):\n    out[i] = f(i)",
        );
        check(false, "for x in xs:\n    out = torch.cat([out, f(x)])");
        check(false, "for out in stream():\n    pass");
        check(
            false,
            "out = 0\nfor x in xs:\n    last = out = cell(x, out)",
        );
        check(false, "out = 0\nfor x in xs:\n    (out, y) = cell(x, out)");
        check(
            false,
            "out = 0\nfor x in xs:\n    y = f(out := cell(x, out))",
        );
        check(false, "train()");
    }
}
