//! Reads the statements of a cell one by one.

use std::collections::HashSet;

use super::vocabulary::{
    EAGER, NAMESPACES, OTHER_LANGUAGES, PLAIN_MAGICS, READ_ALL, RUN_MAGICS, RUN_OTHER_CODE,
    TAKE_CODE,
};
use super::word::{Word, words_in};
use super::{CellText, FunctionText, NameUse, NameUses};
use crate::fix::statement::{ByteSpan, Code};

/// What the code of a cell does with names.
pub(super) fn read<'a>(code: &Code<'a>) -> CellText<'a> {
    let mut reading = CellReader {
        code,
        blocks: Vec::new(),
        is_decorated: false,
        found: CellText::default(),
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
fn is_name(letter: char) -> bool {
    gpumem_model::source_text::is_name_letter(letter)
}

const fn is_opening(byte: u8) -> bool {
    matches!(byte, b'(' | b'[' | b'{')
}

const fn is_of_text(byte: Option<u8>) -> bool {
    matches!(byte, Some(b'"' | b'\''))
}
