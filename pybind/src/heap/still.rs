//! The section in which the heap stands still, and what may be done in it.
//!
//! A walk holds borrowed pointers. They stay good as long as nothing of Python's runs: no bytecode,
//! no import, no finaliser, no hook, nothing that lets go of the GIL. So what is met in a
//! [`Section`] is an [`Object`], which cannot leave it and which offers only what C code does that
//! nobody can change: descriptors that C code defines, dictionaries, lists, slots of types.
//!
//! Everything else that a section needs is looked up when the module is loaded ([`resolve`]).
#![expect(unsafe_code, reason = "the slots of C types, borrowed objects")]

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::marker::PhantomData;
use std::mem;
use std::ptr::{self, NonNull};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyCapsule, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyModule, PySet, PyString,
    PyTuple, PyType, PyWeakref, PyWeakrefMethods,
};

use crate::base::slots::slot;

/// From CPython's `object.h`: the stable ABI fixes this bit.
const HEAP_TYPE: c_ulong = 1 << 9;

/// A class as `type` itself describes it, past its metaclass.
struct OfTypes {
    mro: Getter,
    dict: Getter,
    module: Getter,
    qualname: Getter,
    /// The class of `type.__dict__`.
    proxy: Py<PyType>,
    /// Since Python 3.13 `f_locals` of a frame is a view: asking for it changes nothing.
    has_views_of_locals: bool,
}

static OF_TYPES: PyOnceLock<OfTypes> = PyOnceLock::new();

/// Looks up what a section needs, once, outside of any.
pub(crate) fn resolve(py: Python<'_>) -> PyResult<()> {
    let own = py.get_type::<PyType>().getattr("__dict__")?;
    let getter = |name: &str| {
        let found = Getter::new(&own.get_item(name)?);
        found.ok_or_else(|| PyRuntimeError::new_err(format!("type.{name} is no descriptor")))
    };
    let found = OfTypes {
        mro: getter("__mro__")?,
        dict: getter("__dict__")?,
        module: getter("__module__")?,
        qualname: getter("__qualname__")?,
        proxy: own.get_type().unbind(),
        has_views_of_locals: py.version_info() >= (3, 13),
    };
    // A second interpreter's would be the same.
    drop(OF_TYPES.set(py, found));
    Ok(())
}

/// Nothing of Python's runs as long as this lives; no collection does either.
///
/// It is handed out to a closure alone, with a lifetime that nothing can outlive.
pub(crate) struct Section<'s> {
    py: Python<'s>,
    of_types: &'s OfTypes,
    /// This is a copy of the user's process: what is changed here, the user does not see.
    is_copy: bool,
    /// Ties the section to its closure.
    _own: PhantomData<fn(&'s ()) -> &'s ()>,
}

/// The collector is off as long as this lives.
struct Uncollected(bool);

impl Drop for Uncollected {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: made and dropped by the same thread, which holds the GIL.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

impl Section<'_> {
    /// Runs `body` in a section. `is_copy` says that this process is a copy of the user's.
    pub(crate) fn enter<R>(
        py: Python<'_>,
        is_copy: bool,
        body: impl for<'s> FnOnce(&'s Section<'s>) -> R,
    ) -> R {
        let of_types = OF_TYPES
            .get(py)
            .expect("resolved when the module is loaded, where there is a GIL");
        // SAFETY: the GIL is held.
        let _uncollected = Uncollected(unsafe { ffi::PyGC_Disable() } == 1);
        body(&Section {
            py,
            of_types,
            is_copy,
            _own: PhantomData,
        })
    }
}

