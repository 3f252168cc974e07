//! Text of the user's, whatever it holds: on its way in, and made safe to show on its way out.

use gpumem_model::printable::{printable, printable_report};
use gpumem_report as report;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// A text that the user chose: a label, a name, an id, an error's words.
///
/// Python's strings hold halves of surrogate pairs as well, which file names, frontends and files
/// of others bring along and UTF-8 cannot hold. Extracting a `String` raises `UnicodeEncodeError`
/// there; here they become U+FFFD.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        Ok(Self(text.to_string_lossy().into_owned()))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

/// Several of them.
pub(crate) fn strings(texts: Vec<Text>) -> Vec<String> {
    texts.into_iter().map(String::from).collect()
}

/// A text on one line, as a terminal may show it.
#[pyfunction(name = "_printable")]
pub(crate) fn printable_text(text: Text) -> String {
    let Text(text) = text;
    printable(&text)
}

/// A text of several lines for a terminal, or for the log of a CI job.
#[pyfunction(name = "_printable_report")]
pub(crate) fn report_text(text: Text) -> String {
    let Text(text) = text;
    printable_report(&text)
}

/// A text as Markdown that shows it as it is.
#[pyfunction(name = "_markdown_text")]
pub(crate) fn markdown_text(text: Text) -> String {
    let Text(text) = text;
    report::markdown_text(&text)
}

/// A name or a line of code as Markdown.
#[pyfunction(name = "_markdown_code")]
pub(crate) fn markdown_code(text: Text) -> String {
    let Text(text) = text;
    report::markdown_code(&text)
}
