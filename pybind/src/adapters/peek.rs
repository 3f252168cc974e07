//! Reading attributes without running Python code.
//!
//! A plain `getattr` may enter a property, `__getattr__` or `__getattribute__` of the user's, of the
//! class or of its metaclass. Here only what C code defines is called, and dictionaries are read.
#![expect(unsafe_code, reason = "the slots of C types")]

use std::ffi::{c_int, c_void};
use std::mem;

use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping, PyModule, PyString, PyTuple, PyType};

/// How `type` itself reads a class: no metaclass has a say.
struct OfType {
    mro: Getter,
    dict: Getter,
}

static OF_TYPE: PyOnceLock<OfType> = PyOnceLock::new();

impl OfType {
    fn get(py: Python<'_>) -> PyResult<&'static Self> {
        OF_TYPE.get_or_try_init(py, || {
            let own = py.get_type::<PyType>();
            let descriptors = own.getattr("__dict__")?;
            Ok(Self {
                mro: Getter::of(descriptors.get_item("__mro__")?)?,
                dict: Getter::of(descriptors.get_item("__dict__")?)?,
            })
        })
    }
}

/// An attribute that C code reads: a member or a pair of getter and setter.
pub(crate) struct Getter {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl Getter {
    /// Refuses what is not such a descriptor.
    pub(crate) fn of(descriptor: Bound<'_, PyAny>) -> PyResult<Self> {
        let class = descriptor.get_type().as_type_ptr();
        let is_read_by_c =
            class == &raw mut ffi::PyGetSetDescr_Type || class == &raw mut ffi::PyMemberDescr_Type;
        if !is_read_by_c {
            return Err(PyAttributeError::new_err("read by Python code"));
        }
        // SAFETY: a ready type, whose slot of this number has this signature.
        let get = unsafe {
            let get = slot(class, ffi::Py_tp_descr_get);
            get.map(|get| mem::transmute::<*mut c_void, ffi::descrgetfunc>(get))
        };
        Ok(Self {
            descriptor: descriptor.unbind(),
            get: get.ok_or_else(|| PyAttributeError::new_err("not a descriptor"))?,
        })
    }

    /// The attribute that C code defines under `name` for instances of `class`.
    pub(crate) fn find(class: &Bound<'_, PyType>, name: &str) -> PyResult<Self> {
        let found = class_attribute(class, name)?;
        Self::of(found.ok_or_else(|| PyAttributeError::new_err(name.to_owned()))?)
    }

    /// Reads it from `object`.
    pub(crate) fn get<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (object, class) = (object.as_ptr(), object.get_type_ptr());
        // SAFETY: the descriptor's own slot; it checks that `object` is one that it can read. The
        // result is a new reference, or null with an error set.
        unsafe {
            let value = (self.get)(self.descriptor.as_ptr(), object, class.cast());
            Bound::from_owned_ptr_or_err(Python::assume_attached(), value)
        }
    }
}

/// Reads an attribute that C code defines for the object's class.
pub(crate) fn read<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    Getter::find(&object.get_type(), name)?.get(object)
}

/// Calls a method, or what a property calls, where that is C code.
pub(crate) fn call<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    call_from(&object.get_type(), object, name)
}

/// The same as `class` has it, which the object's own class may have covered.
pub(crate) fn call_from<'py>(
    class: &Bound<'py, PyType>,
    object: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let missing = || PyAttributeError::new_err(name.to_owned());
    let found = class_attribute(class, name)?.ok_or_else(missing)?;
    let function = if found.get_type_ptr() == &raw mut ffi::PyProperty_Type {
        found.getattr("fget")?
    } else {
        found
    };
    let class = function.get_type();
    if class.name()? == "function" || attributes(&function).is_some() {
        return Err(PyAttributeError::new_err(format!("{name} is Python code")));
    }
    function.call1((object,))
}

/// Whether `class` is `base` or comes from it, whatever their metaclasses say.
pub(crate) fn is_subtype(class: &Bound<'_, PyType>, base: &Bound<'_, PyType>) -> bool {
    // SAFETY: both are live types.
    unsafe { ffi::PyType_IsSubtype(class.as_type_ptr(), base.as_type_ptr()) != 0 }
}

