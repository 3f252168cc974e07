//! Text from others (names, messages, sources), made safe to show.
//!
//! The rule follows Unicode's properties, not a list of known tricks:
//!
//! - Controls (Cc) and line and paragraph separators (Zl, Zp) become spaces: a name stays on its line.
//! - Format controls (Cf) and other characters that are ignorable by default are removed. They change
//!   the direction of writing, or carry invisible text: tag characters do so for flags of regions, which
//!   become plain black flags here. Visible signs of Cf stay, such as the Arabic number sign.
//! - Noncharacters are removed: XML, and therefore SVG, forbids some of them.
//! - Joiners (U+200C, U+200D, U+180E) and variation selectors stay where writing needs them: one joiner
//!   between two characters beyond ASCII, as in Persian words and in emoji of several people; one
//!   selector after a character that may have one. Runs of them, which could hide a text, are removed,
//!   and so are those inside ASCII, which would make two names look the same.
//!
//! ```
//! use gpumem_model::printable::{printable, printable_lines};
//!
//! assert_eq!(printable("loss\u{202e}es"), "losses", "no change of direction");
//! assert_eq!(printable("a\nb"), "a b");
//! assert_eq!(printable_lines("a\nb"), "a\nb");
//! ```

/// The text on one line, without anything that would steer a terminal, break an SVG, change the
/// direction of writing or hide text. Example: [the module](self).
pub fn printable(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut shown = Printed::default();
    text.chars().for_each(|letter| shown.push(letter));
    shown.text
}

