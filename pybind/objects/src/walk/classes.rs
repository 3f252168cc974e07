//! What a walk does with the instances of a class, decided once a class.

use std::ffi::{c_ulong, c_void};
use std::mem;
use std::ptr::NonNull;

use gpumem_model::units::Bytes;
use pyo3::ffi;

use super::table::AddressTable;
use crate::adapters::{Adapter, QualifiedName, buffers, collections};
use crate::still::{Class, Section};
use gpumem_base::slots::slot;

/// From CPython's `object.h`: the stable ABI fixes these bits.
const READY: c_ulong = 1 << 12;
pub(crate) const HAVE_GC: c_ulong = 1 << 14;
const BYTES_SUBCLASS: c_ulong = 1 << 27;
const UNICODE_SUBCLASS: c_ulong = 1 << 28;

/// What instances of a class get.
#[derive(Clone, Copy)]
pub(super) struct Treatment {
    /// The traversal of an instance's references; `None` if it is skipped.
    pub(super) traverse: Option<ffi::traverseproc>,
    /// Whether an instance can be traversed; `None` if all can.
    pub(super) is_gc: Option<ffi::inquiry>,
    pub(super) adapter: Option<AdapterIdx>,
    /// Which of the user's own adapters handles an instance.
    pub(super) own_adapter: Option<u8>,
    /// Instances are classes themselves.
    pub(super) is_metaclass: bool,
    /// The length function of types whose short instances do not matter, such as bytes, texts and lists.
    length: Option<Length>,
}

/// Counts the bytes or letters of an instance.
// SAFETY: called with instances of the class that it is for.
type LengthFn = unsafe extern "C" fn(*mut ffi::PyObject) -> ffi::Py_ssize_t;

/// The minimum length of instances that are looked at.
#[derive(Clone, Copy)]
struct Length {
    of: LengthFn,
    least: u64,
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
        length: None,
    };

    /// An instance can neither hold device memory nor lead to any.
    #[inline]
    pub(super) fn is_passed(&self) -> bool {
        self.traverse.is_none() && self.adapter.is_none() && self.own_adapter.is_none()
    }

    /// An instance holds nothing but a few bytes or letters, and leads nowhere.
    #[inline]
    pub(super) fn is_too_small(&self, object: NonNull<ffi::PyObject>, least: Bytes) -> bool {
        self.traverse.is_none() && self.is_shorter(object, least.get())
    }

    /// The adapter for an instance, unless the instance is too short.
    #[inline]
    pub(super) fn adapter_of(&self, object: NonNull<ffi::PyObject>) -> Option<AdapterIdx> {
        self.adapter.filter(|_| !self.is_shorter(object, 0))
    }

    /// An instance leads to others, and is passed over by its adapter if it is short.
    pub(super) fn is_collection(&self) -> bool {
        self.traverse.is_some() && self.length.is_some()
    }

    fn is_shorter(&self, object: NonNull<ffi::PyObject>, least: u64) -> bool {
        self.length.is_some_and(|length| {
            // SAFETY: an instance of the type whose function this is.
            let n = unsafe { (length.of)(object.as_ptr()) };
            u64::try_from(n).is_ok_and(|n| n < length.least.max(least))
        })
    }
}

/// The treatments of the classes met so far. Classes live as long as the section.
pub(super) struct Classes<'a, 's> {
    section: &'s Section<'s>,
    adapters: &'a [Box<dyn Adapter + 's>],
    /// Types for which the user registered an adapter.
    registered: Vec<*mut ffi::PyTypeObject>,
    known: AddressTable,
    treatments: Vec<Treatment>,
    /// The most recently used classes, by the low bits of their address.
    recent: Vec<(usize, Treatment)>,
    /// A class made by Python code whose first instance is met right now.
    new_heap_type: Option<*mut ffi::PyTypeObject>,
}

const N_RECENT: usize = 512;

