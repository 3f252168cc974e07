//! Text of the user's, whatever it holds: on its way in, and made safe to show on its way out.

use std::ffi::OsStr;
use std::path::Path;

use gpumem_heap::LONGEST_OF_FIX;
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
pub struct Text(pub String);

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

/// The text that code is in.
#[derive(Debug)]
pub struct SourceCode {
    /// All of it.
    pub text: String,
    /// The name of its file; `None` of a notebook's cell.
    pub file: Option<String>,
}

/// Code without a file.
impl From<String> for SourceCode {
    fn from(text: String) -> Self {
        Self { text, file: None }
    }
}

/// The file, or the cell, by the name that code has of it; of a longer one no fix is known.
pub fn code_of(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Option<SourceCode>> {
    let lines = py.import("linecache")?.call_method1("getlines", (path,))?;
    let Text(text) = PyString::new(py, "")
        .call_method1("join", (lines,))?
        .extract()?;
    let file = file_name(Path::new(&path.extract::<String>()?));
    let code = SourceCode { text, file };
    Ok(Some(code).filter(|it| (1..=LONGEST_OF_FIX).contains(&it.text.len())))
}

/// Kernels may write cells to files: ipykernel for its debugger, marimo.
fn file_name(path: &Path) -> Option<String> {
    let names = |it: &OsStr| it.to_string_lossy().into_owned();
    let name = names(path.file_name()?);
    let folder = path.parent().and_then(Path::file_name).map(names);
    let is_cell = name.starts_with("__marimo__cell_")
        || folder.is_some_and(|it| it.starts_with("ipykernel_"));
    (!is_cell && path.is_file()).then_some(name)
}

/// Several of them.
pub fn strings(texts: Vec<Text>) -> Vec<String> {
    texts.into_iter().map(String::from).collect()
}

/// A text on one line, as a terminal may show it.
#[pyfunction(name = "_printable")]
pub fn printable_text(text: Text) -> String {
    let Text(text) = text;
    printable(&text)
}

/// A text of several lines for a terminal, or for the log of a CI job.
#[pyfunction(name = "_printable_report")]
pub fn report_text(text: Text) -> String {
    let Text(text) = text;
    printable_report(&text)
}

/// A text as Markdown that shows it as it is.
#[pyfunction(name = "_markdown_text")]
pub fn markdown_text(text: Text) -> String {
    let Text(text) = text;
    report::markdown_text(&text)
}

/// A name or a line of code as Markdown.
#[pyfunction(name = "_markdown_code")]
pub fn markdown_code(text: Text) -> String {
    let Text(text) = text;
    report::markdown_code(&text)
}
