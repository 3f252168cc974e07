//! Cyclic garbage, found as the collector finds it (trial deletion): references inside the set of
//! objects are subtracted from their reference counts. Nothing is collected.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use pyo3::ffi;

use super::heap::Heap;
use super::table::AddressTable;
use crate::still::Object;

/// Objects that the collector tracks and that no root reaches.
struct TrialDeletion<'h, 'a, 's> {
    heap: &'h mut Heap<'a, 's>,
    objects: Vec<NonNull<ffi::PyObject>>,
    numbers: AddressTable,
    /// References from outside of the set, as far as is known.
    n_outside: Vec<isize>,
    is_alive: Vec<bool>,
    /// Alive objects whose references are still to be visited.
    open: Vec<u32>,
}

/// Everything that is cyclic garbage among `tracked`, which is all that the collector knows.
pub(super) fn find<'s>(heap: &mut Heap<'_, 's>, tracked: &[Object<'s>]) -> Vec<Object<'s>> {
    let section = heap.section;
    let mut trial = TrialDeletion::new(heap, tracked);
    for number in 0..trial.objects.len() {
        trial.ask(number as u32, count);
    }
    for number in 0..trial.objects.len() {
        if trial.n_outside[number] > 0 {
            trial.enliven(number as u32);
        }
    }
    while let Some(number) = trial.open.pop() {
        trial.ask(number, enliven);
    }
    if trial.heap.is_cut() {
        return Vec::new();
    }
    let dead = trial.objects.iter().zip(&trial.is_alive);
    dead.filter(|(_, is_alive)| !**is_alive)
        // SAFETY: `tracked` holds a reference to each.
        .map(|(object, _)| unsafe { section.borrowed(object.as_ptr()) })
        .collect()
}

impl<'h, 'a, 's> TrialDeletion<'h, 'a, 's> {
    fn new(heap: &'h mut Heap<'a, 's>, tracked: &[Object<'s>]) -> Self {
        let mut trial = Self {
            heap,
            objects: Vec::new(),
            numbers: AddressTable::with_room(tracked.len() / 2),
            n_outside: Vec::new(),
            is_alive: Vec::new(),
            open: Vec::new(),
        };
        for object in tracked {
            let address = object.address();
            if trial.heap.is_met(address) {
                continue;
            }
            let Some(pointer) = NonNull::new(object.as_ptr()) else {
                continue;
            };
            let number = trial.objects.len() as u32;
            if trial.numbers.insert(address, number).is_none() {
                break;
            }
            trial.objects.push(pointer);
            // SAFETY: a live object; the GIL is held. The collector's list holds one reference to it,
            // and `tracked` another.
            let n_references = unsafe { ffi::Py_REFCNT(object.as_ptr()) } - 2;
            trial.n_outside.push(n_references);
            trial.is_alive.push(false);
        }
        trial
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
// SAFETY: a `visitproc`, which `TrialDeletion::ask` alone hands out, with itself as argument.
unsafe extern "C" fn count(object: *mut ffi::PyObject, argument: *mut c_void) -> c_int {
    // SAFETY: `TrialDeletion::ask` hands itself to the traversal.
    let trial = unsafe { &mut *argument.cast::<TrialDeletion<'_, '_, '_>>() };
    if let Some(number) = trial.numbers.get(object as usize) {
        trial.n_outside[number as usize] -= 1;
    }
    c_int::from(!trial.heap.spend())
}

/// What is alive keeps what it refers to.
// SAFETY: a `visitproc` that only `TrialDeletion::ask` passes on, with itself as argument.
unsafe extern "C" fn enliven(object: *mut ffi::PyObject, argument: *mut c_void) -> c_int {
    // SAFETY: the argument is the `TrialDeletion` whose `ask` runs this traversal.
    let trial = unsafe { &mut *argument.cast::<TrialDeletion<'_, '_, '_>>() };
    if let Some(number) = trial.numbers.get(object as usize) {
        trial.enliven(number);
    }
    c_int::from(!trial.heap.spend())
}