impl<'s> Section<'s> {
    pub(crate) fn py(&self) -> Python<'s> {
        self.py
    }

    pub(crate) fn has_views_of_locals(&self) -> bool {
        self.of_types.has_views_of_locals
    }

    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// An object from outside.
    pub(crate) fn object(&'s self, object: &Bound<'_, PyAny>) -> Object<'s> {
        // SAFETY: a live object.
        unsafe { self.borrowed(object.as_ptr()) }
    }

    /// # Safety
    /// It points to a live object, and is not null.
    // SAFETY: the caller has a live object.
    pub(crate) unsafe fn borrowed(&'s self, object: *mut ffi::PyObject) -> Object<'s> {
        // SAFETY: a live object and not null, as the caller vouches.
        let object = unsafe { Bound::from_borrowed_ptr(self.py, object) };
        Object {
            object,
            section: self,
        }
    }

    /// A new reference, or nothing and an error that is dropped: it was made by C code.
    fn owned(&'s self, object: *mut ffi::PyObject) -> Option<Object<'s>> {
        // SAFETY: what C code returned: a new reference or null.
        let object = unsafe { Bound::from_owned_ptr_or_opt(self.py, object) };
        if object.is_none() {
            // SAFETY: the GIL is held.
            unsafe { ffi::PyErr_Clear() };
        }
        object.map(|object| Object {
            object,
            section: self,
        })
    }

    /// `sys.modules`, as the interpreter keeps it.
    pub(crate) fn modules(&'s self) -> Option<Dict<'s>> {
        // SAFETY: a borrowed reference; the GIL is held.
        let modules = NonNull::new(unsafe { ffi::PyImport_GetModuleDict() })?;
        // SAFETY: it lives as long as the interpreter.
        unsafe { self.borrowed(modules.as_ptr()) }.dict()
    }

    /// An object that is kept outside.
    pub(crate) fn kept(&'s self, object: &Py<PyAny>) -> Object<'s> {
        self.object(object.bind(self.py))
    }

    /// A class that is kept outside.
    pub(crate) fn class(&'s self, class: &Py<PyType>) -> Class<'s> {
        Class(self.object(class.bind(self.py).as_any()))
    }

    /// What `sys` has under a name.
    pub(crate) fn sys(&'s self, name: &CStr) -> Option<Object<'s>> {
        // SAFETY: a borrowed reference or null, without an error.
        let found = NonNull::new(unsafe { ffi::PySys_GetObject(name.as_ptr()) })?;
        // SAFETY: the dictionary of `sys` keeps it.
        Some(unsafe { self.borrowed(found.as_ptr()) })
    }
}

/// An object that is met in a section.
#[derive(Clone)]
pub(crate) struct Object<'s> {
    object: Bound<'s, PyAny>,
    section: &'s Section<'s>,
}

impl<'s> Object<'s> {
    pub(crate) fn section(&self) -> &'s Section<'s> {
        self.section
    }

    pub(crate) fn address(&self) -> usize {
        self.object.as_ptr() as usize
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::PyObject {
        self.object.as_ptr()
    }

    /// Takes it out of the section, with a reference of its own.
    pub(crate) fn unbind(self) -> Py<PyAny> {
        self.object.unbind()
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.address() == other.address()
    }

    pub(crate) fn is_none(&self) -> bool {
        self.object.is_none()
    }

    /// A class of our own.
    pub(crate) fn own<T: pyo3::PyClass>(&self) -> Option<&Bound<'s, T>> {
        self.object.cast::<T>().ok()
    }

    pub(crate) fn class(&self) -> Class<'s> {
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
    pub(crate) fn dict(&self) -> Option<Dict<'s>> {
        self.object.cast::<PyDict>().ok()?;
        Some(Dict(self.clone()))
    }

    /// The items of a list or an instance of a subclass.
    pub(crate) fn list(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
        let list = self.object.cast::<PyList>().ok()?.clone();
        let section = self.section;
        let mut position = 0;
        Some(std::iter::from_fn(move || {
            // SAFETY: a list; beyond its end nothing is returned, and an error is set.
            let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), position) };
            position += 1;
            section.item(item)
        }))
    }

    /// An item of a list or a tuple, or of an instance of a subclass.
    pub(crate) fn item(&self, position: usize) -> Option<Object<'s>> {
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
    pub(crate) fn tuple(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
        let tuple = self.object.cast::<PyTuple>().ok()?.clone();
        let section = self.section;
        let mut position = 0;
        Some(std::iter::from_fn(move || {
            // SAFETY: a tuple; beyond its end nothing is returned, and an error is set.
            let item = unsafe { ffi::PyTuple_GetItem(tuple.as_ptr(), position) };
            position += 1;
            section.item(item)
        }))
    }

    /// It is exactly a set or a frozen set.
    pub(crate) fn is_set(&self) -> bool {
        self.object.is_exact_instance_of::<PySet>()
            || self.object.is_exact_instance_of::<PyFrozenSet>()
    }

    /// The elements of exactly a set or a frozen set.
    pub(crate) fn set(&self) -> Option<impl Iterator<Item = Object<'s>> + use<'s>> {
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
    pub(crate) fn globals(&self) -> Option<Dict<'s>> {
        let module = self.object.cast::<PyModule>().ok()?;
        self.section.object(module.dict().as_any()).dict()
    }

    /// The letters of exactly a string.
    pub(crate) fn text(&self) -> Option<String> {
        let text = self.object.cast_exact::<PyString>().ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// The value of exactly a whole number, if it is not negative.
    pub(crate) fn number(&self) -> Option<u64> {
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
    pub(crate) fn attribute(&self, name: &str) -> Option<Object<'s>> {
        self.attributes()?.get(name)
    }

    /// The values of an instance's attributes, those in slots among them.
    pub(crate) fn values(&self) -> Vec<Object<'s>> {
        let attributes = self.attributes().into_iter();
        let own = attributes.flat_map(|attributes| attributes.values());
        let slots = self.class().slots();
        let in_slots = slots.iter().filter_map(|(_, slot)| slot.get(self));
        own.chain(in_slots).collect()
    }

    /// Reads an attribute that C code defines for the object's class.
    pub(crate) fn read(&self, name: &str) -> Option<Object<'s>> {
        self.class().getter(name)?.get(self)
    }

    /// Calls a method, or what a property calls, if that is C code.
    pub(crate) fn call(&self, name: &str) -> Option<Object<'s>> {
        self.class().method(name)?.call(self)
    }

    /// It is a function of C code itself.
    pub(crate) fn function(&self) -> Option<Method> {
        Method::new(&self.object)
    }

    /// The exception's own traceback, cause and context, whatever its class says.
    pub(crate) fn chain(&self) -> [(&'static str, Option<Object<'s>>); 3] {
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
    pub(crate) fn referents(&self) -> Vec<Object<'s>> {
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
    pub(crate) fn code_of_frame(&self) -> Option<Object<'s>> {
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

impl<'s> Section<'s> {
    /// An item that a container keeps; nothing, and an error that is dropped, beyond the last.
    fn item(&'s self, item: *mut ffi::PyObject) -> Option<Object<'s>> {
        if item.is_null() {
            // SAFETY: the GIL is held.
            unsafe { ffi::PyErr_Clear() };
            return None;
        }
        // SAFETY: the container keeps it.
        Some(unsafe { self.borrowed(item) })
    }
}

/// A class that is met in a section.
#[derive(Clone)]
pub(crate) struct Class<'s>(Object<'s>);

impl<'s> Class<'s> {
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// Takes it out of the section, with a reference of its own.
    pub(crate) fn unbind(self) -> Py<PyType> {
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
    pub(crate) fn module(&self) -> Option<String> {
        let of_types = self.0.section.of_types;
        of_types.module.get(&self.0)?.text()
    }

    /// `make.<locals>.Model`
    pub(crate) fn qualname(&self) -> Option<String> {
        let of_types = self.0.section.of_types;
        of_types.qualname.get(&self.0)?.text()
    }

    /// `Model`
    pub(crate) fn short_name(&self) -> String {
        let name = self.qualname().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// The class and its bases, nearest first.
    pub(crate) fn lineage(&self) -> impl Iterator<Item = Class<'s>> + use<'s> {
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
    pub(crate) fn attribute(&self, name: &str) -> Option<Object<'s>> {
        let of_one = |class: Class<'s>| class.own_attributes()?.get(name);
        self.lineage().find_map(of_one)
    }

    /// The attribute that C code defines under `name` for its instances.
    pub(crate) fn getter(&self, name: &str) -> Option<Getter> {
        Getter::new(&self.attribute(name)?.object)
    }

    /// The method that C code defines under `name`, also as a property.
    pub(crate) fn method(&self, name: &str) -> Option<Method> {
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

/// Keeps the objects that a traversal visits.
// SAFETY: a `visitproc`, which `Object::referents` alone hands out, with such a place.
unsafe extern "C" fn keep(object: *mut ffi::PyObject, place: *mut c_void) -> c_int {
    // SAFETY: the place that `Object::referents` has handed to the traversal.
    unsafe { (*place.cast::<Vec<*mut ffi::PyObject>>()).push(object) };
    0
}

/// A dictionary that is met in a section: none of its own methods is called.
#[derive(Clone)]
pub(crate) struct Dict<'s>(Object<'s>);

impl<'s> Dict<'s> {
    pub(crate) fn object(&self) -> &Object<'s> {
        &self.0
    }

    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    pub(crate) fn len(&self) -> usize {
        // SAFETY: a dictionary.
        usize::try_from(unsafe { ffi::PyDict_Size(self.0.as_ptr()) }).unwrap_or_default()
    }

    /// Keys and values. It cannot change meanwhile: nothing runs.
    pub(crate) fn items(&self) -> impl Iterator<Item = (Object<'s>, Object<'s>)> + use<'s> {
        let dict = self.0.clone();
        let mut position = 0;
        std::iter::from_fn(move || {
            let (mut key, mut value) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: a dictionary; key and value are borrowed from it.
            unsafe {
                let is_there = ffi::PyDict_Next(
                    dict.as_ptr(),
                    &raw mut position,
                    &raw mut key,
                    &raw mut value,
                ) != 0;
                is_there.then(|| (dict.section.borrowed(key), dict.section.borrowed(value)))
            }
        })
    }

    /// The entries whose keys are text.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, Object<'s>)> + use<'s> {
        self.items()
            .filter_map(|(key, value)| Some((key.text()?, value)))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = Object<'s>> + use<'s> {
        self.items().map(|(_, value)| value)
    }

    /// The value of a name.
    ///
    /// A large dictionary is looked up by hash. This compares keys of equal hash, and would run the
    /// `__eq__` of a user-defined key class. Such keys almost never collide with a short name.
    pub(crate) fn get(&self, name: &str) -> Option<Object<'s>> {
        const FEW: usize = 16;
        if self.len() <= FEW {
            let is_it = |key: &Object<'s>| {
                let key = key.object.cast_exact::<PyString>();
                key.is_ok_and(|key| key.to_str().is_ok_and(|key| key == name))
            };
            let found = self.items().find(|(key, _)| is_it(key));
            return found.map(|(_, value)| value);
        }
        let section = self.0.section;
        let key = PyString::new(section.py, name);
        // SAFETY: a dictionary and a string; the result is borrowed, or null.
        let found = unsafe { ffi::PyDict_GetItemWithError(self.0.as_ptr(), key.as_ptr()) };
        section.item(found)
    }
}

