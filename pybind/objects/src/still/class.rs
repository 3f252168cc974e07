//! What can be asked of a class in a section, past its metaclass.

use std::ffi::{c_int, c_ulong, c_void};
use std::mem;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::{
    Class, Dict, Object,
    c_functions::{Getter, Method},
};
use gpumem_base::slots::slot;

/// From CPython's `object.h`: the stable ABI fixes this bit.
const HEAP_TYPE: c_ulong = 1 << 9;

impl<'s> Class<'s> {
    /// Where the class lies in memory.
    pub fn address(&self) -> usize {
        self.0.address()
    }

    /// Takes it out of the section, with a reference of its own.
    pub fn unbind(self) -> Py<PyType> {
        let class = self.0.object.cast_into::<PyType>();
        class.expect("a class is a type").unbind()
    }

    pub(crate) fn as_type_ptr(&self) -> *mut ffi::PyTypeObject {
        self.0.as_ptr().cast()
    }

    /// Whether it is `base` or comes from it, whatever their metaclasses say.
    pub(crate) fn is_subtype(&self, base: &Py<PyType>) -> bool {
        // SAFETY: both are live types.
        unsafe { ffi::PyType_IsSubtype(self.as_type_ptr(), base.as_ptr().cast()) != 0 }
    }

    pub(crate) fn is_class(&self, class: &Py<PyType>) -> bool {
        self.0.as_ptr() == class.as_ptr()
    }

    /// It was made at run time, as Python code does.
    pub(crate) fn is_heap_type(&self) -> bool {
        // SAFETY: a live type.
        unsafe { ffi::PyType_GetFlags(self.as_type_ptr()) & HEAP_TYPE != 0 }
    }

    /// `torch.nn.parameter`, as the class itself says it.
    pub fn module(&self) -> Option<String> {
        let of_types = self.0.section.of_types;
        of_types.module.get(&self.0)?.text()
    }

    /// `make.<locals>.Model`
    pub fn qualname(&self) -> Option<String> {
        let of_types = self.0.section.of_types;
        of_types.qualname.get(&self.0)?.text()
    }

    /// `Model`
    pub(crate) fn short_name(&self) -> String {
        let name = self.qualname().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// The class and its bases, nearest first.
    pub fn lineage(&self) -> impl Iterator<Item = Class<'s>> + use<'s> {
        let mro = self.0.section.of_types.mro.get(&self.0);
        let bases = mro.and_then(|mro| mro.tuple());
        bases.into_iter().flatten().filter_map(|it| it.as_class())
    }

    /// The names and values that stand in this class alone.
    pub(crate) fn own_attributes(&self) -> Option<Dict<'s>> {
        let section = self.0.section;
        let proxy = section.of_types.dict.get(&self.0)?;
        if !proxy.class().is_class(&section.of_types.proxy) {
            return None;
        }
        // The proxy refers to nothing but the dictionary behind it.
        let mut behind: *mut ffi::PyObject = ptr::null_mut();
        // SAFETY: the slot of `mappingproxy` on its instance; `note` takes such a place.
        unsafe {
            let traverse = slot(proxy.class().as_type_ptr(), ffi::Py_tp_traverse)?;
            let traverse = mem::transmute::<*mut c_void, ffi::traverseproc>(traverse);
            traverse(proxy.as_ptr(), note, (&raw mut behind).cast());
        }
        section.item(behind)?.dict()
    }

    /// What the class or the nearest of its bases has under `name`, as it stands there.
    pub fn attribute(&self, name: &str) -> Option<Object<'s>> {
        let of_one = |class: Class<'s>| class.own_attributes()?.get(name);
        self.lineage().find_map(of_one)
    }

    /// The attribute that C code defines under `name` for its instances.
    pub fn getter(&self, name: &str) -> Option<Getter> {
        Getter::new(&self.attribute(name)?.object)
    }

    /// The method that C code defines under `name`, also as a property.
    pub fn method(&self, name: &str) -> Option<Method> {
        let found = self.attribute(name)?;
        let is_property = found.object.get_type_ptr() == &raw mut ffi::PyProperty_Type;
        if is_property {
            return Method::new(&found.read("fget")?.object);
        }
        Method::new(&found.object)
    }

    /// What `__slots__` makes in a class and its bases, by name.
    pub(crate) fn slots(&self) -> Vec<(String, Getter)> {
        let of_one = |class: Class<'s>| {
            let own = class.own_attributes();
            own.into_iter().flat_map(|own| own.items())
        };
        let slot = |(name, descriptor): (Object<'s>, Object<'s>)| {
            let is_slot = descriptor.object.get_type_ptr() == &raw mut ffi::PyMemberDescr_Type;
            let name = name.text().filter(|_| is_slot)?;
            Some((name, Getter::new(&descriptor.object)?))
        };
        self.lineage().flat_map(of_one).filter_map(slot).collect()
    }
}

/// Keeps the first object that a traversal visits.
// SAFETY: a `visitproc`, which `Class::own_attributes` alone hands out, with such a place.
unsafe extern "C" fn note(object: *mut ffi::PyObject, place: *mut c_void) -> c_int {
    // SAFETY: the place that `Class::own_attributes` has handed to the traversal.
    unsafe { *place.cast::<*mut ffi::PyObject>() = object };
    1
}
