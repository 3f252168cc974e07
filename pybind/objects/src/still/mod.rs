//! The section in which the heap stands still, and what may be done in it.
//!
//! A walk holds borrowed pointers. They stay good as long as nothing of Python's runs: no bytecode,
//! no import, no finaliser, no hook, nothing that lets go of the GIL. So what is met in a
//! [`Section`] is an [`Object`], which cannot leave it and which offers only what C code does that
//! nobody can change: descriptors that C code defines, dictionaries, lists, slots of types.
//!
//! Everything else that a section needs is looked up when the module is loaded ([`resolve`]).
#![expect(unsafe_code, reason = "the slots of C types, borrowed objects")]

mod c_functions;
mod class;
mod dict;
mod object;
mod written;

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::NonNull;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

pub use c_functions::Getter;
pub(crate) use c_functions::Method;

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
pub fn resolve(py: Python<'_>) -> PyResult<()> {
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
pub struct Section<'s> {
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
    pub fn enter<R>(
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
    /// Proof that the GIL is held.
    pub fn py(&self) -> Python<'s> {
        self.py
    }

    pub(crate) fn has_views_of_locals(&self) -> bool {
        self.of_types.has_views_of_locals
    }

    /// Whether this process is a copy of the user's.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// An object from outside.
    pub fn object(&'s self, object: &Bound<'_, PyAny>) -> Object<'s> {
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
    pub fn modules(&'s self) -> Option<Dict<'s>> {
        // SAFETY: a borrowed reference; the GIL is held.
        let modules = NonNull::new(unsafe { ffi::PyImport_GetModuleDict() })?;
        // SAFETY: it lives as long as the interpreter.
        unsafe { self.borrowed(modules.as_ptr()) }.dict()
    }

    /// An object that is kept outside.
    pub fn kept(&'s self, object: &Py<PyAny>) -> Object<'s> {
        self.object(object.bind(self.py))
    }

    /// A class that is kept outside.
    pub fn class(&'s self, class: &Py<PyType>) -> Class<'s> {
        Class(self.object(class.bind(self.py).as_any()))
    }

    /// What `sys` has under a name.
    pub fn sys(&'s self, name: &CStr) -> Option<Object<'s>> {
        // SAFETY: a borrowed reference or null, without an error.
        let found = NonNull::new(unsafe { ffi::PySys_GetObject(name.as_ptr()) })?;
        // SAFETY: the dictionary of `sys` keeps it.
        Some(unsafe { self.borrowed(found.as_ptr()) })
    }

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

/// An object that is met in a section.
#[derive(Clone)]
pub struct Object<'s> {
    object: Bound<'s, PyAny>,
    section: &'s Section<'s>,
}

/// A class that is met in a section.
#[derive(Clone)]
pub struct Class<'s>(Object<'s>);

/// A dictionary that is met in a section: none of its own methods is called.
#[derive(Clone)]
pub struct Dict<'s>(Object<'s>);
