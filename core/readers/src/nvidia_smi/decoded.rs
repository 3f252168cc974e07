//! Bytes → lines of text, in any encoding that a shell writes.

use std::borrow::Cow;

/// A log's text, and how to find its lines in the file again.
pub(super) struct DecodedText<'b> {
    text: Cow<'b, str>,
    encoding: Encoding,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16,
}

/// One line without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecodedLine<'t> {
    /// Counted from 1.
    pub(super) number: usize,
    /// Where it begins in the text.
    pub(super) at: usize,
    /// Number of spaces before it.
    pub(super) indent: usize,
    /// Its text, without spaces around it.
    pub(super) text: &'t str,
    /// Whether a line end follows; if not, it may be cut.
    pub(super) has_end: bool,
}

impl<'b> DecodedText<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        let (encoding, text) = match bytes {
            [0xff, 0xfe, rest @ ..] => (Encoding::Utf16, utf16(rest, u16::from_le_bytes)),
            [0xfe, 0xff, rest @ ..] => (Encoding::Utf16, utf16(rest, u16::from_be_bytes)),
            [0xef, 0xbb, 0xbf, rest @ ..] => {
                (Encoding::Utf8WithMark, String::from_utf8_lossy(rest))
            }
            rest => (Encoding::Utf8, String::from_utf8_lossy(rest)),
        };
        Self { text, encoding }
    }

    /// Every line that is not empty.
    pub(super) fn lines(&self) -> impl Iterator<Item = DecodedLine<'_>> + Clone {
        let mut at = 0;
        // Some editors end lines in `\r` alone.
        let end = if self.text.contains('\n') { '\n' } else { '\r' };
        let lines = self.text.split_inclusive(end).enumerate();
        lines.filter_map(move |(idx, line)| {
            let begin = at;
            at += line.len();
            // A file whose writer lost power ends in zeros.
            let is_space = |c: char| c.is_whitespace() || c == '\0';
            let text = line.trim_matches(is_space);
            (!text.is_empty()).then_some(DecodedLine {
                number: idx + 1,
                at: begin,
                indent: line.len() - line.trim_start_matches(is_space).len(),
                text,
                has_end: line.ends_with(end),
            })
        })
    }

    /// All lines from `first` to `last` as one.
    pub(super) fn joined<'t>(
        &'t self,
        first: DecodedLine<'t>,
        last: DecodedLine<'t>,
    ) -> DecodedLine<'t> {
        let begin = first.at + first.indent;
        let end = last.at + last.indent + last.text.len();
        DecodedLine {
            text: self.text.get(begin..end).unwrap_or(first.text),
            has_end: last.has_end,
            ..first
        }
    }

    /// The offset in the file of an offset in the text.
    pub(super) fn offset_in_file(&self, at: usize) -> usize {
        match self.encoding {
            Encoding::Utf8 => at,
            Encoding::Utf8WithMark => at + 3,
            Encoding::Utf16 => {
                let before = self.text.get(..at).unwrap_or(&self.text);
                2 + 2 * before.encode_utf16().count()
            }
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'_, str> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let letters = char::decode_utf16(units);
    // Mostly ASCII: each pair of bytes is one byte of text.
    let mut text = String::with_capacity(bytes.len() / 2);
    text.extend(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
    Cow::Owned(text)
}
