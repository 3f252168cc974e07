//! Rows of CSV as pandas writes them: fields with commas, quotes or line ends are quoted.

use super::event::RawEvent;
use super::figure::StormlogValue;
use super::{Events, StormlogError, StormlogFault};

/// After this many fields, the rest of the row is part of the last one.
const MAX_FIELDS: usize = 256;

pub(super) fn read(bytes: &[u8], events: &mut Events) -> Result<(), StormlogError> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let (names, behind) = row(rest);
    rest = behind;
    let damaged = |at: usize, words: &str| StormlogError {
        offset: at.min(bytes.len()),
        what: StormlogFault::Damaged(words.to_owned()),
    };
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let (fields, behind) = row(rest);
        rest = behind;
        if fields.iter().all(|field| field.trim().is_empty()) {
            continue;
        }
        if fields.len() != names.len() {
            let words = if rest.is_empty() {
                "the last row is cut"
            } else {
                "a row has not as many fields as there are columns"
            };
            return Err(damaged(at, words));
        }
        let mut event = RawEvent::default();
        for (name, field) in names.iter().zip(&fields) {
            event.set(name.trim(), StormlogValue::of_text(field));
        }
        events.take(&event);
    }
    Ok(())
}

/// The fields of the first row, and the text after it.
fn row(text: &str) -> (Vec<String>, &str) {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut is_quoted = false;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek().is_some_and(|(_, next)| *next == '"') => {
                field.push('"');
                letters.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted && fields.len() < MAX_FIELDS => {
                fields.push(std::mem::take(&mut field));
            }
            '\n' if !is_quoted => {
                fields.push(field.trim_end_matches('\r').to_owned());
                return (fields, text.get(at + 1..).unwrap_or_default());
            }
            letter => field.push(letter),
        }
    }
    fields.push(field);
    (fields, "")
}
