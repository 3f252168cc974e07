//! What was found → the core's graph of objects, with names on its edges.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use gpumem_analyzer::known_leaks;
use gpumem_heap as heap;
use gpumem_heap::{GraphBuilder, LibraryClass, Node, NodeIdx, Step};

use super::bound;
use super::heap::{Heap, HiddenReference, NodeKind, NodeNumber};
use super::label::Labeller;
use super::prune::Pruned;
use super::roots::NamedRoot;
use super::sink::ObjectDetails;
use super::table::ByNumber;
use crate::still::{Class, Object, Section};

/// Builds the graph of the nodes between `roots` and device memory.
pub(super) fn build<'r, 's: 'r>(
    heap: &Heap<'_, 's>,
    pruned: &Pruned,
    roots: impl Iterator<Item = &'r NamedRoot<'s>>,
) -> Built {
    let mut builder = WalkGraphBuilder {
        heap,
        pruned,
        labeller: Labeller::new(),
        hidden_references: hidden_in_order(heap, pruned),
        names: ByNumber::default(),
        classes: ByNumber::default(),
        known_classes: known_leaks::classes().collect(),
        known: vec![None; heap.places.len()],
        shown_by: vec![NOBODY; heap.places.len()],
        open: VecDeque::new(),
        graph: GraphBuilder::default(),
    };
    for root in roots {
        let node = heap.node_of(root.object.address());
        if let Some(node) = node.filter(|node| pruned.keeps(*node)) {
            let target = builder.node(node);
            let named = heap::Root::new(&root.name, root.kind, target).by(&root.path);
            let named = named.filled_by(root.filled_by.as_deref());
            builder.graph.root(named);
        }
    }
    while let Some(node) = builder.open.pop_front() {
        builder.edges(node);
    }
    if heap.is_cut() {
        builder.graph.cut();
    }
    Built {
        graph: builder.graph,
        known: builder.known,
    }
}

/// A graph without the reports of the user's adapters.
pub(super) struct Built {
    pub(super) graph: GraphBuilder,
    /// By node: its place in it.
    pub(super) known: Vec<Option<NodeIdx>>,
}

/// In `WalkGraphBuilder::shown_by`: no node has shown it yet.
const NOBODY: NodeNumber = NodeNumber::MAX;

struct WalkGraphBuilder<'h, 'a, 's> {
    heap: &'h Heap<'a, 's>,
    pruned: &'h Pruned,
    labeller: Labeller,
    /// References that adapters reported, by source node.
    hidden_references: Vec<&'h HiddenReference>,
    /// Names of types, by the type's address.
    names: ByNumber<usize, Arc<str>>,
    /// What is known of leaks of a type's instances, by the type's address.
    classes: ByNumber<usize, Option<Arc<LibraryClass>>>,
    /// The classes of which leaks are known.
    known_classes: HashSet<&'static str>,
    /// By node: its place in the graph.
    known: Vec<Option<NodeIdx>>,
    /// By node: the one of which an edge to it was added last.
    shown_by: Vec<NodeNumber>,
    /// Nodes of the graph whose edges are still to be added, nearest to a root first: where the
    /// labels are bounded, these have them.
    open: VecDeque<NodeNumber>,
    graph: GraphBuilder,
}

impl<'s> WalkGraphBuilder<'_, '_, 's> {
    /// The place of a node in the graph.
    fn node(&mut self, node: NodeNumber) -> NodeIdx {
        if let Some(known) = self.known[node as usize] {
            return known;
        }
        let described = self.described(node);
        let idx = self.graph.node(described);
        self.known[node as usize] = Some(idx);
        self.open.push_back(node);
        idx
    }

