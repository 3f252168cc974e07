//! What each framework's objects hold that Python's garbage collector cannot see.
//!
//! An adapter claims types by their names, so nothing is imported, and tells of
//! one object at a time which storages it holds, and what else it reaches.

mod arrays;
mod cupy;
mod identity;
mod jax;
mod numba;
pub(crate) mod own;
pub(crate) mod peek;
mod sim;
mod tensorflow;
mod torch;

use pyo3::prelude::*;

pub(crate) use torch::{Access, is_imported as torch_is_imported, pools};

pub(crate) use crate::walk::{Details, Part, PoolId, Sink, Storage, StorageId};

/// The types of one framework.
///
/// `look` is called in the middle of a walk that holds borrowed pointers into the heap. It must
/// run none of the user's code and no Python code at all: no attribute that a class of the user
/// could define, no property, no hook, nothing that imports or that lets go of the GIL. Methods of
/// the framework's own extension types, taken from the type that was claimed, are what it may call.
pub(crate) trait Adapter {
    /// Whether instances of a class of this name are its own. Asked once per class and walk, for
    /// the class and each of its bases.
    fn claims(&self, class: &ClassName) -> bool;

    /// Tells what `object` holds. An error leaves it without what was not told.
    fn look<'py>(&self, object: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) -> PyResult<()>;
}

/// What a class is called, as it says itself: `torch` and `Tensor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassName {
    /// `torch.nn.parameter`; empty where it has none.
    pub(crate) module: String,
    /// `Parameter`
    pub(crate) name: String,
}

/// The adapters of one walk: of frameworks that are imported, made anew, so that one may keep what it
/// learns as long as the walk goes on.
pub(crate) fn all(py: Python<'_>) -> Vec<Box<dyn Adapter>> {
    let mut adapters: Vec<Box<dyn Adapter>> = vec![
        Box::new(sim::Sim),
        Box::new(jax::Jax),
        Box::new(cupy::CuPy),
        Box::new(numba::Numba),
        Box::new(tensorflow::TensorFlow),
        Box::new(pools::Pools),
    ];
    if let Some(torch) = torch::Torch::of_imported(py) {
        adapters.push(Box::new(torch));
    }
    adapters
}
