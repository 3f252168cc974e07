//! What the text of a cell does with names: which ones it reads, binds and deletes, itself and in the functions
//! that it defines.
//!
//! No grammar, as in the fixes: where the text leaves open whether a name is read, it counts as read.

use std::collections::{HashMap, HashSet};

use super::fix::statement::{ByteSpan, Code, is_of_name};

/// Of longer texts nothing is known.
const LONGEST: usize = 1 << 16;

/// Words that stand for every name, where they are called.
const READ_ALL: [&str; 5] = ["eval", "globals", "locals", "vars", "_getframe"];

/// Words that stand for every name, wherever they are.
const NAMESPACES: [&str; 5] = [
    "get_ipython",
    "user_ns",
    "__main__",
    "dump_session",
    "dump_module",
];

/// What runs code that stands elsewhere.
const RUN_OTHER_CODE: [&str; 5] = ["exec", "execfile", "run_cell", "run_code", "runpy"];

/// Functions that take code, or a query, as text: names in it are variables.
const TAKE_CODE: [&str; 6] = ["eval", "evaluate", "execute", "query", "sql", "timeit"];

/// Calls that use up a generator expression before they return.
const EAGER: [&str; 13] = [
    "all",
    "any",
    "dict",
    "frozenset",
    "join",
    "len",
    "list",
    "max",
    "min",
    "set",
    "sorted",
    "sum",
    "tuple",
];

/// Magics that do nothing but what stands behind them, or look at no variable at all.
const PLAIN_MAGICS: [&str; 50] = [
    "aimport",
    "alias",
    "autoreload",
    "capture",
    "cat",
    "cd",
    "colors",
    "conda",
    "config",
    "cp",
    "debug",
    "env",
    "gpumem",
    "gpumem_report",
    "hist",
    "history",
    "load_ext",
    "ls",
    "lprun",
    "lsmagic",
    "mamba",
    "matplotlib",
    "memit",
    "mkdir",
    "mprun",
    "mv",
    "page",
    "pdb",
    "pdoc",
    "pfile",
    "pinfo",
    "pip",
    "pprint",
    "precision",
    "prun",
    "psource",
    "pwd",
    "reload_ext",
    "rm",
    "set_env",
    "store",
    "tb",
    "tensorboard",
    "time",
    "timeit",
    "unload_ext",
    "uv",
    "who",
    "whos",
    "xmode",
];

/// Magics whose cells are no Python.
const OTHER_LANGUAGES: [&str; 14] = [
    "HTML",
    "SVG",
    "bash",
    "cmd",
    "file",
    "html",
    "javascript",
    "js",
    "latex",
    "markdown",
    "script",
    "sh",
    "svg",
    "writefile",
];

/// Magics that run what stands elsewhere.
const RUN_MAGICS: [&str; 8] = [
    "ed", "edit", "load", "loadpy", "macro", "recall", "rerun", "run",
];

/// The text of a cell, as far as it tells what happens to names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellText<'a> {
    /// What its own statements do.
    pub own: NameUses<'a>,
    /// The functions that it defines.
    pub functions: Vec<FunctionText<'a>>,
    /// It runs code that stands elsewhere: nobody knows what that defines.
    pub runs_other_code: bool,
}

/// A function in the text of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionText<'a> {
    /// Its name.
    pub name: &'a str,
    /// It may run although no cell calls it by its name: a method, a generator, a function with a decorator or
    /// in another function.
    pub runs_at_any_time: bool,
    /// What it does with names that are not its own.
    pub uses: NameUses<'a>,
}

/// What code does with names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameUses<'a> {
    by_name: HashMap<&'a str, NameUse<'a>>,
    /// It may read every name.
    pub reads_all: bool,
}

/// What code does with one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "code may do all of it with one name"
)]
pub struct NameUse<'a> {
    /// It is read: also an attribute or an item of it.
    pub is_read: bool,
    /// It is read, and not only called.
    pub is_handed_on: bool,
    /// It may be read at any time after: in a `lambda`, in a generator expression.
    pub is_read_later: bool,
    /// It gets an object.
    pub is_bound: bool,
    /// It is deleted.
    pub is_deleted: bool,
    /// The first statement that reads it.
    pub reader: &'a str,
}

