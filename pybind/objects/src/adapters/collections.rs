//! Long lists and dictionaries of Python's own values, which are too many to be looked at one by one.
//!
//! A few of the items are weighed with `sys.getsizeof`'s own function, and stand for the others. What
//! another name holds, too, is not counted.

#![expect(
    unsafe_code,
    reason = "lengths and counts of references of live objects"
)]

use gpumem_heap::Step;
use gpumem_model::units::Bytes;
use pyo3::ffi;

use super::buffers::{self, SizeMethods};
use super::{Adapter, QualifiedName, Sink, StorageEntry, Unread, identity};
use crate::still::Object;
use crate::walk::HAVE_GC;

/// What Python's garbage collector keeps before each object that it can follow, in bytes.
const COLLECTORS: u64 = 16;

/// Shorter ones have no weight of their own.
pub(crate) const FEWEST: usize = 1024;

/// How many items of a collection are weighed.
const N_WEIGHED: usize = 32;

/// Only this many of a dictionary's first entries are candidates for weighing.
const MOST_PASSED: usize = 1 << 14;

/// Items of items of items are weighed, no deeper.
const DEPTH: usize = 3;

/// What weighs less, in bytes, does not matter; in libraries, what weighs less than a unit.
const SMALLEST: f64 = 32_768.0;

/// A collection counts as several storages of this size; their number grows with it.
const UNIT: Bytes = Bytes::new(1 << 20);

/// No collection counts as more storages; the last has the rest.
const MOST_UNITS: u64 = 1 << 14;

/// Looks at lists and dictionaries.
pub(super) struct Collections {
    /// A list of the walk's has all that Python's garbage collector tracks.
    is_listed: bool,
    sizes: SizeMethods,
}

impl Collections {
    pub(super) fn new(is_listed: bool) -> Self {
        Self {
            is_listed,
            sizes: SizeMethods::default(),
        }
    }

    /// The bytes of an object without its referents.
    fn own_bytes(&self, object: &Object<'_>) -> u64 {
        // SAFETY: the class of a live object.
        let flags = unsafe { ffi::PyType_GetFlags(object.class().as_type_ptr()) };
        let before_it = if flags & HAVE_GC == 0 { 0 } else { COLLECTORS };
        self.sizes.size_of(object).unwrap_or_default() + before_it
    }

    /// The retained bytes of a value.
    fn weight(&self, object: &Object<'_>, depth: usize) -> f64 {
        if !is_plain(object) || self.is_shared(object) {
            return 0.0;
        }
        // A long one has storages of its own.
        if length(object) >= FEWEST && (object.is_exact_list() || object.is_exact_dict()) {
            return 0.0;
        }
        let own = self.own_bytes(object) as f64;
        if depth == 0 {
            return own;
        }
        own + self.items_weight(object, depth - 1)
    }

    /// Something else refers to an object, too, than what it was found in.
    fn is_shared(&self, object: &Object<'_>) -> bool {
        // SAFETY: a live object.
        let (n, is_tracked) = unsafe {
            let object = object.as_ptr();
            (
                ffi::Py_REFCNT(object),
                ffi::PyObject_GC_IsTracked(object) != 0,
            )
        };
        // The object that is looked at is a reference, too.
        n > 2 + isize::from(self.is_listed && is_tracked)
    }

    /// The bytes of the items, as a few of them have on average.
    fn items_weight(&self, object: &Object<'_>, depth: usize) -> f64 {
        let n_items = length(object);
        let weight = |item: Object<'_>| self.weight(&item, depth);
        let weights: Vec<f64> = if let Some(dict) = object.dict() {
            // An entry is found by way of those before it.
            let stride = n_items.min(MOST_PASSED).div_ceil(N_WEIGHED).max(1);
            let items = dict.items().step_by(stride).take(N_WEIGHED);
            items
                .map(|(key, value)| weight(key) + weight(value))
                .collect()
        } else {
            let positions = (0..n_items).step_by(n_items.div_ceil(N_WEIGHED).max(1));
            positions
                .filter_map(|it| object.item(it).map(weight))
                .collect()
        };
        n_items as f64 * weights.iter().sum::<f64>() / weights.len().max(1) as f64
    }
}

impl Adapter for Collections {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.module == "builtins" && matches!(class.name.as_str(), "list" | "dict")
    }

    /// Their length may be the user's code.
    fn claims_subclasses(&self) -> bool {
        false
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        // A class of the user's may call itself `builtins.list`.
        if !object.is_exact_list() && !object.is_exact_dict() {
            return Ok(());
        }
        let n_bytes = self.own_bytes(object) as f64 + self.items_weight(object, DEPTH);
        let smallest = if sink.is_in_library() {
            UNIT.as_f64()
        } else {
            SMALLEST
        };
        if n_bytes < smallest {
            return Ok(());
        }
        let n_units = (n_bytes as u64 / UNIT.get()).clamp(1, MOST_UNITS);
        for unit in 0..n_units {
            let rest = n_bytes as u64 - unit * UNIT.get();
            let is_last = unit + 1 == n_units;
            let storage = StorageEntry {
                id: identity::storage_id(object.address(), Bytes::new(unit), object.address()),
                device: "host",
                n_bytes: if is_last { Bytes::new(rest) } else { UNIT },
                address: None,
            };
            sink.storage(sink.own(), storage, Step::Within);
        }
        Ok(())
    }
}

/// A value of a built-in class that no other adapter handles.
fn is_plain(object: &Object<'_>) -> bool {
    let class = object.class();
    let name = class.short_name();
    !class.is_heap_type()
        && match name.as_str() {
            "bytes" | "bytearray" => (length(object) as u64) < buffers::SMALLEST.get(),
            "str" => (length(object) as u64) < buffers::SHORTEST_TEXT.get(),
            _ => matches!(
                name.as_str(),
                "int" | "float" | "complex" | "tuple" | "list" | "dict" | "set" | "frozenset"
            ),
        }
}

fn length(object: &Object<'_>) -> usize {
    // SAFETY: a live object; an error is cleared.
    let n = unsafe { ffi::PyObject_Length(object.as_ptr()) };
    usize::try_from(n).unwrap_or_else(|_| {
        // SAFETY: the GIL is held.
        unsafe { ffi::PyErr_Clear() };
        0
    })
}
