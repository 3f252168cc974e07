//! An exception with those that led to it and those that it groups.

use std::collections::{HashSet, VecDeque};

use gpumem_readers::oom::ClassName;
use pyo3::exceptions::PyBaseException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use gpumem_base::text::Text;

/// The most errors of a chain that are examined.
const MAX_LINKS: usize = 64;

/// The most bytes of an error's message that are examined.
const MAX_TEXT: usize = 1 << 20;

/// `error`, what it groups, its causes and contexts, nearest first, each once.
pub(super) fn error_chain<'py>(error: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = error.py();
    let mut links: Vec<Bound<'py, PyAny>> = Vec::new();
    let mut seen = HashSet::new();
    let mut open = VecDeque::from([error.clone()]);
    while let Some(link) = open.pop_front() {
        let is_error = link.is_instance_of::<PyBaseException>();
        if !is_error || links.len() == MAX_LINKS || !seen.insert(link.as_ptr()) {
            continue;
        }
        open.extend(grouped(&link)?);
        for name in [intern!(py, "__cause__"), intern!(py, "__context__")] {
            open.push_back(kept(&link, name)?);
        }
        links.push(link);
    }
    Ok(links)
}

/// The names of an exception's classes, the most derived first.
pub(super) fn classes(error: &Bound<'_, PyAny>) -> Vec<ClassName> {
    let word = |class: &Bound<'_, PyType>, name: &str| {
        let word = class.getattr(name).and_then(|word| word.extract::<Text>());
        word.unwrap_or_default().0
    };
    let classes = error.get_type().mro();
    let classes = classes
        .iter()
        .filter_map(|class| class.cast_into::<PyType>().ok());
    classes
        .map(|class| ClassName {
            module: word(&class, "__module__"),
            name: word(&class, "__name__"),
        })
        .collect()
}

/// All texts among an exception's arguments.
pub(super) fn text(error: &Bound<'_, PyAny>) -> PyResult<String> {
    let arguments = kept(error, intern!(error.py(), "args"))?;
    let mut texts = String::new();
    for argument in arguments.cast::<PyTuple>()?.iter() {
        if texts.len() > MAX_TEXT {
            break;
        }
        if let Ok(argument) = argument.cast::<PyString>() {
            if !texts.is_empty() {
                texts.push(' ');
            }
            texts.push_str(&argument.to_string_lossy());
        }
    }
    Ok(texts)
}

/// What `BaseException` itself keeps under a name, whatever a class of the user's says.
fn kept<'py>(
    error: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = error.py();
    let slot = py.get_type::<PyBaseException>().getattr(name)?;
    slot.call_method1(intern!(py, "__get__"), (error, error.get_type()))
}

/// The errors of an `ExceptionGroup`; of the one for Python 3.10 too.
fn grouped<'py>(error: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_group = classes(error).iter().any(|class| {
        class.name == "BaseExceptionGroup"
            && matches!(
                class.module.as_str(),
                "builtins" | "exceptiongroup._exceptions" | "exceptiongroup"
            )
    });
    if !is_group {
        return Ok(Vec::new());
    }
    // Both keep them as the second argument, too, though not always as a tuple.
    let arguments = kept(error, intern!(error.py(), "args"))?;
    let Ok(errors) = arguments.get_item(1) else {
        return Ok(Vec::new());
    };
    let errors = errors.try_iter()?;
    errors.take(MAX_LINKS).collect()
}
