//! How a run ended, from the exception that ended it.

use gpumem_core::recording::Status;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Classes whose very name says it: torch, cupy and sim; TensorFlow.
const OUT_OF_MEMORY_CLASSES: [&str; 2] = ["OutOfMemoryError", "ResourceExhaustedError"];

/// Classes that stand for any failure of a runtime: the message tells.
const OUT_OF_MEMORY_MESSAGES: [(&str, &str); 6] = [
    ("JaxRuntimeError", "RESOURCE_EXHAUSTED"),
    ("XlaRuntimeError", "RESOURCE_EXHAUSTED"),
    ("RuntimeError", "CUDA out of memory"),
    ("CudaAPIError", "CUDA_ERROR_OUT_OF_MEMORY"),
    ("CUDARuntimeError", "cudaErrorMemoryAllocation"),
    ("MemoryError", "std::bad_alloc: out_of_memory"),
];

/// The status of a run that ended with `error`.
///
/// Goes by class names, so that no framework is imported, and reads messages
/// from `args`, for a `__str__` is the user's code.
pub(crate) fn of_error(error: &Bound<'_, PyAny>) -> PyResult<Status> {
    if error.is_instance_of::<PyKeyboardInterrupt>() {
        return Ok(Status::Interrupted);
    }
    let mut names: Vec<String> = Vec::new();
    for class in error.get_type().mro() {
        names.push(class.getattr("__name__")?.extract()?);
    }
    let is_a = |class: &str| names.iter().any(|name| name == class);
    if OUT_OF_MEMORY_CLASSES.into_iter().any(is_a) {
        return Ok(Status::OutOfMemory);
    }
    for (class, words) in OUT_OF_MEMORY_MESSAGES {
        if is_a(class) && message(error)?.contains(words) {
            return Ok(Status::OutOfMemory);
        }
    }
    Ok(Status::Error)
}

/// All texts among the exception's arguments.
fn message(error: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut texts = Vec::new();
    for argument in error.getattr("args")?.try_iter()? {
        if let Ok(text) = argument?.cast::<PyString>() {
            texts.push(text.to_string_lossy().into_owned());
        }
    }
    Ok(texts.join(" "))
}
