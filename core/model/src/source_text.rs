//! The source of a cell: what identifies it, and what names it in a report.
//!
//! ```
//! use gpumem_model::source_text::hash;
//!
//! assert_eq!(hash("%%gpumem\n\nx = 1  \n"), hash("x = 1"));
//! assert_ne!(hash("x = 1"), hash("x = 2"));
//! ```

use xxhash_rust::xxh3::xxh3_64;

use crate::recording::SourceHash;

/// The text whose equality makes two runs runs of the same cell: without the
/// `%%gpumem` line, trailing blanks, and blank lines at both ends.
pub(crate) fn normalised(source: &str) -> String {
    let lines: Vec<&str> = source
        .lines()
        .map(str::trim_end)
        .filter(|line| !is_gpumem_magic(line))
        .collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Hash of a cell's source, equal for two texts that count as the same cell.
///
/// The `%%gpumem` line, trailing blanks, and blank lines at both ends do not count: measuring a
/// cell or reformatting its end must not start a new series of runs.
pub fn hash(source: &str) -> SourceHash {
    SourceHash(xxh3_64(normalised(source).as_bytes()))
}

/// A line of a text by its number, from 1.
pub fn line(text: &str, number: u32) -> Option<&str> {
    text.lines().nth(number.checked_sub(1)? as usize)
}

/// Whether a letter may be part of a Python name.
///
/// Every letter beyond ASCII counts: those that may not stand in a name stand only in texts and comments.
pub fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii()
}

/// Whether a name stands anywhere in the text.
pub fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter| !is_name_letter(letter))
        .any(|it| it == word)
}

/// Whether a line of the text deletes something.
pub fn deletes(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.trim_start().starts_with("del "))
}

/// Whether a line of the text deletes a name, or sets it to `None`.
pub fn lets_go_of(text: &str, name: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| (deletes(line) || line.contains("= None")) && has_word(line, name))
}

/// Whether a line of the text that is not nested binds a name, by itself or with others: `fig, ax = plt.subplots()`.
pub fn binds(text: &str, name: &str) -> bool {
    let is_target = |it: char| is_name_letter(it) || ", ()".contains(it);
    text.lines().any(|line| {
        let (targets, value) = line.split_once('=').unwrap_or_default();
        let is_nested = line.starts_with(char::is_whitespace);
        let is_binding = !value.starts_with('=') && targets.chars().all(is_target);
        !is_nested && is_binding && has_word(targets, name) && !has_word(value, name)
    })
}

/// Whether a line of the text that is not nested binds a name to an empty collection: `rows, seen = [], set()`.
pub fn begins_empty(text: &str, name: &str) -> bool {
    const EMPTY: [&str; 5] = ["[]", "{}", "list()", "dict()", "set()"];
    text.lines().any(|line| {
        let code = line.split(" #").next().unwrap_or_default();
        let Some((targets, values)) = code.split_once('=') else {
            return false;
        };
        let mut pairs = targets.split(',').zip(values.split(','));
        let is_nested = line.starts_with(char::is_whitespace);
        let is_alike = targets.matches(',').count() == values.matches(',').count();
        let is_it =
            |(target, value): (&str, &str)| target.trim() == name && EMPTY.contains(&value.trim());
        !is_nested && is_alike && pairs.any(is_it)
    })
}

/// A text, and the functions that it may call: those of `others` whose names stand in it, or in such a function.
pub fn called<'a>(text: &'a str, others: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut left: Vec<(&str, &str)> = others.flat_map(functions).collect();
    let mut called = vec![text];
    let mut n_read = 0;
    while let Some(text) = called.get(n_read).copied() {
        n_read += 1;
        left.retain(|(name, function)| {
            let is_called = has_word(text, name);
            called.extend(is_called.then_some(*function));
            !is_called
        });
    }
    called
}

/// The functions in a text, methods too, each with its name.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let start = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let header = line.trim_start();
        let header = header.strip_prefix("async ").unwrap_or(header);
        let Some(name) = header.strip_prefix("def ") else {
            continue;
        };
        let name = name.split(|letter| !is_name_letter(letter)).next();
        let is_inside = |it: &&str| {
            let text = it.trim_start();
            text.is_empty() || text.starts_with(')') || indent(it) > indent(line)
        };
        let body = lines.clone().take_while(is_inside).last().unwrap_or(line);
        let function = &text[start(line)..start(body) + body.len()];
        found.extend(name.map(|name| (name, function)));
    }
    found
}

/// The first line that says what the cell does: not blank, no comment, no magic
/// of a whole cell; no import, decorator or bare `try:` while anything else follows.
pub fn headline(source: &str) -> Option<String> {
    let text = normalised(source);
    let says_something =
        |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("%%");
    let lines = || text.lines().map(str::trim).filter(says_something);
    let leads_in = |line: &&str| {
        let openings = ["import ", "from ", "@"];
        *line == "try:" || openings.iter().any(|opening| line.starts_with(opening))
    };
    lines()
        .find(|line| !leads_in(line))
        .or_else(|| lines().next())
        .or_else(|| text.lines().map(str::trim).find(|line| !line.is_empty()))
        .map(str::to_owned)
}

