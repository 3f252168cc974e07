//! What the adapters of arrays have in common.

use gpumem_core::holders::{Category, Step};
use gpumem_core::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::identity::{self, Proof};
use super::{Details, Sink, Storage};

/// One block of memory, as a framework tells of it.
pub(super) struct Block {
    pub(super) device: String,
    /// Of its first byte, or of the object that stands for it.
    pub(super) address: usize,
    pub(super) n_bytes: Bytes,
}

/// Tells that the object which is looked at holds this block.
pub(super) fn hold(
    py: Python<'_>,
    block: &Block,
    proof: impl FnOnce() -> Proof,
    sink: &mut Sink<'_, '_, '_>,
) {
    let id = identity::number(py, block.address, block.n_bytes, proof);
    let storage = Storage {
        id,
        device: &block.device,
        n_bytes: block.n_bytes,
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
pub(super) fn lengths(shape: &Bound<'_, PyAny>) -> Option<Vec<u64>> {
    let shape = shape.cast_exact::<PyTuple>().ok()?;
    shape.iter().map(|length| length.extract().ok()).collect()
}

/// `float32`, of a dtype of numpy: the name of the scalar's class. Its own `name` is Python code.
pub(super) fn numpy_dtype(dtype: &Bound<'_, PyAny>) -> Option<String> {
    let scalar = dtype.getattr("type").ok()?;
    scalar.getattr("__name__").ok()?.extract().ok()
}
