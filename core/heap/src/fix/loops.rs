//! The loop in which code adds to a collection: that around the statement, or around the call of its function.

use super::collected::Collected;
use super::statement::Code;
use super::{bounded, collection};
use gpumem_model::holders::Holder;

/// A function may be called by another one, that by a third, and no further.
const MOST_CALLS: usize = 3;

/// What stands around a statement.
enum Around {
    /// A loop, by the line of its header, from 1 on.
    Loop(u32),
    /// A function, by its name.
    Function(String),
}

/// Which of the texts has the loop that fills the holder, and the line of its header, from 1 on.
pub fn filling_loop(holder: &Holder, sources: &[&str]) -> Option<(usize, u32)> {
    let (collection, below) = collection(holder);
    let codes = sources.iter().map(|source| Code::of(bounded(source)));
    let codes: Vec<Code<'_>> = codes.collect();
    let (mut idx, mut at) = codes.iter().enumerate().find_map(|(idx, code)| {
        let found = Collected::find(code, collection, below)?;
        Some((idx, found.statement().start))
    })?;
    for _ in 0..=MOST_CALLS {
        let name = match around(&codes[idx], at)? {
            Around::Loop(line) => return Some((idx, line)),
            Around::Function(name) => name,
        };
        (idx, at) = codes.iter().enumerate().find_map(|(idx, code)| {
            let call = format!("{name}(");
            let mut calls = code.text.match_indices(&call).map(|(at, _)| at);
            Some((idx, calls.find(|at| is_call(code, *at))?))
        })?;
    }
    None
}

/// No definition, and not the end of a longer name.
fn is_call(code: &Code<'_>, at: usize) -> bool {
    let before = &code.text[..at];
    let is_name = before.ends_with(gpumem_model::source_text::is_name_letter);
    code.code(at).is_some() && !is_name && !before.trim_end().ends_with("def")
}

/// By the lines above that stand further left, or by the head of its own line.
fn around(code: &Code<'_>, at: usize) -> Option<Around> {
    let starts = code.text[..at].match_indices('\n').map(|(at, _)| at + 1);
    let lines = std::iter::once(0).chain(starts).zip(1_u32..);
    let mut above: Vec<(usize, u32)> = lines.collect();
    let own = above.pop()?;
    let text = |start: usize| code.text[start..].lines().next().unwrap_or_default();
    let indent = |start: usize| text(start).len() - text(start).trim_start().len();
    let opens = |(start, line): (usize, u32)| {
        let head = text(start).trim_start();
        let head = head.strip_prefix("async ").unwrap_or(head);
        if head.starts_with("for ") || head.starts_with("while ") {
            return Some(Around::Loop(line));
        }
        let name = head.strip_prefix("def ")?.split('(').next()?;
        Some(Around::Function(name.trim().to_owned()))
    };
    let mut inside = indent(own.0);
    if own.0 + inside < at
        && let Some(found) = opens(own)
    {
        return Some(found);
    }
    for (start, line) in above.into_iter().rev() {
        let place = start + indent(start);
        let is_head = code.depth(start) == 0 && code.code(place).is_some_and(|it| it != b'\n');
        if is_head && indent(start) < inside {
            inside = indent(start);
            if let Some(found) = opens((start, line)) {
                return Some(found);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::holders::RootKind;
    use gpumem_model::units::Bytes;

    #[track_caller]
    fn check(path: &str, sources: &[&str], expected: Option<(usize, u32)>) {
        let holder = Holder {
            path: path.to_owned(),
            ..Holder::new(RootKind::Variable, "kept", Bytes::mib(1))
        };
        assert_eq!(filling_loop(&holder, sources), expected, "{sources:?}");
    }

    #[test]
    fn the_loop_around_the_statement_or_the_call_is_found() {
        let adds = "x = 1\nfor y in f():\n    if y:\n        z = (1,\n2)\n        kept.append(y)";
        check("kept[3].grad_fn", &[adds], Some((0, 2)));
        check("kept[3]", &["while f(): kept.append(1)"], Some((0, 1)));
        check(
            "kept[3]",
            &["for y in f():\n    g(y)\nkept.append(1)"],
            None,
        );
        check("kept[3]", &["kept.append(1)"], None);
        let meter = "class Meter:\n    def add(self, x):\n        self.values.append(x)";
        let call = "for x in xs:\n    meter.add(f(x))";
        check("meter.values[3]", &[call, meter], Some((0, 1)));
        check("meter.values[3]", &["meter.add(1)", meter], None);
        let step =
            "def step(x):\n    kept.append(x)\ndef epoch():\n    for x in xs:\n        step(x)";
        check("kept[3]", &["epoch()", step], Some((1, 4)));
        // Of itself, without an end.
        check(
            "kept[3]",
            &["def f(x):\n    kept.append(x)\n    f(x)"],
            None,
        );
    }
}
