//! What a walk does with the instances of a class, decided once a class.

use std::ffi::{c_ulong, c_void};
use std::mem;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::native::ClassFacts;
use super::table::Table;
use crate::adapters::{Adapter, peek};

/// From CPython's `object.h`: the stable ABI fixes these bits.
const HEAP_TYPE: c_ulong = 1 << 9;
const READY: c_ulong = 1 << 12;
const HAVE_GC: c_ulong = 1 << 14;

/// What instances of a class get.
#[derive(Clone, Copy)]
pub(super) struct Treatment {
    /// How an instance tells what it refers to; none where it is not asked.
    pub(super) traverse: Option<ffi::traverseproc>,
    /// Says of one instance whether it can be asked; none where every one can.
    pub(super) is_gc: Option<ffi::inquiry>,
    pub(super) adapter: Option<AdapterIdx>,
    /// Which of the user's own adapters is to be asked about an instance.
    pub(super) own_adapter: Option<u8>,
    /// Instances are classes themselves.
    pub(super) is_metaclass: bool,
}

/// Which adapter of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AdapterIdx(pub(super) u8);

impl Treatment {
    const PASSED: Self = Self {
        traverse: None,
        is_gc: None,
        adapter: None,
        own_adapter: None,
        is_metaclass: false,
    };

    /// An instance can neither hold device memory nor lead to any.
    #[inline]
    pub(super) fn is_passed(&self) -> bool {
        self.traverse.is_none() && self.adapter.is_none() && self.own_adapter.is_none()
    }
}

/// The treatments of the classes met so far. Classes live as long as the walk: it holds the GIL.
pub(super) struct Classes<'a> {
    adapters: &'a [Box<dyn Adapter>],
    /// Types for which the user registered an adapter.
    registered: Vec<*mut ffi::PyTypeObject>,
    known: Table,
    treatments: Vec<Treatment>,
    /// The classes asked for last, by the low bits of their address.
    recent: Vec<(usize, Treatment)>,
    facts: ClassFacts,
    /// A class made by Python code whose first instance is met right now.
    new_heap_type: Option<*mut ffi::PyTypeObject>,
}

const N_RECENT: usize = 512;

impl<'a> Classes<'a> {
    pub(super) fn new(
        py: Python<'_>,
        adapters: &'a [Box<dyn Adapter>],
        registered: Vec<*mut ffi::PyTypeObject>,
    ) -> PyResult<Self> {
        Ok(Self {
            adapters,
            registered,
            known: Table::with_room(4096),
            treatments: Vec::new(),
            recent: vec![(0, Treatment::PASSED); N_RECENT],
            facts: ClassFacts::new(py)?,
            new_heap_type: None,
        })
    }

    /// What the instances of `class` get.
    #[inline]
    pub(super) fn treatment(&mut self, class: *mut ffi::PyTypeObject) -> Treatment {
        let address = class as usize;
        let line = (address >> 4 ^ address >> 13) % N_RECENT;
        let (known, treatment) = self.recent[line];
        if known == address {
            return treatment;
        }
        let treatment = self.looked_up(class);
        self.recent[line] = (address, treatment);
        treatment
    }

    #[cold]
    fn looked_up(&mut self, class: *mut ffi::PyTypeObject) -> Treatment {
        let next = u32::try_from(self.treatments.len()).unwrap_or(u32::MAX);
        let (position, is_new) = self.known.insert(class as usize, next);
        if is_new {
            let treatment = self.decide(class);
            self.treatments.push(treatment);
            // SAFETY: the type of a live object; the GIL is held.
            let borrowed = unsafe { borrowed_type(class) };
            self.new_heap_type =
                (is_heap_type(&borrowed) && !treatment.is_passed()).then_some(class);
        }
        self.treatments[position as usize]
    }

    fn decide(&self, class: *mut ffi::PyTypeObject) -> Treatment {
        // SAFETY: `class` is the type of a live object; the GIL is held.
        let flags = unsafe { ffi::PyType_GetFlags(class) };
        if flags & READY == 0 {
            return Treatment::PASSED;
        }
        // SAFETY: as above; both are types.
        let is_metaclass = unsafe { ffi::PyType_IsSubtype(class, &raw mut ffi::PyType_Type) != 0 };
        let adapter = self.adapter(class);
        let own_adapter = self.own_adapter(class);
        if flags & HAVE_GC == 0 {
            return Treatment {
                adapter,
                own_adapter,
                ..Treatment::PASSED
            };
        }
        // SAFETY: a ready type; the slot's number names a function of this signature.
        let (traverse, is_gc) = unsafe {
            (
                peek::slot(class, ffi::Py_tp_traverse)
                    .map(|it| mem::transmute::<*mut c_void, ffi::traverseproc>(it)),
                peek::slot(class, ffi::Py_tp_is_gc)
                    .map(|it| mem::transmute::<*mut c_void, ffi::inquiry>(it)),
            )
        };
        Treatment {
            traverse,
            is_gc,
            adapter,
            own_adapter,
            is_metaclass,
        }
    }

    /// The adapter that claims the class or the nearest of its bases.
    fn adapter(&self, class: *mut ffi::PyTypeObject) -> Option<AdapterIdx> {
        // SAFETY: a live type, borrowed for this call; the GIL is held.
        let class = unsafe { borrowed_type(class) };
        peek::bases(&class).into_iter().flatten().find_map(|base| {
            let name = self.facts.name(&base)?;
            let position = self.adapters.iter().position(|it| it.claims(&name))?;
            u8::try_from(position).ok().map(AdapterIdx)
        })
    }

    /// The user's adapter for the class or one of its bases, the latest first.
    fn own_adapter(&self, class: *mut ffi::PyTypeObject) -> Option<u8> {
        let is_one = |base: &*mut ffi::PyTypeObject| {
            // SAFETY: both are live types; the GIL is held.
            unsafe { ffi::PyType_IsSubtype(class, *base) != 0 }
        };
        let position = self.registered.iter().rposition(is_one)?;
        u8::try_from(position).ok()
    }

    /// What classes say of themselves.
    pub(super) fn facts(&self) -> &ClassFacts {
        &self.facts
    }

    /// A class made by Python code whose first instance was just met.
    #[inline]
    pub(super) fn take_new_heap_type(&mut self) -> Option<*mut ffi::PyTypeObject> {
        self.new_heap_type.take()
    }
}

/// # Safety
/// `class` is a live type that outlives the result, and the GIL is held.
// SAFETY: left to the caller, as said above.
unsafe fn borrowed_type<'py>(class: *mut ffi::PyTypeObject) -> Bound<'py, PyType> {
    // SAFETY: the caller's; a type is an object.
    unsafe {
        let py = Python::assume_attached();
        Bound::from_borrowed_ptr(py, class.cast()).cast_into_unchecked()
    }
}

/// A class that was made at run time, as Python code does.
pub(super) fn is_heap_type(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: a live type; the GIL is held.
    unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) & HEAP_TYPE != 0 }
}
