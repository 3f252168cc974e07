//! What the adapters of arrays have in common.

use gpumem_heap::{Step, TensorCategory};
use gpumem_model::units::Bytes;

use super::{ObjectDetails, Sink, StorageEntry, identity};
use crate::still::Object;

/// One block of memory, as a framework reports it.
pub(super) struct ArrayMemory {
    pub(super) device: String,
    /// The address of its first byte, or of the object that represents it.
    pub(super) address: usize,
    pub(super) n_bytes: Bytes,
    /// Address of the object that owns the bytes.
    pub(super) owner: usize,
    /// Plain data begins at the address, which no look reads.
    pub(super) is_data: bool,
}

/// Tells that the object which is looked at holds this block.
pub(super) fn hold(block: &ArrayMemory, sink: &mut Sink<'_, '_, '_>) {
    let storage = StorageEntry {
        id: identity::storage_id(block.address, block.n_bytes, block.owner),
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
    category: TensorCategory,
    sink: &mut Sink<'_, '_, '_>,
) {
    let details = ObjectDetails {
        dtype,
        shape,
        ..ObjectDetails::with_category(category)
    };
    sink.describe(sink.own(), details);
}

/// The same, by its `dtype` of numpy's and its `shape`.
pub(super) fn describe_by(
    dtype: Option<Object<'_>>,
    shape: Option<Object<'_>>,
    sink: &mut Sink<'_, '_, '_>,
) {
    let dtype = dtype.and_then(|it| numpy_dtype(&it));
    let shape = shape.and_then(|it| lengths(&it));
    describe(dtype, shape, TensorCategory::Array, sink);
}

/// The lengths in a tuple of integers.
pub(super) fn lengths(shape: &Object<'_>) -> Option<Vec<u64>> {
    shape.tuple()?.map(|length| length.number()).collect()
}

/// `float32`, of a dtype of numpy: the name of the scalar's class. Its own `name` is Python code.
pub(super) fn numpy_dtype(dtype: &Object<'_>) -> Option<String> {
    Some(dtype.read("type")?.as_class()?.short_name())
}
