//! What can be asked of a dictionary in a section.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Dict, Object};

impl<'s> Dict<'s> {
    /// The dict as an object.
    pub fn object(&self) -> &Object<'s> {
        &self.0
    }

    /// Where it lies in memory.
    pub fn address(&self) -> usize {
        self.0.address()
    }

    pub(crate) fn len(&self) -> usize {
        // SAFETY: a dictionary.
        usize::try_from(unsafe { ffi::PyDict_Size(self.0.as_ptr()) }).unwrap_or_default()
    }

    /// Keys and values. It cannot change meanwhile: nothing runs.
    pub fn items(&self) -> impl Iterator<Item = (Object<'s>, Object<'s>)> + use<'s> {
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
    pub fn named(&self) -> impl Iterator<Item = (String, Object<'s>)> + use<'s> {
        self.items()
            .filter_map(|(key, value)| Some((key.text()?, value)))
    }

    /// The values, in their order.
    pub fn values(&self) -> impl Iterator<Item = Object<'s>> + use<'s> {
        self.items().map(|(_, value)| value)
    }

    /// The value of a name.
    ///
    /// A large dictionary is looked up by hash. This compares keys of equal hash, and would run the
    /// `__eq__` of a user-defined key class. Such keys almost never collide with a short name.
    pub fn get(&self, name: &str) -> Option<Object<'s>> {
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