impl<'a> NameUses<'a> {
    /// What is done with a name; `None` if it is not there.
    pub fn get(&self, name: &str) -> Option<&NameUse<'a>> {
        self.by_name.get(name)
    }

    /// Every name that it has.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &NameUse<'a>)> {
        self.by_name.iter().map(|(name, it)| (*name, it))
    }
}

impl<'a> CellText<'a> {
    /// Reads the text of a cell. Text that is no Python gives something, and never fails.
    pub fn read(text: &'a str) -> Self {
        if text.len() > LONGEST {
            return Self {
                runs_other_code: true,
                ..Self::default()
            };
        }
        let code = Code::new(text);
        let mut reading = CellReader {
            code: &code,
            blocks: Vec::new(),
            is_decorated: false,
            found: Self::default(),
            locals: Vec::new(),
        };
        match reading.cell_magic() {
            Some(name) if OTHER_LANGUAGES.contains(&name) => reading.read_words(),
            Some(name) => {
                reading.magic(name);
                reading.read_statements();
            }
            None => reading.read_statements(),
        }
        reading.finish()
    }
}

/// A function or a class whose body is being read.
struct BodyBlock {
    indent: usize,
    /// `None` of a class.
    function: Option<usize>,
}

/// The names of a function that are its own, and those that it says are not.
#[derive(Default)]
struct Locals<'a> {
    own: HashSet<&'a str>,
    global: HashSet<&'a str>,
}

/// A word of a statement.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
    /// What stands before it, and behind it; blanks do not count.
    before: Option<u8>,
    after: [Option<u8>; 2],
    /// The word before it, if nothing is between them.
    previous: &'a str,
}

struct CellReader<'a, 'c> {
    code: &'c Code<'a>,
    blocks: Vec<BodyBlock>,
    is_decorated: bool,
    found: CellText<'a>,
    /// Of each function.
    locals: Vec<Locals<'a>>,
}

