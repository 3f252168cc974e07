//! The words of a statement, and what stands beside each.

use crate::fix::statement::{ByteSpan, Code, is_of_name};

/// A word of a statement.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    /// What stands before it, and behind it; blanks do not count.
    pub(super) before: Option<u8>,
    pub(super) after: [Option<u8>; 2],
    /// The word before it, if nothing is between them.
    pub(super) previous: &'a str,
}
/// The words of a span that stand in its code.
pub(super) fn words_in<'a>(code: &Code<'a>, span: ByteSpan) -> Vec<Word<'a>> {
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
