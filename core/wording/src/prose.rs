//! A sentence as typed spans: each output shows them in its own way.

use std::ops::AddAssign;

use gpumem_model::printable::printable;

/// A sentence of its parts: strings, [`code`](crate::code()), figures, and sentences.
#[macro_export]
macro_rules! prose {
    ($($part:expr),+ $(,)?) => {{
        let mut prose = $crate::Prose::default();
        $(prose += $part;)+
        prose
    }};
}

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Text.
    Plain(String),
    /// A name, a line of code or a command.
    Code(String),
    /// A figure that stands out.
    Figure(String),
}

impl Span {
    /// What it says.
    pub fn text(&self) -> &str {
        let (Self::Plain(text) | Self::Code(text) | Self::Figure(text)) = self;
        text
    }
}

/// A name, a line of code or a command, safe to show on one line.
pub fn code(text: &str) -> Span {
    Span::Code(printable(text).replace('`', "'"))
}

pub(crate) fn figure(text: impl Into<String>) -> Span {
    Span::Figure(text.into())
}

/// A sentence or a part of one. [`prose!`](crate::prose!) makes it of its parts.
///
/// ```
/// use gpumem_wording::{code, prose};
///
/// let advice = prose![code("del losses"), " frees ", "420 MiB"];
/// assert_eq!(advice.plain(), "del losses frees 420 MiB");
/// assert_eq!(advice.sentence().ticked(), "`del losses` frees 420 MiB.");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prose(Vec<Span>);

impl Prose {
    /// Its pieces.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// A text with code between backticks.
    pub(crate) fn of_ticked(text: &str) -> Self {
        let mut prose = Self::default();
        for (idx, part) in text.split('`').enumerate() {
            match idx % 2 {
                0 => prose += part,
                _ => prose += crate::code(part),
            }
        }
        prose
    }

    /// It says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As text alone.
    pub fn plain(&self) -> String {
        self.0.iter().map(Span::text).collect()
    }

    /// As text with code between backticks.
    pub fn ticked(&self) -> String {
        let mut text = String::new();
        for span in &self.0 {
            let tick = matches!(span, Span::Code(_)).then_some('`');
            text.extend(tick);
            text.push_str(span.text());
            text.extend(tick);
        }
        text
    }

    /// As it begins a line; code stays as it is.
    #[must_use]
    pub fn capitalised(mut self) -> Self {
        if let Some(Span::Plain(text)) = self.0.first_mut() {
            *text = capitalised(text);
        }
        self
    }

    /// A clause as a sentence.
    #[must_use]
    pub fn sentence(self) -> Self {
        let mut sentence = self.capitalised();
        sentence += ".";
        sentence
    }

    /// Without figures that stand out.
    #[must_use]
    pub(crate) fn even(&self) -> Self {
        let mut even = Self::default();
        for span in &self.0 {
            match span {
                Span::Plain(text) | Span::Figure(text) => even += &**text,
                Span::Code(_) => even += span.clone(),
            }
        }
        even
    }

    /// Parts with that between them; those that say nothing are left out.
    pub fn joined<'a>(parts: impl IntoIterator<Item = &'a Self>, between: &str) -> Self {
        let mut joined = Self::default();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if !joined.is_empty() {
                joined += between;
            }
            joined += part.clone();
        }
        joined
    }
}

impl AddAssign<&str> for Prose {
    fn add_assign(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Span::Plain(last)) => last.push_str(text),
            _ => self.0.push(Span::Plain(text.to_owned())),
        }
    }
}

impl AddAssign<String> for Prose {
    fn add_assign(&mut self, text: String) {
        *self += &*text;
    }
}

impl AddAssign<Span> for Prose {
    fn add_assign(&mut self, span: Span) {
        match span {
            Span::Plain(text) => *self += text,
            span => self.0.push(span),
        }
    }
}

impl AddAssign<Prose> for Prose {
    fn add_assign(&mut self, prose: Prose) {
        for span in prose.0 {
            *self += span;
        }
    }
}

impl From<&str> for Prose {
    fn from(text: &str) -> Self {
        prose![text]
    }
}

impl From<String> for Prose {
    fn from(text: String) -> Self {
        prose![text]
    }
}

impl From<Span> for Prose {
    fn from(span: Span) -> Self {
        prose![span]
    }
}

/// Words that begin a line.
pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_begins_a_sentence_keeps_its_first_letter() {
        let check = |prose: Prose, text: &str| assert_eq!(prose.sentence().plain(), text);
        check(
            prose![code("losses"), ", which grows"],
            "losses, which grows.",
        );
        check(prose!["the ", code("losses"), " leak"], "The losses leak.");
    }

    #[test]
    fn marks_in_a_name_are_no_marks() {
        let prose = prose![code("f(**it)"), " of ", "void g(float**)"];
        assert_eq!(prose.plain(), "f(**it) of void g(float**)");
        assert_eq!(prose.even(), prose);
    }

    #[test]
    fn texts_in_a_row_are_one_span() {
        let prose = prose!["a", String::new(), "b", figure("c").text()];
        assert_eq!(prose.spans(), [Span::Plain("abc".to_owned())]);
        assert!(Prose::from("").is_empty());
    }
}
