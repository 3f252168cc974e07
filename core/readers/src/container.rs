//! A file's container format, by its first bytes.
//!
//! ```
//! use gpumem_readers::container::Container;
//!
//! assert_eq!(Container::recognise(b"\x80\x04}."), Container::Pickle);
//! assert_eq!(Container::recognise(b"PK\x03\x04"), Container::Zip);
//! assert_eq!(Container::recognise(b"{\"traceEvents\": []}"), Container::Json);
//! ```

use gpumem_model::named;

named! {
    /// What a file's first bytes look like.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Container {
        /// A pickle.
        Pickle = "a pickle",
        /// A ZIP archive.
        Zip = "a ZIP archive, as torch.save writes",
        /// A gzip file.
        Gzip = "a gzip file",
        /// An `SQLite` database.
        Sqlite = "an SQLite database",
        /// JSON.
        Json = "JSON",
        /// A page.
        Html = "a page",
        /// Some other text.
        Text = "text",
        /// Nothing.
        Empty = "an empty file",
        /// Other bytes.
        Unknown = "a file of unknown kind",
    }
}

/// How many bytes of a file are examined.
pub const LOOKED_AT: usize = 4096;

const GZIP: &[u8] = b"\x1f\x8b";

/// Texts in UTF-8 may begin with it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a file is packed with gzip.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP)
}

impl Container {
    /// The container that `bytes` look like. A damaged file may look like its original.
    pub fn recognise(bytes: &[u8]) -> Self {
        let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
        if head.is_empty() {
            return Self::Empty;
        }
        let starts = [
            (&b"PK\x03\x04"[..], Self::Zip),
            (GZIP, Self::Gzip),
            (b"SQLite format 3\0", Self::Sqlite),
        ];
        if let Some((_, container)) = starts.iter().find(|(start, _)| head.starts_with(start)) {
            return *container;
        }
        if is_pickle(head) {
            return Self::Pickle;
        }
        text(head)
    }
}

fn is_pickle(head: &[u8]) -> bool {
    // Protocols 0 and 1 begin with a list or dict, then a memo.
    matches!(
        head,
        [0x80, 0..=5, ..] | [b'(', b'l' | b'd', b'p', ..] | [b']' | b'}', b'q', ..]
    )
}

/// Texts may contain any bytes: the reader of the file repairs them or reports an error.
fn is_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let mut letters = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    match (letters.next(), letters.next()) {
        (Some(b'['), Some(b'-' | b'0'..=b'9')) => is_list_of_numbers(head),
        (Some(b'{'), second) => matches!(second, None | Some(b'"' | b'}')),
        (Some(b'['), second) => {
            matches!(second, None | Some(b'{' | b'[' | b'"' | b']'))
        }
        _ => false,
    }
}

/// Whether the first of `[1, …` is a number: lines of logs begin with `[2024-10-29 …]` and with `[0] …`.
fn is_list_of_numbers(head: &[u8]) -> bool {
    let mut behind = head.iter().skip_while(|byte| **byte != b'[').skip(1);
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"-+.eE ".contains(byte);
    let end = behind.find(|byte| !is_of_number(byte));
    let is_dated = || {
        head.iter()
            .take_while(|byte| **byte != b',')
            .filter(|byte| **byte == b'-')
            .count()
            > 1
    };
    match end {
        None => true,
        Some(b']') => behind.all(|byte| byte.is_ascii_whitespace() || *byte == 0),
        Some(b',' | b'\n' | b'\r' | b'\t') => !is_dated(),
        Some(_) => false,
    }
}

fn text(head: &[u8]) -> Container {
    if is_json(head) {
        return Container::Json;
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The examined bytes may end inside a character.
        Err(error) if error.error_len().is_none() => {
            let valid = head.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
        Err(_) => return Container::Unknown,
    };
    let is_control = |letter: char| letter.is_control() && !letter.is_whitespace();
    if text.is_empty() || text.contains(is_control) {
        return Container::Unknown;
    }
    match text.trim_start().chars().next() {
        Some('{') => Container::Json,
        Some('<') => Container::Html,
        _ => Container::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Container) {
        assert_eq!(Container::recognise(bytes), expected);
    }

    #[test]
    fn json_may_have_any_bytes_in_its_texts() {
        check(b"{\"name\": \"caf\xe9\"}", Container::Json);
        check(b"\xef\xbb\xbf [1, 2]", Container::Json);
        check(b"{\"name\": \"a\x01b\"}\0\0", Container::Json);
        check(b"{\x01\x02", Container::Unknown);
        check(b"[section]\nname = 1\n", Container::Text);
    }

    #[test]
    fn a_line_that_begins_with_its_time_is_no_json() {
        check(b"[1, 2]", Container::Json);
        check(b"[ -1.5e3,\n 2]", Container::Json);
        check(b"[3]\n", Container::Json);
        check(b"[04-03-2021 @ 13:32:39] >  Temp: 58C\n", Container::Text);
        check(
            b"[2024-10-29 19:00:23,123] Memory: 1 MiB\n",
            Container::Text,
        );
        check(
            b"[0] Tesla P100 | 48'C,  55 % | 15757 / 16280 MB |\n",
            Container::Text,
        );
    }
}