impl<'a> CellReader<'a, '_> {
    fn finish(mut self) -> CellText<'a> {
        for (function, locals) in self.found.functions.iter_mut().zip(self.locals) {
            let is_own = |name: &str| locals.own.contains(name) && !locals.global.contains(name);
            function.uses.by_name.retain(|name, _| !is_own(name));
        }
        self.found
    }

    /// The magic that the text begins with, if it is one for the whole cell.
    fn cell_magic(&self) -> Option<&'a str> {
        let line = self.code.text.trim_start().strip_prefix("%%")?;
        line.split(|letter: char| !is_name(letter)).next()
    }

    /// What a magic does beside what stands behind it.
    fn magic(&mut self, name: &str) {
        self.found.runs_other_code |= RUN_MAGICS.contains(&name);
        self.found.own.reads_all |= !PLAIN_MAGICS.contains(&name);
    }

    /// Nothing but words: each may be a name that is read.
    fn read_words(&mut self) {
        for word in self.code.text.split(|letter: char| !is_name(letter)) {
            let uses = self.found.own.by_name.entry(word).or_default();
            (uses.is_read, uses.is_handed_on) = (true, true);
        }
    }

    fn read_statements(&mut self) {
        let mut head_of = None;
        for span in self.code.statements_of_blocks() {
            let indent = self.indent(span);
            if let Some(indent) = indent {
                self.blocks.retain(|block| block.indent < indent);
                head_of = None;
            }
            let owner = head_of.or_else(|| self.owner());
            let words = words_in(self.code, span);
            let first = words.first().map_or("", |it| it.text);
            let defined = words.windows(2).take(2).position(|it| it[0].text == "def");
            if self.code.of_span(span).starts_with('@') {
                self.statement(span, &words, owner);
                self.is_decorated = true;
                continue;
            }
            if let Some(at) = defined {
                head_of = Some(self.define(span, &words[at + 1..], (owner, indent)));
            } else {
                if first == "class" {
                    let indent = indent.unwrap_or_default();
                    self.blocks.push(BodyBlock {
                        indent,
                        function: None,
                    });
                }
                self.statement(span, &words, owner);
            }
            self.is_decorated = false;
        }
    }

    /// How far a statement is indented; `None` if another one stands before it in its line.
    fn indent(&self, span: ByteSpan) -> Option<usize> {
        let before = &self.code.text[..span.start];
        let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        line.trim().is_empty().then_some(line.len())
    }

    /// The function whose body a statement is in.
    fn owner(&self) -> Option<usize> {
        self.blocks.iter().rev().find_map(|block| block.function)
    }

    /// The head of a function: `words` begin with its name.
    fn define(
        &mut self,
        span: ByteSpan,
        words: &[Word<'a>],
        (owner, indent): (Option<usize>, Option<usize>),
    ) -> usize {
        let name = words[0].text;
        let function = self.found.functions.len();
        let is_async = self.code.of_span(span).starts_with("async");
        self.found.functions.push(FunctionText {
            name,
            runs_at_any_time: is_async || self.is_decorated || !self.blocks.is_empty(),
            uses: NameUses::default(),
        });
        self.locals.push(Locals::default());
        self.note(owner, &words[0], |it| it.is_bound = true);
        let depth = self.code.depth(span.start);
        for word in &words[1..] {
            let is_parameter = self.code.depth(word.start) == depth + 1
                && matches!(word.before, Some(b'(' | b',' | b'*' | b'/'));
            if is_parameter {
                self.locals[function].own.insert(word.text);
            } else if word.before != Some(b'.') {
                self.note(owner, word, |it| it.read(word));
            }
        }
        if let Some(indent) = indent {
            self.blocks.push(BodyBlock {
                indent,
                function: Some(function),
            });
        }
        function
    }

    fn uses(&mut self, owner: Option<usize>) -> &mut NameUses<'a> {
        match owner {
            Some(function) => &mut self.found.functions[function].uses,
            None => &mut self.found.own,
        }
    }

    fn note(&mut self, owner: Option<usize>, word: &Word<'a>, add: impl FnOnce(&mut NameUse<'a>)) {
        add(self.uses(owner).by_name.entry(word.text).or_default());
    }

    fn statement(&mut self, span: ByteSpan, words: &[Word<'a>], owner: Option<usize>) {
        let text = self.code.of_span(span);
        let magic = text.strip_prefix('%').filter(|it| !it.starts_with('%'));
        if let Some(magic) = magic.filter(|_| owner.is_none()) {
            let name = magic.split(|letter| !is_name(letter)).next();
            self.magic(name.unwrap_or_default());
        }
        self.texts(span, owner);
        let first = words.first().map_or("", |it| it.text);
        let assigned = self.assignment(span);
        let later = self.later(span, words);
        // The depth at which the targets of a `for` stand.
        let mut targets = None;
        for word in words {
            let outside = self.code.depth(span.start);
            let depth = self.code.depth(word.start).saturating_sub(outside);
            match word.text {
                "for" => targets = Some(depth),
                "in" if targets == Some(depth) => targets = None,
                "yield" => {
                    if let Some(function) = owner {
                        self.found.functions[function].runs_at_any_time = true;
                    }
                }
                _ => {}
            }
            self.opens_all(word, owner);
            let is_part = word.after[0].is_some_and(|it| b".[(".contains(&it));
            let is_alone = word.after[0] == Some(b'=') && word.after[1] != Some(b'=');
            let is_target = depth == 0 && !is_part && assigned.is_some_and(|at| word.start < at);
            let is_bound = targets.is_some() && !is_part
                || ["import", "as", "class"].contains(&word.previous)
                || ["import", "from"].contains(&first)
                || word.after == [Some(b':'), Some(b'=')]
                || is_target;
            if word.before == Some(b'.') || depth > 0 && is_alone {
                // An attribute of something else, or an argument's name.
            } else if ["global", "nonlocal"].contains(&first) {
                if let Some(function) = owner {
                    self.locals[function].global.insert(word.text);
                }
            } else if first == "del" && !is_part {
                self.note(owner, word, |it| it.is_deleted = true);
            } else if is_bound {
                self.note(owner, word, |it| it.is_bound = true);
                if let Some(function) = owner {
                    self.locals[function].own.insert(word.text);
                }
            } else {
                let is_later = later
                    .iter()
                    .any(|it| (it.start..it.end).contains(&word.start));
                self.note(owner, word, |it| {
                    it.read(word);
                    it.is_read_later |= is_later;
                    if it.reader.is_empty() {
                        it.reader = text;
                    }
                });
            }
        }
    }

    /// Words that stand for other names, or for other code.
    fn opens_all(&mut self, word: &Word<'a>, owner: Option<usize>) {
        let is_called = word.after[0] == Some(b'(');
        // `model.eval()` is none, and the code in `eval("x + 1")` is read.
        let is_eval = word.text == "eval" && is_of_text(word.after[1]);
        let is_of_object =
            word.before == Some(b'.') && word.text != "_getframe" && word.text != "eval"
                || word.text == "eval" && word.after[1] == Some(b')');
        if is_called && READ_ALL.contains(&word.text) && !is_eval && !is_of_object
            || NAMESPACES.contains(&word.text)
        {
            self.uses(owner).reads_all = true;
        }
        let is_exec = word.text != "exec" || is_called && word.before != Some(b'.');
        self.found.runs_other_code |= RUN_OTHER_CODE.contains(&word.text) && is_exec;
    }

    /// Names in the strings of a statement: in braces, and where a string is code or a query.
    fn texts(&mut self, span: ByteSpan, owner: Option<usize>) {
        for text in self.code.texts(span) {
            let string = self.code.of_span(text);
            let before = &self.code.text[span.start..text.start];
            let prefix = before.len()
                - before
                    .trim_end_matches(|it: char| it.is_ascii_alphabetic())
                    .len();
            let (before, prefix) = before.split_at(before.len() - prefix);
            // IPython fills in names in commands, too.
            let is_command = self.code.of_span(span).starts_with(['!', '%']);
            let is_filled = is_command || prefix.contains(['f', 'F', 't', 'T']);
            let call = before
                .trim_end()
                .strip_suffix('(')
                .unwrap_or_default()
                .trim_end();
            let callee = call.rsplit(|letter| !is_name(letter)).next();
            // A string may end inside of a brace, at a quotation mark of its own kind.
            let is_torn = string.matches('{').count() != string.matches('}').count();
            let is_code = callee.is_some_and(|it| TAKE_CODE.contains(&it)) || is_torn;
            let mut depth = 0_u32;
            let mut previous = "";
            let mut start = 0;
            for (at, letter) in string.char_indices() {
                if is_name(letter) {
                    continue;
                }
                let name = &string[start..at];
                let sign = string[..start].chars().next_back();
                let is_asked =
                    sign == Some('@') || ["from", "join", "FROM", "JOIN"].contains(&previous);
                if !name.is_empty()
                    && sign != Some('.')
                    && (is_code || is_filled && depth > 0 || is_asked)
                {
                    let statement = self.code.of_span(span);
                    let uses = self.uses(owner).by_name.entry(name).or_default();
                    (uses.is_read, uses.is_handed_on) = (true, true);
                    if uses.reader.is_empty() {
                        uses.reader = statement;
                    }
                }
                if !name.is_empty() {
                    previous = name;
                }
                depth = match letter {
                    '{' => depth + 1,
                    '}' => depth.saturating_sub(1),
                    _ => depth,
                };
                start = at + letter.len_utf8();
            }
        }
    }

    /// Where the targets of an assignment end.
    fn assignment(&self, span: ByteSpan) -> Option<usize> {
        let depth = self.code.depth(span.start);
        let is_sign = |at: &usize| {
            let is_plain = |it: Option<u8>| !it.is_some_and(|it| b"=!<>+-*/%&|^@:".contains(&it));
            self.code.code(*at) == Some(b'=')
                && self.code.depth(*at) == depth
                && is_plain(self.code.code(*at - 1))
                && self.code.code(*at + 1) != Some(b'=')
        };
        (span.start + 1..span.end).rev().find(is_sign)
    }

    /// What of a statement may run after it: bodies of `lambda`, and generator expressions.
    fn later(&self, span: ByteSpan, words: &[Word<'a>]) -> Vec<ByteSpan> {
        let mut later = Vec::new();
        for word in words {
            if word.text == "lambda" {
                later.push(ByteSpan {
                    start: word.start,
                    ..span
                });
            }
            let depth = self.code.depth(word.start);
            if word.text != "for" || depth == self.code.depth(span.start) {
                continue;
            }
            let opens = |at: &usize| {
                self.code.depth(*at) + 1 == depth && self.code.code(*at).is_some_and(is_opening)
            };
            let opening = (span.start..word.start).rev().find(opens);
            let Some(opening) = opening.filter(|at| self.code.code(*at) == Some(b'(')) else {
                continue;
            };
            let head = self.code.text[span.start..opening].trim_end();
            let callee = head
                .rsplit(|letter| !is_name(letter))
                .next()
                .unwrap_or_default();
            if !EAGER.contains(&callee) {
                let end = self.code.closing(opening).unwrap_or(span.end);
                later.push(ByteSpan {
                    start: opening,
                    end,
                });
            }
        }
        later
    }
}

impl NameUse<'_> {
    fn read(&mut self, word: &Word<'_>) {
        self.is_read = true;
        self.is_handed_on |= word.after[0] != Some(b'(');
    }
}

