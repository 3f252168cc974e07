//! The live objects that lead to device memory, as a graph.
//!
//! Objects and storages are both nodes. Only a storage has bytes; tensors and
//! views point to it, so what several of them share counts once.

use std::collections::BTreeMap;

use super::node::{Node, NodeIdx, TensorCategory};
use super::root::Root;
use super::step::Step;
use gpumem_model::holders::{Allocated, RootKind};

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
    /// Which variable has the handle of each hook, by the hook's number.
    pub(super) handles: BTreeMap<u64, String>,
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

    /// Notes that the garbage collector is off: nothing frees cyclic garbage.
    pub fn leave_garbage(&mut self) {
        for root in &mut self.roots {
            if root.kind == RootKind::CyclicGarbage {
                root.kind = RootKind::UncollectedGarbage;
            }
        }
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
    /// parameters. If several do, the first in [`TensorCategory`]'s order wins.
    pub fn categorise(&mut self, idx: NodeIdx, category: TensorCategory) {
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

    /// Adds that this expression is the handle of the hook of that number.
    pub fn handle(&mut self, hook: u64, expression: String) {
        self.graph.handles.insert(hook, expression);
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
