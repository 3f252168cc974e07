//! Where an adapter tells what an object holds.

use std::ptr::NonNull;

use gpumem_heap::{Category, Step};
use gpumem_model::units::Bytes;
use pyo3::ffi;

use super::heap::{Heap, NodeNumber};
use crate::heap::still::Object;

/// The object that is looked at, something inside it that is no Python object, or an object that
/// it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part(pub(super) NodeNumber);

/// What tells a storage from every other of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StorageId {
    /// From those that live at the same time: the same, whichever framework tells of it.
    pub(crate) now: u64,
    /// From those that lived before it, too, as far as that is known: addresses are used again.
    pub(crate) over_time: u64,
}

/// A pool of torch's allocator that only what captured or asked for it allocates in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PoolId(pub(crate) u64, pub(crate) u64);

/// Bytes of one device that are given back together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a> {
    pub(crate) id: StorageId,
    /// As people write it: `cuda:0`.
    pub(crate) device: &'a str,
    pub(crate) n_bytes: Bytes,
    /// Of its first byte, where it is known. No walk reads what is there.
    pub(crate) address: Option<u64>,
}

/// What is known of an object or a part beside its class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// In place of the class's name: what a part is.
    pub(crate) type_name: Option<String>,
    /// `float32`
    pub(crate) dtype: Option<String>,
    pub(crate) shape: Option<Vec<u64>>,
    /// What it is for. Of what several say, the first in [`Category`]'s order stays.
    pub(crate) category: Option<Category>,
}

impl Details {
    /// What an object is by itself.
    pub(crate) fn of(category: Category) -> Self {
        Self {
            category: Some(category),
            ..Self::default()
        }
    }

    /// The same of a part, which has no class to name it.
    pub(crate) fn named(type_name: impl Into<String>, category: Category) -> Self {
        Self {
            type_name: Some(type_name.into()),
            ..Self::of(category)
        }
    }
}

/// Takes what an adapter tells of one object.
pub(crate) struct Sink<'h, 'a, 's> {
    heap: &'h mut Heap<'a, 's>,
    own: Part,
}

impl<'h, 'a, 's> Sink<'h, 'a, 's> {
    pub(super) fn new(heap: &'h mut Heap<'a, 's>, own: NodeNumber) -> Self {
        Self {
            heap,
            own: Part(own),
        }
    }

    /// The object that is looked at.
    pub(crate) fn own(&self) -> Part {
        self.own
    }

    /// Adds what is known of a part. What was told before stays where nothing is said anew.
    pub(crate) fn describe(&mut self, part: Part, details: Details) {
        let known = self.heap.details.entry(part.0).or_default();
        known.type_name = details.type_name.or(known.type_name.take());
        known.dtype = details.dtype.or(known.dtype.take());
        known.shape = details.shape.or(known.shape.take());
        known.category = known.category.into_iter().chain(details.category).min();
    }

    /// `from` keeps these bytes. Storages of one id and device are one.
    pub(crate) fn storage(&mut self, from: Part, storage: Storage<'_>, step: Step) {
        let to = self.heap.storage(&storage);
        self.tell(from, to, step);
    }

    /// `from` keeps `object`, in a way that Python's garbage collector does not see. None where
    /// the object cannot lead to device memory.
    ///
    /// An object that was made for this look is kept until the walk ends, no longer.
    pub(crate) fn object(&mut self, from: Part, object: &Object<'_>, step: Step) -> Option<Part> {
        let to = self.heap.reach(object)?;
        self.heap.keep(object);
        self.tell(from, to, step);
        Some(Part(to))
    }

    /// The object that is looked at keeps these, by their places. They are alive as long as it is;
    /// null stands for nothing.
    pub(crate) fn items(&mut self, items: impl Iterator<Item = *mut ffi::PyObject>) {
        for (idx, item) in items.enumerate() {
            if let Some(item) = NonNull::new(item)
                && let Some(to) = self.heap.meet(item)
            {
                self.tell(self.own, to, Step::Index(idx as u64));
            }
            if !self.heap.spend() {
                break;
            }
        }
    }

    /// Something was left out, and why.
    pub(crate) fn cut(&mut self, reason: &'static str) {
        self.heap.note(reason);
    }

    /// `from` keeps something that is no Python object, told from others that live at the same
    /// time by its address; and whether it is met for the first time, so that what it keeps is
    /// still to be told.
    pub(crate) fn part(&mut self, from: Part, address: usize, step: Step) -> (Part, bool) {
        let (to, is_new) = self.heap.part(address);
        self.tell(from, to, step);
        (Part(to), is_new)
    }

    /// The object that is looked at keeps a pool, which is measured when the walk is over.
    pub(crate) fn pool(&mut self, pool: PoolId) {
        self.heap.pools.push((self.own.0, pool));
    }

    fn tell(&mut self, from: Part, to: NodeNumber, step: Step) {
        self.heap.tell(from.0, to, step);
    }
}
