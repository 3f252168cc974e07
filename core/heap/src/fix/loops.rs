//! The loop in which code adds to a collection: that around the statement, or around the call of its function.
//! Where no text calls the function, a library does (a hook, `forward`), in a loop of the run's own text.

use super::collected::Collected;
use super::statement::Code;
use super::{bounded, collection};
use gpumem_model::holders::Holder;

/// A function may be called by another one, that by a third, and no further.
const MOST_CALLS: usize = 3;

/// What stands around a statement.
enum EnclosingBlock {
    /// A loop, by the line of its header, from 1 on.
    Loop(u32),
    /// A function, by its name.
    Function(String),
}

/// A loop that fills a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillingLoop {
    /// Which of the texts has it.
    pub source: usize,
    /// The line of its header, from 1 on.
    pub line: u32,
    /// The function that adds is called by a library.
    pub by_library: bool,
}

/// The loop that fills the holder. The first of the texts is that of the run.
pub fn filling_loop(holder: &Holder, sources: &[&str]) -> Option<FillingLoop> {
    let (collection, below) = collection(holder);
    let codes = sources.iter().map(|source| Code::new(bounded(source)));
    let codes: Vec<Code<'_>> = codes.collect();
    let (mut source, mut at) = codes.iter().enumerate().find_map(|(source, code)| {
        let found = Collected::find(code, collection, below)?;
        Some((source, found.statement().start))
    })?;
    for _ in 0..=MOST_CALLS {
        let name = match around(&codes[source], at)? {
            EnclosingBlock::Loop(line) => {
                return Some(FillingLoop {
                    source,
                    line,
                    by_library: false,
                });
            }
            // What makes an object sets it up.
            EnclosingBlock::Function(name) if name == "__init__" => return None,
            EnclosingBlock::Function(name) => name,
        };
        let called = codes.iter().enumerate().find_map(|(source, code)| {
            let call = format!("{name}(");
            let mut calls = code.text.match_indices(&call).map(|(at, _)| at);
            Some((source, calls.find(|at| is_call(code, *at))?))
        });
        let Some(called) = called else {
            return innermost(codes.first()?).map(|line| FillingLoop {
                source: 0,
                line,
                by_library: true,
            });
        };
        (source, at) = called;
    }
    None
}

/// The last of the loops that stand furthest to the right, by the line of its header.
fn innermost(code: &Code<'_>) -> Option<u32> {
    let starts = code.text.match_indices('\n').map(|(at, _)| at + 1);
    let lines = std::iter::once(0).chain(starts).zip(1_u32..);
    let loops = lines.filter_map(|(start, line)| {
        let indent = indent(code, start);
        let is_code = code.depth(start) == 0 && code.code(start + indent).is_some();
        let opens = opens(code, start, line).filter(|_| is_code)?;
        matches!(opens, EnclosingBlock::Loop(_)).then_some((indent, line))
    });
    loops.max().map(|(_, line)| line)
}

/// No definition, and not the end of a longer name.
fn is_call(code: &Code<'_>, at: usize) -> bool {
    let before = &code.text[..at];
    let is_name = before.ends_with(gpumem_model::source_text::is_name_letter);
    code.code(at).is_some() && !is_name && !before.trim_end().ends_with("def")
}

/// By the lines above that stand further left, or by the head of its own line.
fn around(code: &Code<'_>, at: usize) -> Option<EnclosingBlock> {
    let starts = code.text[..at].match_indices('\n').map(|(at, _)| at + 1);
    let lines = std::iter::once(0).chain(starts).zip(1_u32..);
    let mut above: Vec<(usize, u32)> = lines.collect();
    let own = above.pop()?;
    let mut inside = indent(code, own.0);
    if own.0 + inside < at
        && let Some(found) = opens(code, own.0, own.1)
    {
        return Some(found);
    }
    for (start, line) in above.into_iter().rev() {
        let indent = indent(code, start);
        let place = start + indent;
        let is_head = code.depth(start) == 0 && code.code(place).is_some_and(|it| it != b'\n');
        if is_head && indent < inside {
            inside = indent;
            if let Some(found) = opens(code, start, line) {
                return Some(found);
            }
        }
    }
    None
}

fn line_at<'a>(code: &Code<'a>, start: usize) -> &'a str {
    code.text[start..].lines().next().unwrap_or_default()
}

fn indent(code: &Code<'_>, start: usize) -> usize {
    let text = line_at(code, start);
    text.len() - text.trim_start().len()
}

/// What the line that starts there is the head of.
fn opens(code: &Code<'_>, start: usize, line: u32) -> Option<EnclosingBlock> {
    let head = line_at(code, start).trim_start();
    let head = head.strip_prefix("async ").unwrap_or(head);
    if head.starts_with("for ") || head.starts_with("while ") {
        return Some(EnclosingBlock::Loop(line));
    }
    let name = head.strip_prefix("def ")?.split('(').next()?;
    Some(EnclosingBlock::Function(name.trim().to_owned()))
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
        let found = filling_loop(&holder, sources);
        assert_eq!(
            found.map(|it| (it.source, it.line)),
            expected,
            "{sources:?}"
        );
        let by_library = found.is_some_and(|it| it.by_library);
        assert_eq!(by_library, path.starts_with("hooked"), "{sources:?}");
    }

    #[test]
    fn a_hook_is_called_in_the_innermost_loop_of_the_run() {
        let hook = "def keep(module, args, output):\n    hooked.append(output)\nnet.register(keep)";
        let epochs = "for epoch in epochs:\n    for x in xs:\n        net(x)\nprint('for x in y')";
        check("hooked[3]", &[epochs, hook], Some((0, 2)));
        check(
            "kept[3]",
            &["net(x)", &hook.replace("hooked", "kept")],
            None,
        );
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
