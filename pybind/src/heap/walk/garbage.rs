//! Objects that only refer to each other, found by a dry look: what the collector's next run would
//! free is told from the rest as the collector does it, by taking the references inside a set
//! of objects from the counts of all. Nothing is collected.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use pyo3::ffi;

use super::heap::Heap;
use super::table::Table;
use crate::heap::still::Object;

/// Objects that the collector knows and that were not met on the way from any root.
struct Strangers<'h, 'a, 's> {
    heap: &'h mut Heap<'a, 's>,
    objects: Vec<NonNull<ffi::PyObject>>,
    numbers: Table,
    /// References from outside of the set, as far as is known.
    n_outside: Vec<isize>,
    is_alive: Vec<bool>,
    /// Alive, and still to be asked what they refer to.
    open: Vec<u32>,
}

/// Everything that is cyclic garbage among `tracked`, which is all that the collector knows.
pub(super) fn find<'s>(heap: &mut Heap<'_, 's>, tracked: &[Object<'s>]) -> Vec<Object<'s>> {
    let section = heap.section;
    let mut strangers = Strangers::of(heap, tracked);
    for number in 0..strangers.objects.len() {
        strangers.ask(number as u32, count);
    }
    for number in 0..strangers.objects.len() {
        if strangers.n_outside[number] > 0 {
            strangers.enliven(number as u32);
        }
    }
    while let Some(number) = strangers.open.pop() {
        strangers.ask(number, enliven);
    }
    if strangers.heap.is_cut() {
        return Vec::new();
    }
    let dead = strangers.objects.iter().zip(&strangers.is_alive);
    dead.filter(|(_, is_alive)| !**is_alive)
        // SAFETY: `tracked` holds a reference to each.
        .map(|(object, _)| unsafe { section.borrowed(object.as_ptr()) })
        .collect()
}

impl<'h, 'a, 's> Strangers<'h, 'a, 's> {
    fn of(heap: &'h mut Heap<'a, 's>, tracked: &[Object<'s>]) -> Self {
        let mut strangers = Self {
            heap,
            objects: Vec::new(),
            numbers: Table::with_room(tracked.len() / 2),
            n_outside: Vec::new(),
            is_alive: Vec::new(),
            open: Vec::new(),
        };
        for object in tracked {
            let address = object.address();
            if strangers.heap.is_met(address) {
                continue;
            }
            let Some(pointer) = NonNull::new(object.as_ptr()) else {
                continue;
            };
            let number = strangers.objects.len() as u32;
            if strangers.numbers.insert(address, number).is_none() {
                break;
            }
            strangers.objects.push(pointer);
            // SAFETY: a live object; the GIL is held. The collector's list holds one reference to it,
            // and `tracked` another.
            let n_references = unsafe { ffi::Py_REFCNT(object.as_ptr()) } - 2;
            strangers.n_outside.push(n_references);
            strangers.is_alive.push(false);
        }
        strangers
    }

    fn enliven(&mut self, number: u32) {
        if !std::mem::replace(&mut self.is_alive[number as usize], true) {
            self.open.push(number);
        }
    }

    /// Hands everything that an object refers to, to `visit`.
    fn ask(&mut self, number: u32, visit: ffi::visitproc) {
        let object = self.objects[number as usize];
        if let Some(traverse) = self.heap.traverse_of_tracked(object) {
            // SAFETY: the type's own slot on its instance; both visits take `Self` as argument.
            unsafe { traverse(object.as_ptr(), visit, (&raw mut *self).cast()) };
        }
    }
}

/// One reference less comes from outside.
// SAFETY: a `visitproc`, which `Strangers::ask` alone hands out, with itself as argument.
unsafe extern "C" fn count(object: *mut ffi::PyObject, argument: *mut c_void) -> c_int {
    // SAFETY: `Strangers::ask` hands itself to the traversal.
    let strangers = unsafe { &mut *argument.cast::<Strangers<'_, '_, '_>>() };
    if let Some(number) = strangers.numbers.get(object as usize) {
        strangers.n_outside[number as usize] -= 1;
    }
    c_int::from(!strangers.heap.spend())
}

/// What is alive keeps what it refers to.
// SAFETY: a `visitproc` that only `Strangers::ask` passes on, with itself as argument.
unsafe extern "C" fn enliven(object: *mut ffi::PyObject, argument: *mut c_void) -> c_int {
    // SAFETY: the argument is the `Strangers` whose `ask` runs this traversal.
    let strangers = unsafe { &mut *argument.cast::<Strangers<'_, '_, '_>>() };
    if let Some(number) = strangers.numbers.get(object as usize) {
        strangers.enliven(number);
    }
    c_int::from(!strangers.heap.spend())
}
