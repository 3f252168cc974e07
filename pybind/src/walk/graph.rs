//! What was found → the core's graph of objects, with names on its edges.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use gpumem_core::holders::{self, GraphBuilder, Node, NodeIdx, Step};
use pyo3::prelude::*;

use super::heap::{Heap, NodeNumber, Place};
use super::label::Labeller;
use super::prune::Pruned;
use super::roots::Root;
use super::sink::Details;

/// Builds the graph of what leads from `roots` to device memory.
pub(super) fn build<'r, 'py: 'r>(
    heap: &Heap<'_, 'py>,
    pruned: &Pruned,
    roots: impl Iterator<Item = &'r Root<'py>>,
) -> PyResult<Built> {
    let mut builder = Builder {
        heap,
        pruned,
        labeller: Labeller::new(heap.py)?,
        told: told_by_source(heap, pruned),
        names: HashMap::new(),
        known: HashMap::new(),
        open: VecDeque::new(),
        graph: GraphBuilder::default(),
    };
    for root in roots {
        let node = heap.node_of(root.object.as_ptr() as usize);
        if let Some(node) = node.filter(|node| pruned.keeps(*node)) {
            let target = builder.node(node);
            let named = holders::Root::new(&root.name, root.kind, target).by(&root.path);
            builder.graph.root(named);
        }
    }
    while let Some(node) = builder.open.pop_front() {
        builder.edges(node);
    }
    if heap.is_cut() {
        builder.graph.cut();
    }
    Ok(Built {
        graph: builder.graph,
        known: builder.known,
    })
}

/// A graph that waits for what the user's own adapters tell.
pub(super) struct Built {
    pub(super) graph: GraphBuilder,
    /// The place of each node in it.
    pub(super) known: HashMap<NodeNumber, NodeIdx>,
}

struct Builder<'h, 'a, 'py> {
    heap: &'h Heap<'a, 'py>,
    pruned: &'h Pruned,
    labeller: Labeller<'py>,
    /// What adapters told of each node.
    told: HashMap<NodeNumber, Vec<(NodeNumber, &'h Step)>>,
    /// Names of types, by the type's address.
    names: HashMap<usize, Arc<str>>,
    known: HashMap<NodeNumber, NodeIdx>,
    /// Nodes of the graph whose edges are still to be added, nearest to a root first: where the
    /// labels are bounded, these have them.
    open: VecDeque<NodeNumber>,
    graph: GraphBuilder,
}

impl<'py> Builder<'_, '_, 'py> {
    /// The place of a node in the graph.
    fn node(&mut self, node: NodeNumber) -> NodeIdx {
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let described = self.described(node);
        let idx = self.graph.node(described);
        self.known.insert(node, idx);
        self.open.push_back(node);
        idx
    }

    fn described(&mut self, node: NodeNumber) -> Node {
        if let Place::Storage(number) = self.heap.places[node as usize] {
            let storage = &self.heap.storages[number as usize];
            let device = &self.heap.devices[storage.device as usize];
            return Node::storage(storage.id, Arc::clone(device), storage.n_bytes);
        }
        let details = self.heap.details.get(&node).cloned().unwrap_or_default();
        let Details {
            type_name,
            dtype,
            shape,
            category,
        } = details;
        let class = || self.heap.object(node).map(|object| self.type_name(&object));
        Node {
            type_name: type_name.map(Arc::from).or_else(class).unwrap_or_default(),
            category,
            dtype: dtype.map(Arc::from),
            shape: shape.map(Vec::into_boxed_slice),
            storage: None,
        }
    }

    fn type_name(&mut self, object: &Bound<'py, PyAny>) -> Arc<str> {
        let heap = self.heap;
        let name = self.names.entry(object.get_type_ptr() as usize);
        let name = name.or_insert_with(|| heap.facts().type_name(object).into());
        Arc::clone(name)
    }

    fn edges(&mut self, node: NodeNumber) {
        let from = self.known[&node];
        let mut shown = HashSet::new();
        for (to, step) in self.told.remove(&node).unwrap_or_default() {
            shown.insert(to);
            self.edge(from, to, step.clone());
        }
        let heap = self.heap;
        let references = heap.references_of(node);
        let kept: Vec<NodeNumber> = references
            .iter()
            .copied()
            .filter(|to| self.pruned.keeps(*to))
            .collect();
        if kept.is_empty() {
            return;
        }
        if let Some(object) = heap.object(node) {
            let pruned = self.pruned;
            let is_target = |address| heap.node_of(address).is_some_and(|it| pruned.keeps(it));
            let labels = self.labeller.labels(&object, &is_target);
            shown.extend(labels.passed.iter().filter_map(|it| heap.node_of(*it)));
            for (address, step) in labels.targets {
                if let Some(to) = heap.node_of(address) {
                    shown.insert(to);
                    self.edge(from, to, step);
                }
            }
        }
        for to in kept {
            if shown.insert(to) {
                self.edge(from, to, Step::Opaque);
            }
        }
    }

    fn edge(&mut self, from: NodeIdx, to: NodeNumber, step: Step) {
        let to = self.node(to);
        self.graph.edge(from, to, step);
    }
}

fn told_by_source<'h>(
    heap: &'h Heap<'_, '_>,
    pruned: &Pruned,
) -> HashMap<NodeNumber, Vec<(NodeNumber, &'h Step)>> {
    let mut told: HashMap<_, Vec<_>> = HashMap::new();
    let kept = heap.told.iter().filter(|it| pruned.keeps(it.to));
    for reference in kept {
        let of_source = told.entry(reference.from).or_default();
        of_source.push((reference.to, &reference.step));
    }
    told
}
