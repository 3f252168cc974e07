//! What gpumem raises in Python.

use std::io;
use std::path::PathBuf;

use gpumem_model::printable::printable_lines;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyUserWarning};
use pyo3::prelude::*;

create_exception!(gpumem, GpuMemError, PyException, "What gpumem raises.");
create_exception!(
    gpumem,
    RecordingError,
    GpuMemError,
    "Bytes that are not a recording; `offset` says where."
);
create_exception!(
    gpumem,
    RecordingWarning,
    PyUserWarning,
    "A recording of which a part is missing; what is there is read."
);
create_exception!(
    gpumem,
    DeviceError,
    GpuMemError,
    "A device or source that is not there, or that refuses."
);

/// A `RecordingError` about the byte at `offset`.
pub fn raised(py: Python<'_>, message: &str, offset: usize) -> PyErr {
    // Names in files, and of files, come from others.
    let raised = RecordingError::new_err(printable_lines(message));
    // The message holds the offset too; a failure to set it says nothing new.
    drop(raised.value(py).setattr("offset", offset));
    raised
}

/// `error` with the file's name, as Python's own `open` says it.
pub fn file_error(path: PathBuf, error: &io::Error) -> PyErr {
    if let Some(code) = error.raw_os_error() {
        return PyOSError::new_err((code, system_message(error), path.into_os_string()));
    }
    // A zero cannot be in a name, and cannot be seen in a message.
    let name = path.to_string_lossy().replace('\0', "\\x00");
    PyOSError::new_err(std::format!("{name}: {error}"))
}

/// The system's message, without the number that Rust adds.
pub fn system_message(error: &io::Error) -> String {
    let mut message = error.to_string();
    message.truncate(message.find(" (os error").unwrap_or(message.len()));
    message
}