/// The class and its bases, nearest first.
pub(crate) fn bases<'py>(
    class: &Bound<'py, PyType>,
) -> PyResult<impl Iterator<Item = Bound<'py, PyType>> + use<'py>> {
    let mro = OfType::get(class.py())?.mro.get(class)?;
    let mro = mro.cast_into_exact::<PyTuple>()?;
    let bases: Vec<_> = mro.iter().collect();
    Ok(bases
        .into_iter()
        .filter_map(|base| base.cast_into::<PyType>().ok()))
}

/// What the class or the nearest of its bases has under `name`, as it stands there.
pub(crate) fn class_attribute<'py>(
    class: &Bound<'py, PyType>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = PyString::new(class.py(), name);
    for base in bases(class)? {
        if let Ok(found) = own_attributes(&base)?.get_item(&name) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The names and values that stand in one class.
pub(crate) fn own_attributes<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyMapping>> {
    let dict = OfType::get(class.py())?.dict.get(class)?;
    Ok(dict.cast_into::<PyMapping>()?)
}

/// The same, one by one.
pub(crate) fn own_items<'py>(
    class: &Bound<'py, PyType>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    // A proxy of an exact dict: its items are those of the dict.
    let items = own_attributes(class)?.items()?;
    items.iter().map(|item| item.extract()).collect()
}

/// The attributes of an instance itself; none where its class gives it no room for them.
pub(crate) fn attributes<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: a live object; the result is a new reference, or null with an error set.
    let dict = unsafe {
        let dict = ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(object.py(), dict)
    };
    dict.ok()?.cast_into::<PyDict>().ok()
}

/// The values of an instance's attributes, those in slots among them.
pub(crate) fn values<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut values: Vec<_> = attributes(object)
        .iter()
        .flat_map(|dict| dict.values().iter().collect::<Vec<_>>())
        .collect();
    let slots = slots(&object.get_type())?;
    values.extend(slots.iter().filter_map(|(_, slot)| slot.get(object).ok()));
    Ok(values)
}

/// What `__slots__` makes in a class and its bases, by name.
pub(crate) fn slots(class: &Bound<'_, PyType>) -> PyResult<Vec<(String, Getter)>> {
    let mut slots = Vec::new();
    for base in bases(class)? {
        for (name, descriptor) in own_items(&base)? {
            let is_slot = descriptor.get_type_ptr() == &raw mut ffi::PyMemberDescr_Type;
            if let Some(name) = name.cast_exact::<PyString>().ok().filter(|_| is_slot) {
                let name = name.to_string_lossy().into_owned();
                slots.push((name, Getter::of(descriptor)?));
            }
        }
    }
    Ok(slots)
}

/// One attribute of the instance itself.
pub(crate) fn attribute<'py>(object: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    // A dictionary with a key of the user's could compare by the user's `__eq__`, but only where
    // the hash of that key is the name's.
    attributes(object)?.get_item(name).ok().flatten()
}

/// Whether an object's class leaves it to Python's own C code to look up an attribute, as
/// modules and plain objects do.
pub(crate) fn is_asked_by_c_alone(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let look_up = |class: &Bound<'_, PyType>| {
        // SAFETY: the class is borrowed and the GIL held.
        unsafe { slot(class.as_type_ptr(), ffi::Py_tp_getattro) }
    };
    let own = look_up(&object.get_type());
    own == look_up(&py.get_type::<PyModule>()) || own == look_up(&py.get_type::<PyAny>())
}

/// What a type has in a slot of the C interface; `None` where that is empty.
///
/// # Safety
/// `class` is a live type and the GIL is held.
// SAFETY: left to the caller, as said above.
pub(crate) unsafe fn slot(class: *mut ffi::PyTypeObject, which: c_int) -> Option<*mut c_void> {
    // SAFETY: the caller's. From 3.10 on the slots of static types can be read, too.
    let slot = unsafe { ffi::PyType_GetSlot(class, which) };
    (!slot.is_null()).then_some(slot)
}
