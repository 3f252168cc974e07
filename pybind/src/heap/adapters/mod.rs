//! What each framework's objects hold that Python's garbage collector cannot see.
//!
//! An adapter claims types by their names, so nothing is imported, and tells of
//! one object at a time which storages it holds, and what else it reaches.

mod arrays;
pub(crate) mod buffers;
mod cupy;
mod identity;
mod jax;
mod numba;
mod numpy;
pub(crate) mod own;
mod shared_memory;
mod sim;
mod tensorflow;
mod torch;

use crate::heap::still::{Object, Section};

pub(crate) use torch::{Access, Quiet, is_imported as torch_is_imported, pools};

pub(crate) use crate::heap::walk::{Details, Part, PoolId, Sink, Storage, StorageId};

/// The types of one framework.
pub(crate) trait Adapter {
    /// Whether instances of a class of this name are its own. Asked once per class and walk, for
    /// the class and each of its bases.
    fn claims(&self, class: &ClassName) -> bool;

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
pub(crate) struct ClassName {
    /// `torch.nn.parameter`; empty where it has none.
    pub(crate) module: String,
    /// `Parameter`
    pub(crate) name: String,
}

/// The adapters of one walk: of frameworks that are imported, made anew, so that one may keep what it
/// learns as long as the walk goes on. `reads_graph` allows torch's to read its autograd graph.
pub(crate) fn all<'s>(section: &'s Section<'s>, reads_graph: bool) -> Vec<Box<dyn Adapter + 's>> {
    let mut adapters: Vec<Box<dyn Adapter + 's>> = vec![
        Box::new(sim::Sim),
        Box::new(jax::Jax),
        Box::new(cupy::CuPy),
        Box::new(numba::Numba),
        Box::new(tensorflow::TensorFlow),
        Box::new(pools::Pools),
        Box::new(buffers::Buffers::default()),
        Box::new(shared_memory::SharedMemory),
    ];
    if let Some(numpy) = numpy::NumPy::of_imported(section) {
        adapters.push(Box::new(numpy));
    }
    if let Some(torch) = torch::Torch::of_imported(section, reads_graph) {
        adapters.push(Box::new(torch));
    }
    adapters
}