/// The same as [`printable()`] for a text of several lines. Example: [the module](self).
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// The same for a report that may be printed by a job of GitHub Actions. There a line that begins with `::` is a
/// command, and so is `##[` anywhere in it.
///
/// ```
/// use gpumem_model::printable::printable_report;
///
/// assert_eq!(printable_report("losses\n  ::add-mask::x"), "losses\n  ∷add-mask::x");
/// assert_eq!(printable_report("std::vector ##[error]"), "std::vector # #[error]");
/// ```
pub fn printable_report(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let line = printable(line).replace("##[", "# #[");
        match line.trim_start().strip_prefix("::") {
            Some(rest) => format!("{}∷{rest}", &line[..line.len() - rest.len() - 2]),
            None => line,
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// [`printable()`] in place.
pub(crate) fn make_printable(text: &mut String) {
    if !is_plain(text) {
        *text = printable(text);
    }
}

/// [`printable_lines`] in place.
pub(crate) fn make_printable_lines(text: &mut String) {
    if !text.split('\n').all(is_plain) {
        *text = printable_lines(text);
    }
}

/// As most texts are.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// What a character does where it is shown.
enum CharClass {
    /// It is seen, be it as a space.
    Seen,
    /// It ends a line, or steers.
    Break,
    /// It joins its neighbours or keeps them apart.
    Joiner,
    /// It chooses a form of the character before it.
    Selector,
    /// It is not seen.
    Unseen,
}

impl CharClass {
    fn new(letter: char) -> Self {
        match letter {
            '\u{2028}' | '\u{2029}' => Self::Break,
            _ if letter.is_control() => Self::Break,
            '\u{180e}' | '\u{200c}' | '\u{200d}' => Self::Joiner,
            '\u{180b}'..='\u{180d}'
            | '\u{180f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0100}'..='\u{e01ef}' => Self::Selector,
            _ if is_unseen(letter) || is_noncharacter(letter) => Self::Unseen,
            _ => Self::Seen,
        }
    }
}

/// `Default_Ignorable_Code_Point` and Cf, but for joiners, selectors and the signs of Cf that are
/// drawn. `tests/python/test_printable.py` holds it to Python's tables.
fn is_unseen(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_noncharacter(letter: char) -> bool {
    matches!(letter, '\u{fdd0}'..='\u{fdef}') || u32::from(letter) & 0xfffe == 0xfffe
}

/// A text as far as it may be shown.
#[derive(Default)]
struct Printed {
    text: String,
    /// A joiner that stays if what comes next is of a script that needs it.
    pending: Option<char>,
}

impl Printed {
    fn push(&mut self, letter: char) {
        match CharClass::new(letter) {
            CharClass::Seen => self.push_seen(letter),
            CharClass::Break => self.push_seen(' '),
            CharClass::Joiner if self.last().is_some_and(takes_joiner) => {
                self.pending.get_or_insert(letter);
            }
            CharClass::Selector
                if self.pending.is_none() && self.last().is_some_and(takes_selector) =>
            {
                self.text.push(letter);
            }
            CharClass::Joiner | CharClass::Selector | CharClass::Unseen => {}
        }
    }

    fn push_seen(&mut self, letter: char) {
        let joiner = self.pending.take().filter(|_| takes_joiner(letter));
        self.text.extend(joiner);
        self.text.push(letter);
    }

    fn last(&self) -> Option<char> {
        self.text.chars().next_back()
    }
}

/// No script that needs joiners is written in ASCII.
fn takes_joiner(letter: char) -> bool {
    !letter.is_ascii() && !letter.is_whitespace()
}

/// Digits, `#` and `*` are keys of a telephone among the emoji. A selector takes none.
fn takes_selector(letter: char) -> bool {
    let is_key = letter.is_ascii_digit() || matches!(letter, '#' | '*');
    is_key || takes_joiner(letter) && !matches!(CharClass::new(letter), CharClass::Selector)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_shown_does_not_steer() {
        let steering = "a\u{1b}[31m\tb\u{202e}c\nd";
        assert_eq!(printable(steering), "a [31m bc d");
        assert_eq!(printable_lines(steering), "a [31m bc\nd");
    }

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(printable(text), shown);
    }

    #[test]
    fn what_nobody_sees_goes() {
        check("lo\u{200b}ss\u{feff}", "loss");
        check("a\u{2028}b\u{2029}c\u{85}d", "a b c d");
        check("\u{61c}x\u{2066}y\u{ad}", "xy");
        check("x\u{e0068}\u{e0069}", "x");
        check("a\u{fffe}b\u{1ffff}c\u{fdd0}", "abc");
    }

    #[test]
    fn what_writing_needs_stays() {
        for text in [
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "👩\u{200d}💻",
            "🏳\u{fe0f}\u{200d}🌈",
            "❤\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "葛\u{e0100}",
            "\u{600}١٢",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn what_writing_does_not_need_hides_nothing() {
        check("lo\u{200d}ss", "loss");
        check("losses\u{200d}", "losses");
        check("می\u{200c}\u{200c}\u{200d}خ", "می\u{200c}خ");
        check("می\u{200c} x", "می x");
        check("😊\u{fe00}\u{e0101}\u{e0102}\u{fe0f}", "😊\u{fe00}");
        check("x\u{fe0f}", "x");
        check("👩\u{200d}\u{fe0f}💻", "👩\u{200d}💻");
    }

    fn is_joiner(letter: char) -> bool {
        matches!(CharClass::new(letter), CharClass::Joiner)
    }

    /// Characters of every part, the rare ones often.
    fn letters() -> impl Strategy<Value = char> {
        let chosen = "a1 \né👩葛م\u{7f}\u{85}\u{ad}\u{61c}\u{180b}\u{180e}\u{200b}\u{200c}\u{200d}\
            \u{200e}\u{2028}\u{202e}\u{2066}\u{fe00}\u{fe0f}\u{feff}\u{ffff}\u{e0041}\u{e0100}";
        let chosen: Vec<char> = chosen.chars().collect();
        prop_oneof![prop::sample::select(chosen), any::<char>()]
    }

    proptest! {
        #[test]
        fn nothing_unseen_is_shown(letters in prop::collection::vec(letters(), 0..24)) {
            let text: String = letters.into_iter().collect();
            let shown = printable(&text);
            prop_assert_eq!(&printable(&shown), &shown);
            let mut before = None;
            for letter in shown.chars() {
                let is_lone = |needs: fn(char) -> bool| before.is_some_and(needs);
                let may_stand = match CharClass::new(letter) {
                    CharClass::Seen => true,
                    CharClass::Joiner => is_lone(|it| takes_joiner(it) && !is_joiner(it)),
                    CharClass::Selector => is_lone(takes_selector),
                    CharClass::Break | CharClass::Unseen => false,
                };
                prop_assert!(may_stand, "{:?} in {:?}", letter, shown);
                before = Some(letter);
            }
            prop_assert!(!before.is_some_and(is_joiner));
        }

        #[test]
        fn what_is_seen_stays(text in "[ -~à-ÿא-ת一-鿿]{0,24}") {
            prop_assert_eq!(printable(&text), text);
        }
    }
}
