//! Text of the user's, whatever it holds.

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
