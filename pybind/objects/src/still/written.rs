//! How plain values write themselves, without calling Python code.

use std::mem;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// How a plain value writes itself. `repr()` itself looks for signals, whose handlers are Python
/// code, and since 3.12 collects garbage; so does the `repr` of a whole number.
pub(super) fn written(object: &Bound<'_, PyAny>) -> Option<String> {
    if object.is_none() {
        return Some("None".to_owned());
    }
    if let Ok(truth) = object.cast_exact::<PyBool>() {
        return Some(if truth.is_true() { "True" } else { "False" }.to_owned());
    }
    if let Ok(number) = object.cast_exact::<PyInt>() {
        let number: Option<i64> = number.extract().ok();
        return number.map(|number| number.to_string());
    }
    let is_plain =
        object.is_exact_instance_of::<PyString>() || object.is_exact_instance_of::<PyFloat>();
    is_plain.then(|| by_its_slot(object))?
}

/// What `tp_repr` of a string's or a float's class writes: C code that calls nothing.
fn by_its_slot(object: &Bound<'_, PyAny>) -> Option<String> {
    // SAFETY: the class of a live object, which has this slot; the result is a new reference, or
    // null with an error.
    let shown = unsafe {
        let slot = ffi::PyType_GetSlot(object.get_type_ptr(), ffi::Py_tp_repr);
        let represent: ffi::reprfunc = mem::transmute(ptr::NonNull::new(slot)?);
        Bound::from_owned_ptr_or_err(object.py(), represent(object.as_ptr())).ok()?
    };
    let shown = shown.cast_into_exact::<PyString>().ok()?;
    Some(shown.to_string_lossy().into_owned())
}
