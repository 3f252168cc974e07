//! A line → its fields. A spreadsheet may have quoted them, with line ends inside.

use super::columns::{Separator, SmiColumn, SmiColumns};

/// The fields of a row; `None` if there are too few.
pub(super) fn fields<'t>(text: &'t str, columns: &SmiColumns) -> Option<Vec<&'t str>> {
    let n = columns.kinds.len();
    let mut fields: Vec<&str> = Vec::with_capacity(n);
    match columns.separator {
        Separator::Letter(separator) => fields.extend(quoted(text, separator).map(str::trim)),
        Separator::Space => {
            let mut rest = text;
            // A command may have spaces in it.
            while fields.len() + 1 < n {
                let (field, behind) = rest.split_once(char::is_whitespace)?;
                fields.push(field);
                rest = behind.trim_start();
            }
            fields.push(rest);
        }
    }
    if fields.len() > n && columns.separator != Separator::Space {
        // Nothing is quoted: a comma in the name of a process makes further fields.
        let name = columns
            .kinds
            .iter()
            .position(|it| *it == SmiColumn::ProcessName)?;
        let n_more = fields.len() - n;
        let begin = fields.get(name)?.as_ptr() as usize - text.as_ptr() as usize;
        let last = fields.get(name + n_more)?;
        let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
        fields.splice(name..=name + n_more, [text.get(begin..end)?]);
    }
    (fields.len() == n).then_some(fields)
}

/// The text between separators that are not inside quotes.
fn quoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let field = rest?;
        let end = end_of_quote(field).unwrap_or(0);
        let behind = field.get(end..).unwrap_or_default();
        let Some(at) = behind.find(separator) else {
            rest = None;
            return Some(field);
        };
        rest = behind.get(at + separator.len_utf8()..);
        field.get(..end + at)
    })
}

/// Where a field's opening quote ends; `None` if it has none, or the quote does not end.
fn end_of_quote(field: &str) -> Option<usize> {
    let begin = field.len() - field.trim_start().len();
    let inside = field.get(begin..)?.strip_prefix('"')?;
    Some(begin + 1 + inside.find('"')? + 1)
}

/// Whether a field begins with a quote that does not end.
pub(super) fn is_open(text: &str, separator: char) -> bool {
    let mut rest = text;
    loop {
        if rest.trim_start().starts_with('"') {
            let Some(end) = end_of_quote(rest) else {
                return true;
            };
            rest = rest.get(end..).unwrap_or_default();
        }
        let Some((_, behind)) = rest.split_once(separator) else {
            return false;
        };
        rest = behind;
    }
}
