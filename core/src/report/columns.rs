//! How many columns a text takes in a terminal: a letter of Chinese, Japanese or Korean takes two.

use unicode_width::UnicodeWidthStr;

use crate::printable::printable;

pub(crate) fn n_columns(text: &str) -> usize {
    text.width()
}

/// The text on one line, or as much of its beginning as fits, with `…` after it.
pub(super) fn cut(line: &str, width: usize) -> String {
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
