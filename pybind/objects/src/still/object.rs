//! What can be asked of an object in a section.

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyCapsule, PyDict, PyFrozenSet, PyInt, PyList, PyModule, PySet, PyString, PyTuple,
    PyType, PyWeakref,
};

use super::{Class, Dict, Method, Object, Section, written::written};
use gpumem_base::slots::slot;

impl<'s> Object<'s> {
    /// The section in which it is read.
    pub fn section(&self) -> &'s Section<'s> {
        self.section
    }

    /// Where it lies in memory.
    pub fn address(&self) -> usize {
        self.object.as_ptr() as usize
    }

    /// A borrowed pointer to it.
    pub fn as_ptr(&self) -> *mut ffi::PyObject {
        self.object.as_ptr()
    }

    /// Takes it out of the section, with a reference of its own.
    pub fn unbind(self) -> Py<PyAny> {
        self.object.unbind()
    }

    /// Whether both are the same object.
    pub fn is(&self, other: &Self) -> bool {
        self.address() == other.address()
    }

    /// Whether it is `None`.
    pub fn is_none(&self) -> bool {
        self.object.is_none()
    }

    /// A class of our own.
    pub fn own<T: pyo3::PyClass>(&self) -> Option<&Bound<'s, T>> {
        self.object.cast::<T>().ok()
    }

    /// Its class.
    pub fn class(&self) -> Class<'s> {
        Class(Self {
            object: self.object.get_type().into_any(),
            section: self.section,
        })
    }

    /// It is a class itself.
    pub(crate) fn as_class(&self) -> Option<Class<'s>> {
        self.object.cast::<PyType>().ok()?;
        Some(Class(self.clone()))
    }

    /// It is a dictionary, or comes from one.
    pub fn dict(&self) -> Option<Dict<'s>> {
        self.object.cast::<PyDict>().ok()?;
        Some(Dict(self.clone()))
    }

    /// The items of a list or an instance of a subclass.
    pub fn list(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
        self.object.cast::<PyList>().ok()?;
        Some(self.items())
    }

    /// An item of a list or a tuple, or of an instance of a subclass.
    pub fn item(&self, position: usize) -> Option<Object<'s>> {
        let position = ffi::Py_ssize_t::try_from(position).ok()?;
        let object = self.as_ptr();
        // SAFETY: a list or a tuple; beyond its end nothing is returned, and an error is set.
        let item = unsafe {
            if ffi::PyList_Check(object) != 0 {
                ffi::PyList_GetItem(object, position)
            } else if ffi::PyTuple_Check(object) != 0 {
                ffi::PyTuple_GetItem(object, position)
            } else {
                return None;
            }
        };
        self.section.item(item)
    }

    /// The items of a tuple or an instance of a subclass.
    pub fn tuple(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
        self.object.cast::<PyTuple>().ok()?;
        Some(self.items())
    }

    /// The items of a list or a tuple, as far as there are any.
    fn items(&self) -> impl Iterator<Item = Object<'s>> + use<'s> {
        let object = self.clone();
        (0..).map_while(move |position| object.item(position))
    }

    /// It is exactly a set or a frozen set.
    pub fn is_set(&self) -> bool {
        self.object.is_exact_instance_of::<PySet>()
            || self.object.is_exact_instance_of::<PyFrozenSet>()
    }

    /// The elements of exactly a set or a frozen set.
    pub fn set(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
        self.is_set().then(|| self.elements())?
    }

    /// What the C iterator of one of CPython's own containers gives.
    pub(crate) fn elements(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
        let section = self.section;
        // SAFETY: a live object whose class is CPython's own, as the caller knows.
        let elements = section.owned(unsafe { ffi::PyObject_GetIter(self.as_ptr()) })?;
        Some(std::iter::from_fn(move || {
            // SAFETY: an iterator; nothing and perhaps an error at its end.
            section.owned(unsafe { ffi::PyIter_Next(elements.as_ptr()) })
        }))
    }

    pub(crate) fn is_exact_dict(&self) -> bool {
        self.object.is_exact_instance_of::<PyDict>()
    }

    pub(crate) fn is_exact_list(&self) -> bool {
        self.object.is_exact_instance_of::<PyList>()
    }

    pub(crate) fn is_module(&self) -> bool {
        self.object.is_instance_of::<PyModule>()
    }

    /// The globals of a module.
    pub fn globals(&self) -> Option<Dict<'s>> {
        let module = self.object.cast::<PyModule>().ok()?;
        self.section.object(module.dict().as_any()).dict()
    }

    /// The letters of exactly a string.
    pub fn text(&self) -> Option<String> {
        let text = self.object.cast_exact::<PyString>().ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// The value of exactly a whole number, if it is not negative.
    pub fn number(&self) -> Option<u64> {
        self.object.cast_exact::<PyInt>().ok()?.extract().ok()
    }

    pub(crate) fn is_true(&self) -> Option<bool> {
        Some(self.object.cast_exact::<PyBool>().ok()?.is_true())
    }

    /// How one of CPython's own values writes itself: a string, a number, a truth value, nothing,
    /// or a short tuple of those.
    pub(crate) fn literal(&self) -> Option<String> {
        let Ok(tuple) = self.object.cast_exact::<PyTuple>() else {
            return written(&self.object);
        };
        if tuple.len() > 4 {
            return None;
        }
        let items: Option<Vec<String>> = tuple.iter().map(|item| written(&item)).collect();
        let items = items?;
        Some(match items.as_slice() {
            [only] => format!("({only},)"),
            items => format!("({})", items.join(", ")),
        })
    }

    /// What `str()` says, if that is C code.
    pub(crate) fn str_text(&self) -> Option<String> {
        let class = self.class();
        let is_of_c = |name: &str| {
            let slot = class.attribute(name);
            slot.is_some_and(|it| it.object.get_type_ptr() == &raw mut ffi::PyWrapperDescr_Type)
        };
        if !is_of_c("__str__") || !is_of_c("__repr__") {
            return None;
        }
        let words = self.object.str().ok()?;
        Some(words.to_string_lossy().into_owned())
    }

    /// The attributes of an instance itself; nothing if its class gives it no room for them.
    ///
    /// CPython creates the dictionary at the first access and keeps it.
    pub(crate) fn attributes(&self) -> Option<Dict<'s>> {
        // SAFETY: a live object; the result is a new reference, or null with an error.
        let dict = unsafe { ffi::PyObject_GenericGetDict(self.as_ptr(), ptr::null_mut()) };
        self.section.owned(dict)?.dict()
    }

    /// One attribute of the instance itself.
    pub fn attribute(&self, name: &str) -> Option<Object<'s>> {
        self.attributes()?.get(name)
    }

    /// The values of an instance's attributes, those in slots among them.
    pub fn values(&self) -> Vec<Object<'s>> {
        let attributes = self.attributes().into_iter();
        let own = attributes.flat_map(|attributes| attributes.values());
        let slots = self.class().slots();
        let in_slots = slots.iter().filter_map(|(_, slot)| slot.get(self));
        own.chain(in_slots).collect()
    }

    /// Reads an attribute that C code defines for the object's class.
    pub fn read(&self, name: &str) -> Option<Object<'s>> {
        self.class().getter(name)?.get(self)
    }

    /// Calls a method, or what a property calls, if that is C code.
    pub fn call(&self, name: &str) -> Option<Object<'s>> {
        self.class().method(name)?.call(self)
    }

    /// It is a function of C code itself.
    pub fn function(&self) -> Option<Method> {
        Method::new(&self.object)
    }

    /// The exception's own traceback, cause and context, whatever its class says.
    pub fn chain(&self) -> [(&'static str, Option<Object<'s>>); 3] {
        if !self
            .object
            .is_instance_of::<pyo3::exceptions::PyBaseException>()
        {
            return [
                ("__traceback__", None),
                ("__cause__", None),
                ("__context__", None),
            ];
        }
        // SAFETY: an instance of `BaseException`; each result is a new reference or null.
        let (traceback, cause, context) = unsafe {
            (
                ffi::PyException_GetTraceback(self.as_ptr()),
                ffi::PyException_GetCause(self.as_ptr()),
                ffi::PyException_GetContext(self.as_ptr()),
            )
        };
        [
            ("__traceback__", self.section.owned(traceback)),
            ("__cause__", self.section.owned(cause)),
            ("__context__", self.section.owned(context)),
        ]
    }

    /// Keeps what the dictionaries that an object refers to hold, for ever: in a copy of the process,
    /// which is about to change them, nothing may be finalised.
    pub(crate) fn pin_dictionaries(&self) {
        for object in self.referents() {
            if object.is_exact_dict() {
                let values = object.dict().into_iter().flat_map(|dict| dict.values());
                values.for_each(mem::forget);
            }
        }
    }

    /// The objects that `tp_traverse` visits.
    pub fn referents(&self) -> Vec<Object<'s>> {
        let mut found: Vec<*mut ffi::PyObject> = Vec::new();
        // SAFETY: the slot of a live object's type on it; `keep` takes such a place.
        unsafe {
            if let Some(traverse) = slot(self.object.get_type_ptr(), ffi::Py_tp_traverse) {
                let traverse = mem::transmute::<*mut c_void, ffi::traverseproc>(traverse);
                traverse(self.as_ptr(), keep, (&raw mut found).cast());
            }
        }
        let found = found.into_iter();
        found.filter_map(|it| self.section.item(it)).collect()
    }

    /// The code of exactly a frame.
    pub fn code_of_frame(&self) -> Option<Object<'s>> {
        // SAFETY: a frame, whose code is a new reference.
        let code = unsafe { ffi::PyFrame_GetCode(self.as_ptr().cast()) };
        self.section.owned(code.cast())
    }

    /// What a weak reference, or a weak proxy, leads to, if that lives.
    pub(crate) fn referent(&self) -> Option<Object<'s>> {
        let weak = self.object.cast::<PyWeakref>().ok()?;
        weak.upgrade().map(|object| self.section.object(&object))
    }

    /// It is exactly a capsule: a pointer that C code wrapped.
    pub(crate) fn is_capsule(&self) -> bool {
        self.object.is_exact_instance_of::<PyCapsule>()
    }

    /// The pointer inside exactly a capsule of this name.
    pub(crate) fn capsule(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: null with an error set if it is no such capsule.
        let pointer = unsafe { ffi::PyCapsule_GetPointer(self.as_ptr(), name.as_ptr()) };
        if pointer.is_null() {
            // SAFETY: the GIL is held.
            unsafe { ffi::PyErr_Clear() };
        }
        NonNull::new(pointer)
    }
}

/// Keeps the objects that a traversal visits.
// SAFETY: a `visitproc`, which `Object::referents` alone hands out, with such a place.
unsafe extern "C" fn keep(object: *mut ffi::PyObject, place: *mut c_void) -> c_int {
    // SAFETY: the place that `Object::referents` has handed to the traversal.
    unsafe { (*place.cast::<Vec<*mut ffi::PyObject>>()).push(object) };
    0
}