impl<'a, 's> Classes<'a, 's> {
    pub(super) fn new(
        section: &'s Section<'s>,
        adapters: &'a [Box<dyn Adapter + 's>],
        registered: Vec<*mut ffi::PyTypeObject>,
    ) -> Self {
        Self {
            section,
            adapters,
            registered,
            known: AddressTable::with_room(4096),
            treatments: Vec::new(),
            recent: vec![(0, Treatment::PASSED); N_RECENT],
            new_heap_type: None,
        }
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
        let Some((position, is_new)) = self.known.insert(class as usize, next) else {
            return Treatment::PASSED;
        };
        if is_new {
            let treatment = self.decide(class);
            self.treatments.push(treatment);
            let is_heap_type = self.class(class).is_heap_type();
            self.new_heap_type = (is_heap_type && !treatment.is_passed()).then_some(class);
        }
        self.treatments[position as usize]
    }

    fn decide(&self, class: *mut ffi::PyTypeObject) -> Treatment {
        // SAFETY: `class` is the type of a live object; the GIL is held.
        let flags = unsafe { ffi::PyType_GetFlags(class) };
        if flags & READY == 0 {
            return Treatment::PASSED;
        }
        // SAFETY: both are types, and alive: one of a live object, and `type` itself.
        let is_metaclass = unsafe { ffi::PyType_IsSubtype(class, &raw mut ffi::PyType_Type) != 0 };
        let adapter = self.adapter(class);
        let own_adapter = self.own_adapter(class);
        if flags & HAVE_GC == 0 {
            return Treatment {
                adapter,
                own_adapter,
                length: length_of(class, flags).filter(|_| own_adapter.is_none()),
                ..Treatment::PASSED
            };
        }
        // SAFETY: a ready type; the slot's number names a function of this signature.
        let (traverse, is_gc) = unsafe {
            (
                slot(class, ffi::Py_tp_traverse)
                    .map(|it| mem::transmute::<*mut c_void, ffi::traverseproc>(it)),
                slot(class, ffi::Py_tp_is_gc)
                    .map(|it| mem::transmute::<*mut c_void, ffi::inquiry>(it)),
            )
        };
        Treatment {
            traverse,
            is_gc,
            adapter,
            own_adapter,
            is_metaclass,
            length: length_of(class, flags),
        }
    }

    /// The adapter that claims the class or the nearest of its bases.
    fn adapter(&self, class: *mut ffi::PyTypeObject) -> Option<AdapterIdx> {
        self.class(class).lineage().find_map(|base| {
            let name = QualifiedName {
                module: base.module().unwrap_or_default(),
                name: base.qualname()?,
            };
            let is_own = base.as_type_ptr() == class;
            let mut adapters = self.adapters.iter();
            let position =
                adapters.position(|it| it.claims(&name) && (is_own || it.claims_subclasses()))?;
            u8::try_from(position).ok().map(AdapterIdx)
        })
    }

    fn class(&self, class: *mut ffi::PyTypeObject) -> Class<'s> {
        // SAFETY: the type of a live object; nothing runs in a section that could end it.
        let class = unsafe { self.section.borrowed(class.cast()) };
        class.as_class().expect("the type of an object is a class")
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

    /// A class made by Python code whose first instance was just met.
    #[inline]
    pub(super) fn take_new_heap_type(&mut self) -> Option<*mut ffi::PyTypeObject> {
        self.new_heap_type.take()
    }
}

/// How long instances are of a class that most often has short ones.
fn length_of(class: *mut ffi::PyTypeObject, flags: c_ulong) -> Option<Length> {
    let fewest = collections::FEWEST as u64;
    let (of, least): (LengthFn, u64) = if flags & UNICODE_SUBCLASS != 0 {
        (ffi::PyUnicode_GetLength, buffers::SHORTEST_TEXT.get())
    } else if flags & BYTES_SUBCLASS != 0 {
        (ffi::PyBytes_Size, buffers::SMALLEST.get())
    } else if class == &raw mut ffi::PyByteArray_Type {
        (ffi::PyByteArray_Size, buffers::SMALLEST.get())
    } else if class == &raw mut ffi::PyList_Type {
        (ffi::PyList_Size, fewest)
    } else if class == &raw mut ffi::PyDict_Type {
        (ffi::PyDict_Size, fewest)
    } else {
        return None;
    };
    Some(Length { of, least })
}
