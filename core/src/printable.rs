//! Words that somebody else chose, as they may be shown.

/// The text on one line, without what would steer a terminal, break an SVG or
/// turn the direction of writing.
pub(crate) fn printable(text: &str) -> String {
    // As most are.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let shown = |letter: char| match letter {
        '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fffe}'
        | '\u{ffff}' => None,
        _ if letter.is_control() => Some(' '),
        _ => Some(letter),
    };
    text.chars().filter_map(shown).collect()
}

/// The same of a text of several lines.
pub(crate) fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_does_not_steer() {
        let steering = "a\u{1b}[31m\tb\u{202e}c\nd";
        assert_eq!(printable(steering), "a [31m bc d");
        assert_eq!(printable_lines(steering), "a [31m bc\nd");
    }
}
