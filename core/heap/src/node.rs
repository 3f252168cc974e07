//! Nodes of the object graph: an object, or a storage with its bytes.

use std::sync::Arc;

use gpumem_model::holders::Bound;
use gpumem_model::named;
use gpumem_model::units::Bytes;

/// The type of a function that has a cache.
pub(super) const CACHE: &str = "_lru_cache_wrapper";

/// The position of a node in its graph, from [`GraphBuilder::node`](super::GraphBuilder::node).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(pub u32);

impl NodeIdx {
    pub(super) const fn get(self) -> usize {
        self.0 as usize
    }
}

named! {
    /// What a tensor is for. A storage takes the first category that applies: a parameter that a graph has
    /// saved as well is a parameter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TensorCategory {
        /// What a model learns, and its buffers.
        Parameter = "parameter",
        /// The gradient of a parameter.
        Gradient = "gradient",
        /// What an optimizer keeps for each parameter.
        OptimizerState = "optimizer_state",
        /// Keys and values of the tokens so far.
        KvCache = "kv_cache",
        /// Reserved for one owner, and free: the pool of a captured graph.
        Workspace = "workspace",
        /// Any other tensor.
        Tensor = "tensor",
        /// An array of a library that knows no graph, such as `NumPy`.
        Array = "array",
        /// A node of the autograd graph: what it reaches is saved for the backward pass.
        Graph = "graph",
    }
}

/// A block of device memory. [`Node::storage`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Identifies it in all searches; never reused for another storage.
    pub id: u64,
    /// The device's label: `cuda:0`, `sim:0`, `host`.
    pub device: Arc<str>,
    /// Its size there.
    pub n_bytes: Bytes,
    /// Its first byte, as long as it lives; `None` where no address is known.
    pub address: Option<u64>,
}

/// An object or a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name of its type: `list`, `Tensor`.
    pub type_name: Arc<str>,
    /// What a tensor is for; `None` for objects that are not tensors, and for a storage, which takes the
    /// category of the tensors that hold it.
    pub category: Option<TensorCategory>,
    /// Of a tensor, its element type: `float32`.
    pub dtype: Option<Arc<str>>,
    /// Of a tensor, its dimensions.
    pub shape: Option<Box<[u64]>>,
    /// The bytes, if the node is a storage.
    pub storage: Option<Storage>,
    /// Maximum number of items of a bounded container: a `deque(maxlen=…)`, an `lru_cache`.
    pub bound: Option<Bound>,
    /// The class of a library that it is of or comes from, if leaks of that class are known.
    pub class: Option<Arc<LibraryClass>>,
}

/// A class of a library of which leaks are known: [`Node::class`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryClass {
    /// With its module: `accelerate.accelerator.Accelerator`.
    pub name: String,
    /// The library's version; empty if its package does not say it.
    pub version: String,
}

impl Node {
    /// An object that is not a tensor: a list, a module, a function.
    pub fn object(type_name: impl Into<Arc<str>>) -> Self {
        Self {
            type_name: type_name.into(),
            category: None,
            dtype: None,
            shape: None,
            storage: None,
            bound: None,
            class: None,
        }
    }

    /// The same container, which has a bound.
    #[must_use]
    pub fn bounded(self, bound: Bound) -> Self {
        Self {
            bound: Some(bound),
            ..self
        }
    }

    /// A tensor, an array, a view.
    pub fn tensor(
        type_name: impl Into<Arc<str>>,
        dtype: impl Into<Arc<str>>,
        shape: &[u64],
    ) -> Self {
        Self {
            category: Some(TensorCategory::Tensor),
            dtype: Some(dtype.into()),
            shape: Some(shape.into()),
            ..Self::object(type_name)
        }
    }

    /// A node of the autograd graph.
    pub fn graph(type_name: impl Into<Arc<str>>) -> Self {
        Self::object(type_name).with_category(TensorCategory::Graph)
    }

    /// Bytes on the device with that label.
    pub fn storage(id: u64, device: impl Into<Arc<str>>, n_bytes: Bytes) -> Self {
        let device = device.into();
        Self {
            storage: Some(Storage {
                id,
                device,
                n_bytes,
                address: None,
            }),
            ..Self::object("storage")
        }
    }

    /// The same storage, which begins at this address of its device.
    #[must_use]
    pub fn at(mut self, address: Option<u64>) -> Self {
        if let Some(storage) = &mut self.storage {
            storage.address = address;
        }
        self
    }

    /// The same node, for that purpose.
    #[must_use]
    pub fn with_category(self, category: TensorCategory) -> Self {
        Self {
            category: Some(category),
            ..self
        }
    }
}
