//! What types have in the slots of C's interface.
#![expect(unsafe_code, reason = "the slots of C types")]

use std::ffi::{c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyType};

/// Whether an object's class leaves it to Python's own C code to look up an attribute, as
/// modules and plain objects do.
pub(crate) fn reads_attributes_in_c(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let look_up = |class: &Bound<'_, PyType>| {
        // SAFETY: the class is borrowed and the GIL held.
        unsafe { slot(class.as_type_ptr(), ffi::Py_tp_getattro) }
    };
    let own = look_up(&object.get_type());
    own == look_up(&py.get_type::<PyModule>()) || own == look_up(&py.get_type::<PyAny>())
}

/// What a type has in a slot of the C interface; `None` if that is empty.
///
/// # Safety
/// `class` is a live type and the GIL is held.
// SAFETY: the caller has a live type and holds the GIL.
pub unsafe fn slot(class: *mut ffi::PyTypeObject, which: c_int) -> Option<*mut c_void> {
    // SAFETY: a live type, under the GIL. From 3.10 on the slots of static types can be read, too.
    let slot = unsafe { ffi::PyType_GetSlot(class, which) };
    (!slot.is_null()).then_some(slot)
}