/// The words of a span that stand in its code.
fn words_in<'a>(code: &Code<'a>, span: ByteSpan) -> Vec<Word<'a>> {
    let is_letter = |at: usize| code.code(at).is_some_and(is_of_name);
    let is_blank = |at: usize| {
        let byte = code.text.as_bytes()[at];
        byte.is_ascii_whitespace() || byte == b'\\' || code.is_comment(at)
    };
    let mut words: Vec<Word<'a>> = Vec::new();
    let mut at = span.start;
    let mut last = None;
    let mut previous: &'a str = "";
    while at < span.end {
        if !is_letter(at) {
            if !is_blank(at) {
                (last, previous) = (Some(code.text.as_bytes()[at]), "");
            }
            at += 1;
            continue;
        }
        let start = at;
        while at < span.end && is_letter(at) {
            at += 1;
        }
        let Some(text) = code.text.get(start..at) else {
            continue;
        };
        let opens_text = at < span.end && code.is_text(at) && is_prefix(text);
        if !opens_text && !text.starts_with(|it: char| it.is_ascii_digit()) {
            let mut behind = (at..span.end).filter(|at| !is_blank(*at));
            let after = [(); 2].map(|()| behind.next().map(|at| code.text.as_bytes()[at]));
            let before = last;
            words.push(Word {
                text,
                start,
                before,
                after,
                previous,
            });
        }
        (last, previous) = (Some(b'a'), text);
    }
    words
}