/// Calls that keep nothing.
const KEEP_NOTHING: [&str; 5] = [
    "print(",
    "time.sleep(",
    "gc.collect(",
    "torch.cuda.",
    "plt.show(",
];

/// Methods and functions that let go of what was allocated before.
const LET_GO: [&str; 6] = [
    "close",
    "clear",
    "collect",
    "empty_cache",
    "cache_clear",
    "clear_session",
];

/// A statement that cannot have allocated what its cell kept: a bare name, one that only counts, as `step += 1`, one
/// that prints, or one that closes or collects, as `plt.close(fig)`.
pub fn keeps_nothing(statement: &str) -> bool {
    let statement = without_comment(statement);
    statement.chars().all(is_name_letter)
        || KEEP_NOTHING.iter().any(|call| statement.starts_with(call))
        || only_counts(statement)
        || only_lets_go(statement)
}

/// `step += 1`.
fn only_counts(statement: &str) -> bool {
    let counted = statement.split_once("+=");
    let counted = counted.or_else(|| statement.split_once("-="));
    counted.is_some_and(|(name, value)| is_path(name.trim()) && is_constant(value.trim()))
}

/// `plt.close(fig)`, and nothing else.
fn only_lets_go(statement: &str) -> bool {
    let call = statement
        .strip_suffix(')')
        .and_then(|it| it.split_once('('));
    call.is_some_and(|(path, arguments)| {
        let name = path.rsplit('.').next().unwrap_or_default();
        is_path(path) && LET_GO.contains(&name) && !arguments.contains(')')
    })
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| is_name_letter(it) || it == '.')
}

fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim_end()
}

/// The last line that does something: of the statements that are not nested in a `def` or `class`, no
/// import, no comment, no name for an empty container or a constant, and none that [`keeps_nothing`] while there is
/// another.
pub fn telling_line(source: &str) -> Option<String> {
    let text = normalised(source);
    let lines = statements(&text);
    let does_something = |line: &&str| !is_idle(line);
    let last = || lines.iter().copied().rev().filter(does_something);
    let says = last()
        .find(|line| !keeps_nothing(line))
        .or_else(|| last().next());
    says.map(str::to_owned).or_else(|| headline(source))
}

/// The first lines of statements outside of functions and classes.
fn statements(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Open brackets, and the depth of the function or class that is being passed over.
    let (mut depth, mut defined_at) = (0_i32, None);
    for line in text.lines() {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        let is_start = depth == 0 && !words.is_empty() && !words.starts_with('#');
        if is_start && defined_at.is_some_and(|at| indent <= at) {
            defined_at = None;
        }
        if is_start && defined_at.is_none() {
            let defines = ["def ", "class ", "async def "];
            if defines.iter().any(|opening| words.starts_with(opening)) {
                defined_at = Some(indent);
            } else {
                found.push(words);
            }
        }
        for letter in words.chars() {
            depth += match letter {
                '(' | '[' | '{' => 1,
                ')' | ']' | '}' => -1,
                _ => 0,
            };
        }
        depth = depth.max(0);
    }
    found
}

/// It leads in, leads out, or makes something empty.
fn is_idle(line: &str) -> bool {
    let openings = [
        "import ", "from ", "@", "%%", "else", "try:", "except", "finally", "pass", "del ",
        "\"\"\"",
    ];
    let empty = [
        "[]", "{}", "None", "()", "\"\"", "''", "list()", "dict()", "set()",
    ];
    let value = line.split_once(" = ").map(|(_, value)| value);
    let value = value.map(|value| value.split('#').next().unwrap_or_default().trim());
    openings.iter().any(|opening| line.starts_with(opening))
        || value.is_some_and(|value| empty.contains(&value) || is_constant(value))
}

/// Numbers, what is calculated of them, or a text: `1 << 20`, `'cuda'`.
fn is_constant(value: &str) -> bool {
    let quoted = |quote: char| {
        let inner = value
            .strip_prefix(quote)
            .and_then(|it| it.strip_suffix(quote));
        inner.is_some_and(|it| !it.contains(quote))
    };
    let is_of_number = |it: u8| it.is_ascii_digit() || b"._e-+*/<> ()".contains(&it);
    let has_digit = value.bytes().any(|it| it.is_ascii_digit());
    has_digit && value.bytes().all(is_of_number) || quoted('"') || quoted('\'')
}

/// Lines of code longer than this are abridged in a sentence.
const LONGEST: usize = 44;

/// A line of code for a sentence: what a long one hands to its first call becomes `…`.
pub fn abridged(line: &str) -> String {
    let is_long = |text: &str| text.chars().count() > LONGEST;
    if !is_long(line) {
        return line.to_owned();
    }
    let call = line.find('(').filter(|start| *start > 0);
    let end = line.rfind(')').map(|end| end + 1);
    let short = match (call, end) {
        (Some(start), Some(end)) if end > start => {
            format!("{}(…){}", &line[..start], &line[end..])
        }
        _ => line.to_owned(),
    };
    if !is_long(&short) {
        return short;
    }
    let kept: String = short.chars().take(LONGEST - 1).collect();
    format!("{}…", kept.trim_end())
}

