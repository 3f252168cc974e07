//! Lines of a terminal: a letter of Chinese, Japanese or Korean takes two columns.

use std::fmt::Display;

use unicode_width::UnicodeWidthStr;

use gpumem_model::printable::{printable, printable_report};

/// A figure, or what stands in its place if it is not known.
pub(super) fn or_else(figure: Option<impl Display>, unknown: &str) -> String {
    figure.map_or_else(|| unknown.to_owned(), |it| it.to_string())
}

/// How many columns the text takes.
pub fn n_columns(text: &str) -> usize {
    text.width()
}

/// The text on one line, or as much of its beginning as fits, with `…` after it.
pub fn cut(line: &str, width: usize) -> String {
    let line = printable(line);
    if n_columns(&line) <= width {
        return line;
    }
    let room = width.saturating_sub(1);
    let mut kept = String::new();
    for letter in line.chars() {
        kept.push(letter);
        if n_columns(&kept) > room {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// Parts with `·` between them, broken only between two of them while they fit a line by themselves.
pub fn in_parts(parts: &[String], width: usize, indent: &str) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for part in parts {
        if line.is_empty() {
            line.clone_from(part);
        } else if n_columns(&line) + 3 + n_columns(part) <= width {
            line = format!("{line} · {part}");
        } else {
            lines.push(std::mem::replace(&mut line, format!("{indent}{part}")));
        }
    }
    lines.push(line);
    let lines = lines.iter().map(|line| wrapped(line, width));
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines as a text. Each was made by [`wrapped`] or [`cut`], so that no name in it ends a line.
pub fn to_text(lines: &[String]) -> String {
    printable_report(&lines.join("\n"))
}

/// One line, wrapped between words, the further lines indented by two more. Code
/// between backticks is one word.
pub fn wrapped(line: &str, width: usize) -> String {
    let line = printable(line);
    if n_columns(&line) <= width {
        return line;
    }
    let indent = line.chars().take_while(|c| *c == ' ').count();
    // A single one is no code, but a part of what the user wrote.
    let has_code = line.matches('`').count().is_multiple_of(2);
    let mut is_code = false;
    let mut words = line.trim_start().split(|c| {
        is_code ^= has_code && c == '`';
        c == ' ' && !is_code
    });
    let first = words.next().unwrap_or_default();
    let mut lines = vec![format!("{}{first}", " ".repeat(indent))];
    for word in words {
        let last = lines.last_mut().expect("it begins with one");
        if n_columns(last) + 1 + n_columns(word) <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("{}{word}", " ".repeat(indent + 2)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_two_columns() {
        let check = |text, columns| assert_eq!(n_columns(text), columns, "{text}");
        check("losses", 6);
        check("größe", 5);
        check("損失", 4);
        check("손실 1", 6);
        check("e\u{301}", 1);
    }

    #[test]
    fn a_cut_text_fits() {
        let check = |text, width, expected: &str| assert_eq!(cut(text, width), expected);
        check("losses", 6, "losses");
        check("losses", 4, "los…");
        check("損失損失", 8, "損失損失");
        check("損失損失", 6, "損失…");
        check("損失", 0, "…");
    }
}