/// Letters in front of a string that say how it is read.
fn is_prefix(text: &str) -> bool {
    text.len() <= 2 && text.chars().all(|it| "rbuftRBUFT".contains(it))
}

fn is_name(letter: char) -> bool {
    gpumem_model::source_text::is_name_letter(letter)
}

const fn is_opening(byte: u8) -> bool {
    matches!(byte, b'(' | b'[' | b'{')
}

const fn is_of_text(byte: Option<u8>) -> bool {
    matches!(byte, Some(b'"' | b'\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of `text` happens to `x`: by its own statements, and by functions with `()` behind their names.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let cell = CellText::read(text);
        let words = |uses: &NameUses<'_>| {
            let it = uses.get("x").copied().unwrap_or_default();
            let words = [
                (uses.reads_all, "all"),
                (it.is_read && !it.is_handed_on, "called"),
                (it.is_handed_on, "read"),
                (it.is_read_later, "later"),
                (it.is_bound, "bound"),
                (it.is_deleted, "deleted"),
            ];
            let words = words
                .iter()
                .filter(|(is_it, _)| *is_it)
                .map(|(_, word)| *word);
            words.collect::<Vec<_>>().join(" ")
        };
        let mut found = vec![words(&cell.own)];
        for function in &cell.functions {
            let any_time = if function.runs_at_any_time { "*" } else { "" };
            let words = words(&function.uses);
            if !words.is_empty() {
                found.push(format!("{}{any_time}(): {words}", function.name));
            }
        }
        if cell.runs_other_code {
            found.push("other code".to_owned());
        }
        found.retain(|it| !it.is_empty());
        assert_eq!(found.join(", "), expected, "{text}");
    }

    #[test]
    fn a_name_is_read_bound_or_deleted() {
        for text in [
            "f(x)",
            "y = x",
            "x.y = 1",
            "x[0] = 1",
            "x += 1",
            "print(f'{x}')",
            "for y in x: pass",
            "y[x] = 1",
            "if x:\n    pass",
            "f(a=x)",
            "(\n    1,\n    x,\n)",
            "a = b = x",
            "del x[0]",
            "f(f\"{a[\"x\"]}\")",
            "df.query('a > @x')",
            "sql('select * from x')",
            "assert x == 1",
            "eval('x + 1')",
            "%timeit f(x)",
            "%%time\nf(x)",
            "%%bash\necho $x",
            "!ls {x}",
            "!ls '{x}'",
        ] {
            check(text, "read");
        }
        for text in [
            "x = 1",
            "x, y = 1, 2",
            "a = x = 1",
            "for x in a: pass",
            "import x",
            "import a as x",
            "from a import (\n    x,\n)",
            "with a as x: pass",
            "x: int = 1",
            "def x(): pass",
            "class x: pass",
            "if (x := f()): pass",
        ] {
            check(text, "bound");
        }
        for text in [
            "a.x",
            "f(x=1)",
            "# x",
            "'x'",
            "print('x.pt')",
            "xx",
            "f'x {a}'",
            "torch.save(a, 'x.pt')",
        ] {
            check(text, "");
        }
        check("del x", "deleted");
        check("del y, x", "deleted");
        check("x()", "called");
        check("x = f(x)", "read bound");
    }

    #[test]
    fn a_function_reads_what_is_not_its_own() {
        check("def f(a):\n    return x + a", "f(): read");
        check("def f(a): return x", "f(): read");
        check("def f(x, b=1):\n    return x", "");
        check("def f(*, x: int = 1):\n    return x", "");
        check("def f():\n    x = 1\n    return x", "");
        check("def f():\n    global x\n    x = 1", "f(): bound");
        check("def f(a=x):\n    return a", "read");
        check("def f():\n    return 1\n\ng(x)", "read");
        check("if a:\n    def f():\n        return x", "f(): read");
        check("class A:\n    def f(self):\n        return x", "f*(): read");
        check("class A:\n    y = x", "read");
        check(
            "def f():\n    def g():\n        return x\n    return g",
            "g*(): read",
        );
        check("@a.b\ndef f():\n    return x", "f*(): read");
        check("async def f():\n    return x", "f*(): read");
        check("def f():\n    for a in x:\n        yield a", "f*(): read");
    }

    #[test]
    fn what_runs_later_reads_later() {
        check("f = lambda a: x(a)", "called later");
        check("g = (x[i] for i in a)", "read later");
        check("g = DataLoader(x[i] for i in a)", "read later");
        check("s = sum(x[i] for i in a)", "read");
        check("s = [x[i] for i in a]", "read");
    }

    #[test]
    fn code_that_reads_other_names_may_read_every_one() {
        for text in [
            "eval(code)",
            "globals()['x']",
            "%sql select 1",
            "%%sql\nselect 1",
            "get_ipython()",
        ] {
            assert!(CellText::read(text).own.reads_all, "{text}");
        }
        for text in [
            "model.eval()",
            "%matplotlib inline",
            "%%time\nf()",
            "%gpumem",
            "a % b",
        ] {
            assert!(!CellText::read(text).own.reads_all, "{text}");
        }
        for text in ["exec(code)", "%run a.py", "get_ipython().run_cell('a')"] {
            assert!(CellText::read(text).runs_other_code, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "[a-c:=(){}'\"\\[\\]@%. \n\\\\fdeor]{0,60}") {
            CellText::read(&text);
        }
    }
}