fn is_gpumem_magic(line: &str) -> bool {
    line.strip_prefix("%%gpumem")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Option<&str>) {
        assert_eq!(headline(source).as_deref(), expected);
    }

    #[test]
    fn the_headline_is_the_first_line_that_says_something() {
        check("%%gpumem\nlosses.append(1)", Some("losses.append(1)"));
        check("# warm up\n\n%%time\nmodel(x)", Some("model(x)"));
        check("import torch\nmodel = f()", Some("model = f()"));
        check("import torch\n", Some("import torch"));
        check("try:\n    step()\nfinally:\n    close()", Some("step()"));
        check("@torch.no_grad()\ndef f():\n    ...", Some("def f():"));
        check("# only a comment", Some("# only a comment"));
        check("%%gpumem\n", None);
    }

    #[test]
    fn a_name_is_bound_by_itself_or_with_others() {
        let check = |text: &str, expected: bool| assert_eq!(binds(text, "ax"), expected, "{text}");
        check("x = 1\nfig, ax = plt.subplots()", true);
        check("ax = fig.gca()", true);
        check("ax == fig.gca()", false);
        check("if ax is None:\n    ax = make()", false);
        check("ax = ax or make()", false);
        check("plot(ax=ax)", false);
        check("ax += 1", false);
    }

    #[test]
    fn a_name_begins_empty_where_the_cell_makes_it_so() {
        let check = |text: &str, expected: bool| {
            assert_eq!(begins_empty(text, "rows"), expected, "{text}");
        };
        check("n = 1\nrows = []  # of this run", true);
        check("seen, rows = set(), {}", true);
        check("rows = load()", false);
        check("rows, n = load([], 1)", false);
        check("if rows is None:\n    rows = []", false);
        check("rows == []", false);
        check("rows.append([])", false);
    }

    #[test]
    fn functions_are_followed_by_their_names() {
        let others = [
            "def step(x):\n    return forward(x)\n\nstep(1)",
            "class Model:\n    async def forward(\n        self,\n    ):\n        return 1\n\n    def fit(self): ...",
        ];
        let called = called("score = step(x)", others.into_iter());
        let [_, step, forward] = called[..] else {
            panic!("{called:?}");
        };
        assert_eq!(step, "def step(x):\n    return forward(x)\n");
        assert!(forward.trim_end().ends_with("return 1"), "{forward}");
    }

    #[track_caller]
    fn check_telling(source: &str, expected: &str) {
        assert_eq!(telling_line(source).as_deref(), Some(expected));
    }

    #[test]
    fn the_telling_line_is_the_last_that_does_something() {
        check_telling(
            "import torch\nlosses = []\nnet = Net()\nlosses = []",
            "net = Net()",
        );
        check_telling("x = f()\nx", "x = f()");
        check_telling("import torch\nx", "x");
        check_telling("x = f()\ndef g():\n    return x\n# done", "x = f()");
        check_telling(
            "for b in data:\n    kept.append(b)\n    print(b)",
            "kept.append(b)",
        );
        check_telling("net = Net(\n    1,\n    2,\n)\n", "net = Net(");
        check_telling("try:\n    top = f()\nfinally:\n    step = 1", "top = f()");
        check_telling("x = f()\ndel x", "x = f()");
        check_telling("print(x)", "print(x)");
        check_telling("run(i)\ni += 1\nprint(i)", "run(i)");
        check_telling(
            "fig = draw(data)\nplt.close(fig)  # done",
            "fig = draw(data)",
        );
        check_telling("fig = draw(data)\nplt.close('all')", "fig = draw(data)");
        check_telling("net = Net()\nMB = 1 << 20\ndevice = 'cpu'", "net = Net()");
        check_telling("x = f()\ntotal += f(2)", "total += f(2)");
        check_telling("i += 1", "i += 1");
        check_telling("losses = []  # so far", "losses = []  # so far");
        check_telling("try:\n    step()\nexcept Error:\n    pass", "step()");
    }

    #[test]
    fn a_long_line_is_abridged_in_its_call() {
        let long = "losses.append((sim.tensor(420 << 20) * weights).sum())";
        assert_eq!(abridged(long), "losses.append(…)");
        assert_eq!(abridged("top = rank(net)"), "top = rank(net)");
        let words = "a line without any call that is much too long for a sentence";
        assert_eq!(
            abridged(words),
            "a line without any call that is much too lo…"
        );
    }

    #[test]
    fn equal_sources_have_equal_hashes() {
        assert_eq!(hash("%%gpumem --quiet\nx = 1\n"), hash("x = 1"));
        assert_ne!(hash("x = 1"), hash("x = 2"));
        assert_ne!(hash("%%gpumemory\nx = 1"), hash("x = 1"));
    }
}
