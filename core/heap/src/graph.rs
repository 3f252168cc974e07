//! The live objects that lead to device memory, as a graph.
//!
//! Objects and storages are both nodes. Only a storage has bytes; tensors and
//! views point to it, so what several of them share counts once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::root::Root;
use super::step::Step;
use gpumem_model::holders::{Allocated, Bound};
use gpumem_model::named;
use gpumem_model::units::Bytes;

/// The position of a node in its graph, from [`GraphBuilder::node`].
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
    pub enum Category {
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
    pub category: Option<Category>,
    /// Of a tensor, its element type: `float32`.
    pub dtype: Option<Arc<str>>,
    /// Of a tensor, its dimensions.
    pub shape: Option<Box<[u64]>>,
    /// The bytes, if the node is a storage.
    pub storage: Option<Storage>,
    /// Of a container that never holds more than so many: a `deque(maxlen=…)`, an `lru_cache`.
    pub bound: Option<Bound>,
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
            category: Some(Category::Tensor),
            dtype: Some(dtype.into()),
            shape: Some(shape.into()),
            ..Self::object(type_name)
        }
    }

    /// A node of the autograd graph.
    pub fn graph(type_name: impl Into<Arc<str>>) -> Self {
        Self::object(type_name).of(Category::Graph)
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
    pub fn of(self, category: Category) -> Self {
        Self {
            category: Some(category),
            ..self
        }
    }
}

/// One object holds another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: NodeIdx,
    pub(super) to: NodeIdx,
    pub(super) step: Step,
}

/// The live objects that lead to device memory. [`GraphBuilder`] makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectGraph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    pub(super) roots: Vec<Root>,
    pub(super) is_cut: bool,
    pub(super) is_whole: bool,
    /// What allocators have handed out, by the labels of their devices.
    pub(super) ledger: BTreeMap<String, Allocated>,
}

impl ObjectGraph {
    /// How many objects and storages.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node of that index. Indices come from this graph's own builder.
    pub fn node(&self, idx: NodeIdx) -> &Node {
        &self.nodes[idx.get()]
    }

    /// The walk stopped at a limit: there is more than this.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Adds what a device's allocators have handed out. What exceeds the storages found is held too, by
    /// an unknown holder.
    pub fn account(&mut self, device: &str, handed_out: Allocated) {
        self.ledger.insert(device.to_owned(), handed_out);
    }

    /// Which object holds which, and how.
    pub fn edges(&self) -> impl Iterator<Item = (NodeIdx, NodeIdx, &Step)> {
        self.edges
            .iter()
            .map(|edge| (edge.from, edge.to, &edge.step))
    }

    /// The names, in the order in which they were added.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }
}

/// Builds an [`ObjectGraph`] from objects, edges and roots in any order.
#[derive(Debug, Clone, Default)]
pub struct GraphBuilder {
    graph: ObjectGraph,
}

impl GraphBuilder {
    /// Adds an object or a storage.
    ///
    /// # Panics
    ///
    /// If there are more nodes than a `u32` can count.
    pub fn node(&mut self, node: Node) -> NodeIdx {
        let idx = u32::try_from(self.graph.nodes.len()).expect("a walk is bounded far below that");
        self.graph.nodes.push(node);
        NodeIdx(idx)
    }

    /// Sets what a node is for, as an object that holds it knows: an optimizer its state, a module its
    /// parameters. If several do, the first in [`Category`]'s order wins.
    pub fn categorise(&mut self, idx: NodeIdx, category: Category) {
        let known = &mut self.graph.nodes[idx.get()].category;
        *known = Some(known.map_or(category, |known| known.min(category)));
    }

    /// Adds that one object holds another. An edge whose ends are not both nodes of this graph is ignored.
    pub fn edge(&mut self, from: NodeIdx, to: NodeIdx, step: Step) {
        let n_nodes = self.graph.nodes.len();
        if from.get() < n_nodes && to.get() < n_nodes {
            self.graph.edges.push(Edge { from, to, step });
        }
    }

    /// Adds that a name holds an object. The order decides between paths of equal length.
    pub fn root(&mut self, root: Root) {
        if root.target.get() < self.graph.nodes.len() {
            self.graph.roots.push(root);
        }
    }

    /// Notes that the walk stopped at a limit.
    pub fn cut(&mut self) {
        self.graph.is_cut = true;
    }

    /// Notes that everything was visited: also libraries, cyclic garbage, and what no name leads to.
    pub fn whole(&mut self) {
        self.graph.is_whole = true;
    }

    /// The graph.
    pub fn build(self) -> ObjectGraph {
        self.graph
    }
}
