//! Python's text, as far as it takes to find a statement and the ends of what stands in it.
//!
//! No grammar: strings, comments and brackets are recognised, so that lines, semicolons
//! and commas mean something in. Text that is no Python gives something, and never fails.

use gpumem_model::source_text::is_name_letter;

/// Stands for what is not outside: no letter of Python's.
const LEFT_OUT: char = '\0';

/// What a statement begins with that has a block.
const OPENS_BLOCK: [&str; 13] = [
    "async", "class", "def", "elif", "else", "except", "finally", "for", "if", "match", "try",
    "while", "with",
];

/// What a byte of the text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPart {
    Code,
    /// With its quotation marks.
    Text,
    Comment,
}

/// The text with what is known of each of its bytes.
pub(crate) struct Code<'a> {
    pub(crate) text: &'a str,
    parts: Vec<TextPart>,
    /// How many brackets are open before it. A closing one is as deep as its opening one.
    depths: Vec<u32>,
}

impl<'a> Code<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut code = Self {
            text,
            parts: Vec::with_capacity(text.len()),
            depths: Vec::with_capacity(text.len()),
        };
        let mut depth: u32 = 0;
        while let Some(rest) = text.get(code.parts.len()..).filter(|rest| !rest.is_empty()) {
            let (part, n) = token(rest);
            let first = rest.as_bytes()[0];
            let is_code = part == TextPart::Code;
            if is_code && b")]}".contains(&first) {
                depth = depth.saturating_sub(1);
            }
            code.parts.extend(std::iter::repeat_n(part, n));
            code.depths.extend(std::iter::repeat_n(depth, n));
            if is_code && b"([{".contains(&first) {
                depth += 1;
            }
        }
        code
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The byte there, where it is no string and no comment.
    pub(crate) fn code(&self, at: usize) -> Option<u8> {
        let is_code = self.parts.get(at) == Some(&TextPart::Code);
        self.byte(at).filter(|_| is_code)
    }

    pub(crate) fn is_comment(&self, at: usize) -> bool {
        self.parts.get(at) == Some(&TextPart::Comment)
    }

    pub(crate) fn is_text(&self, at: usize) -> bool {
        self.parts.get(at) == Some(&TextPart::Text)
    }

    /// The strings of a span, with their quotation marks.
    pub(crate) fn texts(&self, span: ByteSpan) -> Vec<ByteSpan> {
        let mut texts: Vec<ByteSpan> = Vec::new();
        for at in (span.start..span.end).filter(|at| self.is_text(*at)) {
            match texts.last_mut().filter(|it| it.end == at) {
                Some(text) => text.end = at + 1,
                None => texts.push(ByteSpan {
                    start: at,
                    end: at + 1,
                }),
            }
        }
        texts
    }

    /// The text with a blank for each letter of a comment or string, except for strings with values in them: `f'{x}'`.
    pub(crate) fn only_code(&self) -> String {
        let whole = ByteSpan {
            start: 0,
            end: self.len(),
        };
        let has_values = |it: &ByteSpan| {
            let before = self.text[..it.start].trim_end_matches(['r', 'R']);
            before.ends_with(['f', 'F', 't', 'T'])
        };
        let mut texts = self.texts(whole);
        texts.retain(|it| !has_values(it));
        let mut n_passed = 0;
        let plain = self.text.char_indices().map(|(at, c)| {
            n_passed += usize::from(texts.get(n_passed).is_some_and(|it| it.end <= at));
            let is_in_text = texts.get(n_passed).is_some_and(|it| it.start <= at);
            let is_blank = is_in_text || self.is_comment(at);
            if is_blank && c != '\n' { ' ' } else { c }
        });
        plain.collect()
    }

    /// The same at a nesting depth of brackets.
    fn code_in(&self, at: usize, depth: u32) -> Option<u8> {
        self.code(at).filter(|_| self.depths[at] == depth)
    }

    pub(crate) fn depth(&self, at: usize) -> u32 {
        self.depths.get(at).copied().unwrap_or_default()
    }

    /// Simple statements, and lines that open a block: what stands between line ends and semicolons.
    pub(crate) fn statements(&self) -> Vec<ByteSpan> {
        let mut statements = Vec::new();
        let mut start = 0;
        for at in 0..=self.len() {
            let ends = match self.code_in(at, 0) {
                Some(b';') => true,
                Some(b'\n') => at == 0 || self.byte(at - 1) != Some(b'\\'),
                _ => at == self.len(),
            };
            if ends {
                statements.extend(self.trimmed(ByteSpan { start, end: at }));
                start = at + 1;
            }
        }
        statements
    }

    /// The same, where what follows the head of a block in its line is a statement of its own.
    pub(crate) fn statements_of_blocks(&self) -> Vec<ByteSpan> {
        let statements = self.statements().into_iter();
        let parts = statements.flat_map(|span| match self.end_of_head(span) {
            Some(end) => {
                let (head, rest) = (ByteSpan { end, ..span }, ByteSpan { start: end, ..span });
                [Some(head), self.trimmed(rest)]
            }
            None => [Some(span), None],
        });
        parts.flatten().collect()
    }

    /// Behind the colon of `def f(x):`, `else:` and the like.
    fn end_of_head(&self, span: ByteSpan) -> Option<usize> {
        let word = self
            .of_span(span)
            .split(|c: char| !is_name_letter(c))
            .next();
        let opens = word.is_some_and(|word| OPENS_BLOCK.contains(&word));
        let is_colon = |at: &usize| {
            let is_walrus = self.code(*at + 1) == Some(b'=');
            self.code_in(*at, self.depth(span.start)) == Some(b':') && !is_walrus
        };
        let at = (span.start..span.end).filter(|_| opens).find(is_colon)?;
        Some(at + 1)
    }

    /// Without blanks and comments at its ends; `None` where nothing else is there.
    pub(crate) fn trimmed(&self, span: ByteSpan) -> Option<ByteSpan> {
        let says = |at: &usize| {
            let is_blank = self.byte(*at).is_some_and(|it| it.is_ascii_whitespace());
            !is_blank && self.parts[*at] != TextPart::Comment
        };
        let mut places = span.start..span.end;
        let start = places.find(says)?;
        let end = places.rfind(says).unwrap_or(start) + 1;
        Some(ByteSpan { start, end })
    }

    /// The text of a span, verbatim.
    pub(crate) fn of_span(&self, span: ByteSpan) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Where the bracket that opens at `at` is closed.
    pub(crate) fn closing(&self, at: usize) -> Option<usize> {
        let depth = self.depth(at);
        let opening = self.code(at).filter(|it| b"([{".contains(it))?;
        let closes = |place: &usize| {
            let is_closing = |it: u8| b")]}".contains(&it);
            self.code_in(*place, depth).is_some_and(is_closing)
        };
        let end = (at + 1..self.len()).find(closes)?;
        let is_pair = matches!(
            (opening, self.byte(end)?),
            (b'(', b')') | (b'[', b']') | (b'{', b'}')
        );
        is_pair.then_some(end)
    }

    /// How many brackets of a span are in no other.
    pub(crate) fn n_brackets(&self, span: ByteSpan) -> usize {
        let depth = self.depth(span.start);
        let opens = |at: &usize| {
            let code = self.code_in(*at, depth);
            code.is_some_and(|it| b"([{".contains(&it))
        };
        (span.start..span.end).filter(opens).count()
    }

    /// What stands between the signs of a span that are in no bracket of it, trimmed.
    pub(crate) fn split(&self, span: ByteSpan, sign: u8) -> Vec<ByteSpan> {
        let depth = self.depth(span.start);
        let mut parts = Vec::new();
        let mut start = span.start;
        for end in span.start..=span.end {
            if end == span.end || self.code_in(end, depth) == Some(sign) {
                parts.extend(self.trimmed(ByteSpan { start, end }));
                start = end + 1;
            }
        }
        parts
    }

    /// What of a span stands outside of brackets, strings and comments, with [`LEFT_OUT`] for each
    /// letter of those. `None` where brackets are closed that were not opened in it, or the other way round.
    pub(crate) fn outside(&self, span: ByteSpan) -> Option<String> {
        let depth = self.depth(span.start);
        let mut open = 0_i32;
        let mut plain = String::new();
        for (offset, c) in self.of_span(span).char_indices() {
            let at = span.start + offset;
            let code = self.code(at);
            open += i32::from(code.is_some_and(|it| b"([{".contains(&it)));
            open -= i32::from(code.is_some_and(|it| b")]}".contains(&it)));
            if open < 0 {
                return None;
            }
            let is_outside = self.depth(at) == depth && code.is_some();
            let is_bracket = is_outside && "()[]{}".contains(c);
            plain.push(if is_outside && !is_bracket {
                c
            } else {
                LEFT_OUT
            });
        }
        (open == 0).then_some(plain)
    }

    /// A value whose attribute needs no brackets around it: `model(x).loss`.
    pub(crate) fn is_primary(&self, span: ByteSpan) -> bool {
        let is_its = |c: char| is_name_letter(c) || ['.', LEFT_OUT].contains(&c);
        let is_operator = |word: &str| ["not", "await"].contains(&word);
        self.outside(span).is_some_and(|plain| {
            let is_number = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            plain.chars().all(is_its) && !is_number && !split_words(&plain).any(is_operator)
        })
    }

    /// Where `word` stands by itself in a span's code.
    pub(crate) fn find_word(&self, span: ByteSpan, word: &str) -> impl Iterator<Item = usize> {
        let text = self.of_span(span);
        text.match_indices(word).filter_map(move |(offset, _)| {
            let at = span.start + offset;
            let is_name = |it: Option<u8>| it.is_some_and(|it| is_of_name(it) || it == b'.');
            let is_apart = at == 0 || !is_name(self.byte(at - 1));
            let ends = !self.byte(at + word.len()).is_some_and(is_of_name);
            (is_apart && ends && self.code(at).is_some()).then_some(at)
        })
    }
}

