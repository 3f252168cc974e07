//! What the adapters of arrays have in common.

use gpumem_heap::{Category, Step};
use gpumem_model::units::Bytes;

use super::{Details, Sink, Storage, identity};
use crate::heap::still::Object;

/// One block of memory, as a framework tells of it.
pub(super) struct Block {
    pub(super) device: String,
    /// Of its first byte, or of the object that stands for it.
    pub(super) address: usize,
    pub(super) n_bytes: Bytes,
    /// Address of the object that owns the bytes.
    pub(super) owner: usize,
    /// Plain data begins at the address, which no look reads.
    pub(super) is_data: bool,
}

/// Tells that the object which is looked at holds this block.
pub(super) fn hold(block: &Block, sink: &mut Sink<'_, '_, '_>) {
    let storage = Storage {
        id: identity::of(block.address, block.n_bytes, block.owner),
        device: &block.device,
        n_bytes: block.n_bytes,
        address: block.is_data.then_some(block.address as u64),
    };
    sink.storage(sink.own(), storage, Step::Within);
}

/// Describes the object that is looked at as an array.
pub(super) fn describe(
    dtype: Option<String>,
    shape: Option<Vec<u64>>,
    category: Category,
    sink: &mut Sink<'_, '_, '_>,
) {
    let details = Details {
        dtype,
        shape,
        ..Details::of(category)
    };
    sink.describe(sink.own(), details);
}

/// The lengths in a tuple of integers.
pub(super) fn lengths(shape: &Object<'_>) -> Option<Vec<u64>> {
    shape.tuple()?.map(|length| length.number()).collect()
}

/// `float32`, of a dtype of numpy: the name of the scalar's class. Its own `name` is Python code.
pub(super) fn numpy_dtype(dtype: &Object<'_>) -> Option<String> {
    Some(dtype.read("type")?.as_class()?.short_name())
}