    fn described(&mut self, node: NodeNumber) -> Node {
        if let NodeKind::Storage(number) = self.heap.places[node as usize] {
            let storage = &self.heap.storages[number as usize];
            let device = &self.heap.devices[storage.device as usize];
            let node = Node::storage(storage.id, Arc::clone(device), storage.n_bytes);
            return node.at(storage.address);
        }
        let unknown = ObjectDetails::default();
        let details = self.heap.details.get(&node).unwrap_or(&unknown);
        let named = details.type_name.as_deref().map(Arc::from);
        let class = || self.heap.object(node).map(|object| self.type_name(&object));
        Node {
            type_name: named.or_else(class).unwrap_or_default(),
            category: details.category,
            dtype: details.dtype.as_deref().map(Arc::from),
            shape: details.shape.as_deref().map(Box::from),
            storage: None,
            bound: self
                .heap
                .object(node)
                .and_then(|object| bound::capacity_bound(&object)),
            class: self
                .heap
                .object(node)
                .and_then(|object| self.library_class(&object)),
        }
    }

    /// Found once a class.
    fn library_class(&mut self, object: &Object<'s>) -> Option<Arc<LibraryClass>> {
        let class = object.class();
        if !class.is_heap_type() {
            return None;
        }
        let (section, known) = (self.heap.section, &self.known_classes);
        let found = self.classes.entry(class.address());
        let found = found.or_insert_with(|| library_class(section, &class, known).map(Arc::new));
        found.clone()
    }

    fn type_name(&mut self, object: &Object<'s>) -> Arc<str> {
        let class = object.class();
        let name = self.names.entry(class.address());
        let name = name.or_insert_with(|| class.short_name().into());
        Arc::clone(name)
    }

    fn edges(&mut self, node: NodeNumber) {
        let first = self.hidden_references.partition_point(|it| it.from < node);
        for position in first..self.hidden_references.len() {
            let hidden = self.hidden_references[position];
            if hidden.from != node {
                break;
            }
            self.edge(node, hidden.to, hidden.step.clone());
        }
        let heap = self.heap;
        let pruned = self.pruned;
        let kept = |to: &NodeNumber| pruned.keeps(*to);
        let references = heap.references_of(node);
        if !references.iter().any(kept) {
            return;
        }
        if let Some(object) = heap.object(node) {
            let is_target = |address| heap.node_of(address).is_some_and(|it| pruned.keeps(it));
            let labels = self.labeller.labels(&object, &is_target);
            for passed in labels.passed.iter().filter_map(|it| heap.node_of(*it)) {
                self.shown_by[passed as usize] = node;
            }
            for (address, step) in labels.targets {
                if let Some(to) = heap.node_of(address) {
                    self.edge(node, to, step);
                }
            }
        }
        for to in references.iter().copied().filter(kept) {
            if self.shown_by[to as usize] != node {
                self.edge(node, to, Step::Opaque);
            }
        }
    }

    fn edge(&mut self, from: NodeNumber, to: NodeNumber, step: Step) {
        self.shown_by[to as usize] = from;
        let (from, to) = (self.node(from), self.node(to));
        self.graph.edge(from, to, step);
    }
}

/// The class, or the nearest of its bases, of which leaks are known, with the version of its library.
fn library_class<'s>(
    section: &'s Section<'s>,
    class: &Class<'s>,
    known: &HashSet<&str>,
) -> Option<LibraryClass> {
    let name = |class: Class<'s>| Some(format!("{}.{}", class.module()?, class.qualname()?));
    let mut names = class.lineage().filter_map(name);
    let name = names.find(|it| known.contains(&**it))?;
    let package = name.split('.').next()?;
    let version = || {
        let package = section.modules()?.get(package)?.globals()?;
        package.get("__version__")?.text()
    };
    Some(LibraryClass {
        version: version().unwrap_or_default(),
        name,
    })
}

/// The references that adapters reported and that lead to device memory, by source node.
fn hidden_in_order<'h>(heap: &'h Heap<'_, '_>, pruned: &Pruned) -> Vec<&'h HiddenReference> {
    let references = heap.hidden_references.iter();
    let mut kept: Vec<&HiddenReference> = references.filter(|it| pruned.keeps(it.to)).collect();
    kept.sort_by_key(|it| it.from);
    kept
}