/// From here to there, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The words of what [`Code::outside`] left.
pub(crate) fn split_words(plain: &str) -> impl Iterator<Item = &str> {
    plain.split(|c: char| !is_name_letter(c))
}

/// Part of a name: a letter of any alphabet is more than one byte.
pub(crate) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// What the text begins with, and how many bytes that takes.
fn token(text: &str) -> (TextPart, usize) {
    let first = text.chars().next().map_or(1, char::len_utf8);
    match text.as_bytes()[0] {
        b'#' => (TextPart::Comment, text.find('\n').unwrap_or(text.len())),
        mark @ (b'"' | b'\'') => (TextPart::Text, string(text.as_bytes(), mark)),
        _ => (TextPart::Code, first),
    }
}

/// The length of a string that begins here; one without an end ends with its line, or the text.
fn string(text: &[u8], mark: u8) -> usize {
    let is_long = text.starts_with(&[mark; 3]);
    let end: &[u8] = if is_long { &[mark; 3] } else { &[mark] };
    let mut at = end.len();
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'\n' if !is_long => return at,
            _ if text[at..].starts_with(end) => return at + end.len(),
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let code = Code::new(text);
        let statements = code.statements();
        let found: Vec<&str> = statements.iter().map(|it| code.of_span(*it)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn brackets_and_strings_continue_a_statement() {
        check("a = 1\n\nb = 2  # two\n", &["a = 1", "b = 2"]);
        check(
            "a = f(\n    1,  # one\n)\nb",
            &["a = f(\n    1,  # one\n)", "b"],
        );
        check("a = 1; b = 2;", &["a = 1", "b = 2"]);
        check("a = '''x\ny'''\nb", &["a = '''x\ny'''", "b"]);
        check("a = 1 + \\\n    2\nb", &["a = 1 + \\\n    2", "b"]);
        check("a = ';#\"(' ; b", &["a = ';#\"('", "b"]);
        check("# nothing\n\n", &[]);
        check("a = 'no end\nb", &["a = 'no end", "b"]);
        check("größe = f('ü')  # ß\nb", &["größe = f('ü')", "b"]);
    }

    #[test]
    fn texts_and_comments_are_no_code() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Code::new(text).only_code(), expected);
        };
        check("x = 'ab' + y  # z", "x =      + y     ");
        check("f('''a\nb''', 'c')\nd", "f(    \n    ,    )\nd");
        check("f(f'{x}', rf\"{y}\", 'ü')", "f(f'{x}', rf\"{y}\",    )");
        check("f(fr'{x}', b'y')", "f(fr'{x}', b   )");
    }
}
