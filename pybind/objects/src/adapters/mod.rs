//! What each framework's objects hold that Python's garbage collector cannot see.
//!
//! An adapter claims types by their names, so nothing is imported, and tells of
//! one object at a time which storages it holds, and what else it reaches.

mod arrays;
pub mod buffers;
pub mod collections;
mod cupy;
mod identity;
mod jax;
mod numba;
mod numpy;
pub mod registered;
mod shared_memory;
mod sim;
mod tensorflow;
mod torch;

use crate::still::{Object, Section};

pub(crate) use torch::pools;
pub use torch::{Access, Quiet, is_imported as torch_is_imported};

pub use crate::walk::PoolId;
pub(crate) use crate::walk::{ObjectDetails, ObjectPart, Sink, StorageEntry, StorageId};

/// The types of one framework.
pub(crate) trait Adapter {
    /// Whether this adapter handles instances of a class with this name. Called once per class and
    /// walk, for the class and each of its bases.
    fn claims(&self, class: &QualifiedName) -> bool;

    /// Whether instances of classes that come from its own are its own, too.
    fn claims_subclasses(&self) -> bool {
        true
    }

    /// Reports what `object` holds; an error says what could not be read. Earlier reports stay.
    ///
    /// An [`Object`] offers nothing that runs Python code. Methods of the framework's own extension
    /// types may be called, if they do not let go of the GIL.
    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread>;
}

/// What an adapter could not read of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) &'static str);

/// What a class is called, as it says itself: `torch` and `Tensor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QualifiedName {
    /// `torch.nn.parameter`; empty where it has none.
    pub(crate) module: String,
    /// `Parameter`
    pub name: String,
}

/// The adapters of one walk: of frameworks that are imported, made anew, so that one may keep what it
/// learns as long as the walk goes on. `reads_graph` allows torch's to read its autograd graph;
/// `is_listed`: the walk has a list of all that Python's garbage collector tracks.
pub(crate) fn all<'s>(
    section: &'s Section<'s>,
    reads_graph: bool,
    is_listed: bool,
) -> Vec<Box<dyn Adapter + 's>> {
    let mut adapters: Vec<Box<dyn Adapter + 's>> = vec![
        Box::new(sim::Sim),
        Box::new(jax::Jax),
        Box::new(cupy::CuPy),
        Box::new(numba::Numba),
        Box::new(tensorflow::TensorFlow),
        Box::new(pools::Pools),
        Box::new(buffers::Buffers::default()),
        Box::new(collections::Collections::new(is_listed)),
        Box::new(shared_memory::SharedMemoryAdapter),
    ];
    if let Some(numpy) = numpy::NumPy::of_imported(section) {
        adapters.push(Box::new(numpy));
    }
    if let Some(torch) = torch::Torch::of_imported(section, reads_graph) {
        adapters.push(Box::new(torch));
    }
    adapters
}
