//! Where an adapter reports the memory of an object.

use std::ptr::NonNull;

use gpumem_heap::{Step, TensorCategory};
use gpumem_model::units::Bytes;
use pyo3::ffi;

use super::heap::{Heap, NodeNumber};
use crate::still::Object;

/// The object that is looked at, something inside it that is no Python object, or an object that
/// it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectPart(pub(super) NodeNumber);

/// The identity of a storage on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StorageId {
    /// Among those alive at the same time; the same from every framework.
    pub now: u64,
    /// From those that lived before it, too, as far as that is known: addresses are used again.
    pub(crate) over_time: u64,
}

/// A pool of torch's allocator, used only by the graph or the code that requested it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolId(pub u64, pub u64);

/// Bytes of one device that are given back together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StorageEntry<'a> {
    pub id: StorageId,
    /// As people write it: `cuda:0`.
    pub device: &'a str,
    pub n_bytes: Bytes,
    /// The address of its first byte, if known. No walk reads it.
    pub address: Option<u64>,
}

/// What is known of an object or a part beside its class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectDetails {
    /// In place of the class's name: what a part is.
    pub(crate) type_name: Option<String>,
    /// `float32`
    pub dtype: Option<String>,
    pub shape: Option<Vec<u64>>,
    /// What it is for. If several are reported, the first in [`TensorCategory`]'s order stays.
    pub category: Option<TensorCategory>,
}

impl ObjectDetails {
    /// What an object is by itself.
    pub(crate) fn with_category(category: TensorCategory) -> Self {
        Self {
            category: Some(category),
            ..Self::default()
        }
    }

    /// The same of a part, which has no class to name it.
    pub(crate) fn named(type_name: impl Into<String>, category: TensorCategory) -> Self {
        Self {
            type_name: Some(type_name.into()),
            ..Self::with_category(category)
        }
    }
}

/// Receives what an adapter reports about one object.
pub(crate) struct Sink<'h, 'a, 's> {
    heap: &'h mut Heap<'a, 's>,
    own: ObjectPart,
}

impl<'h, 'a, 's> Sink<'h, 'a, 's> {
    pub(super) fn new(heap: &'h mut Heap<'a, 's>, own: NodeNumber) -> Self {
        Self {
            heap,
            own: ObjectPart(own),
        }
    }

    /// The object that is looked at.
    pub(crate) fn own(&self) -> ObjectPart {
        self.own
    }

    /// Only what is large is of interest here: the objects are a library's.
    pub(crate) fn is_in_library(&self) -> bool {
        self.heap.passes_short()
    }

    /// Merges details of a part. Earlier values stay unless `details` replaces them.
    pub(crate) fn describe(&mut self, part: ObjectPart, details: ObjectDetails) {
        let known = self.heap.details.entry(part.0).or_default();
        known.type_name = details.type_name.or(known.type_name.take());
        known.dtype = details.dtype.or(known.dtype.take());
        known.shape = details.shape.or(known.shape.take());
        known.category = known.category.into_iter().chain(details.category).min();
    }

    /// `from` keeps these bytes. Storages of one id and device are one.
    pub(crate) fn storage(&mut self, from: ObjectPart, storage: StorageEntry<'_>, step: Step) {
        let to = self.heap.storage(&storage);
        self.tell(from, to, step);
    }

    /// `from` keeps `object`, in a way that Python's garbage collector does not see. None where
    /// the object cannot lead to device memory.
    ///
    /// An object that was made for this look is kept until the walk ends, no longer.
    pub(crate) fn object(
        &mut self,
        from: ObjectPart,
        object: &Object<'_>,
        step: Step,
    ) -> Option<ObjectPart> {
        let to = self.heap.reach(object)?;
        self.heap.keep(object);
        self.tell(from, to, step);
        Some(ObjectPart(to))
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

    /// Adds a part that `from` keeps and that is no Python object, identified by its address among
    /// those alive. Also returns whether it is new: then its own references are still to be added.
    pub(crate) fn part(
        &mut self,
        from: ObjectPart,
        address: usize,
        step: Step,
    ) -> (ObjectPart, bool) {
        let (to, is_new) = self.heap.part(address);
        self.tell(from, to, step);
        (ObjectPart(to), is_new)
    }

    /// The object that is looked at keeps a pool, which is measured when the walk is over.
    pub(crate) fn pool(&mut self, pool: PoolId) {
        self.heap.pools.push((self.own.0, pool));
    }

    fn tell(&mut self, from: ObjectPart, to: NodeNumber, step: Step) {
        self.heap.tell(from.0, to, step);
    }
}
