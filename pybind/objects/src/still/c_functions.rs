//! Attributes that C code reads, and functions of C code.

use std::ffi::c_void;
use std::mem;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::{Object, Section};
use gpumem_base::slots::slot;

/// An attribute that C code reads: a member or a pair of getter and setter.
pub struct Getter {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl Getter {
    /// Refuses what is not such a descriptor.
    pub(super) fn new(descriptor: &Bound<'_, PyAny>) -> Option<Self> {
        let class = descriptor.get_type_ptr();
        let is_read_by_c =
            class == &raw mut ffi::PyGetSetDescr_Type || class == &raw mut ffi::PyMemberDescr_Type;
        if !is_read_by_c {
            return None;
        }
        // SAFETY: a ready type, whose slot of this number has this signature.
        let get = unsafe {
            let get = slot(class, ffi::Py_tp_descr_get)?;
            mem::transmute::<*mut c_void, ffi::descrgetfunc>(get)
        };
        Some(Self {
            descriptor: descriptor.clone().unbind(),
            get,
        })
    }

    /// Reads it from `object`.
    pub fn get<'s>(&self, object: &Object<'s>) -> Option<Object<'s>> {
        let (pointer, class) = (object.as_ptr(), object.object.get_type_ptr());
        // SAFETY: the descriptor's own slot; it checks that `object` is one that it can read.
        let value = unsafe { (self.get)(self.descriptor.as_ptr(), pointer, class.cast()) };
        object.section.owned(value)
    }
}

/// A function of C code.
pub struct Method(Py<PyAny>);

impl Method {
    /// Refuses what Python code could stand behind: functions and classes, and whatever has room
    /// for attributes of its own.
    pub fn new(function: &Bound<'_, PyAny>) -> Option<Self> {
        let class = function.get_type();
        let is_of_c = !class
            .name()
            .is_ok_and(|name| name == "function" || name == "method")
            && is_called_by_c(&class)
            && !function.is_instance_of::<PyType>()
            && !has_own_attributes(function);
        is_of_c.then(|| Self(function.clone().unbind()))
    }

    /// Calls it with one object.
    pub fn call<'s>(&self, object: &Object<'s>) -> Option<Object<'s>> {
        self.call_with(&[object])
    }

    /// Calls it with one object or more.
    pub(crate) fn call_with<'s>(&self, objects: &[&Object<'s>]) -> Option<Object<'s>> {
        let section = objects.first()?.section;
        let arguments = objects.iter().map(|object| &object.object);
        let arguments = PyTuple::new(section.py, arguments).ok()?;
        // SAFETY: a function of C code and a tuple.
        let result = unsafe { ffi::PyObject_CallObject(self.0.as_ptr(), arguments.as_ptr()) };
        section.owned(result)
    }
}

/// No class on the way has a `__call__` of Python's.
fn is_called_by_c(class: &Bound<'_, PyType>) -> bool {
    Section::enter(class.py(), false, |section| {
        let class = section.object(class.as_any()).as_class();
        let call = class.and_then(|class| class.attribute("__call__"));
        call.is_some_and(|call| call.object.get_type_ptr() == &raw mut ffi::PyWrapperDescr_Type)
    })
}

fn has_own_attributes(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object; the result is a new reference, or null with an error.
    unsafe {
        let dict = ffi::PyObject_GenericGetDict(object.as_ptr(), ptr::null_mut());
        let dict = Bound::from_owned_ptr_or_opt(object.py(), dict);
        ffi::PyErr_Clear();
        dict.is_some()
    }
}