/// An attribute that C code reads: a member or a pair of getter and setter.
pub(crate) struct Getter {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl Getter {
    /// Refuses what is not such a descriptor.
    fn new(descriptor: &Bound<'_, PyAny>) -> Option<Self> {
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
    pub(crate) fn get<'s>(&self, object: &Object<'s>) -> Option<Object<'s>> {
        let (pointer, class) = (object.as_ptr(), object.object.get_type_ptr());
        // SAFETY: the descriptor's own slot; it checks that `object` is one that it can read.
        let value = unsafe { (self.get)(self.descriptor.as_ptr(), pointer, class.cast()) };
        object.section.owned(value)
    }
}

/// A function of C code.
pub(crate) struct Method(Py<PyAny>);

impl Method {
    /// Refuses what Python code could stand behind: functions and classes, and whatever has room
    /// for attributes of its own.
    pub(crate) fn new(function: &Bound<'_, PyAny>) -> Option<Self> {
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
    pub(crate) fn call<'s>(&self, object: &Object<'s>) -> Option<Object<'s>> {
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

/// How a plain value writes itself. `repr()` itself looks for signals, whose handlers are Python
/// code, and since 3.12 collects garbage; so does the `repr` of a whole number.
fn written(object: &Bound<'_, PyAny>) -> Option<String> {
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
