//! The live Python heap → what of it leads to device memory.
//!
//! From named roots, through what every type tells the garbage collector (`tp_traverse`), in a
//! section in which nothing of Python's runs ([`crate::heap::still`]). First comes reach alone, then what
//! leads to a storage is told from the rest, and only that gets its names.
//!
//! Interpreters without a GIL are not supported: there is no `abi3` wheel for them.
#![expect(unsafe_code, reason = "the slots of live types, borrowed objects")]

mod asker;
mod bound;
mod classes;
mod garbage;
mod graph;
mod heap;
mod label;
mod limits;
mod native;
mod prune;
mod release;
mod rest;
mod roots;
mod sink;
mod table;

use std::collections::HashMap;
use std::ops::Range;

use gpumem_heap::{Category, GraphBuilder, Node, NodeIdx, ObjectGraph, Step};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::heap::adapters::own::Registered;
use crate::heap::adapters::{self, Quiet};
use crate::heap::look::{FaultPoint, fault};
use crate::heap::still::Section;
use heap::Heap;
use prune::Pruned;
use roots::{Root, Roots};

pub(crate) use asker::{Asker, Here, Told};
pub(crate) use limits::Limits;
pub(crate) use roots::{Places, current_frames, other_threads, own_thread, waiting_tasks};
pub(crate) use sink::{Details, Part, PoolId, Sink, Storage, StorageId};

/// Finds what a walk needs, once, when the module is loaded: this imports.
pub(crate) fn resolve(py: Python<'_>) -> PyResult<()> {
    native::resolve(py)?;
    roots::resolve(py)
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What has a name.
    Names,
    /// Then libraries, cyclic garbage, and what no Python object leads to.
    Everything,
}

/// What is looked for, how far, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    pub(crate) extent: Extent,
    pub(crate) limits: Limits,
    /// This process is a copy of the user's.
    pub(crate) is_copy: bool,
    /// What torch's autograd keeps is read.
    pub(crate) reads_graph: bool,
}

/// What was found.
pub(crate) struct Found {
    pub(crate) graph: ObjectGraph,
    /// How many objects were looked at.
    pub(crate) n_objects: usize,
    /// What was passed over or left out, and why.
    pub(crate) notes: Vec<String>,
    pub(crate) touched: WalkedMemory,
}

/// Where in this process's memory the walk was.
#[derive(Debug, Default)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no copy is made")
)]
pub(crate) struct WalkedMemory {
    /// Addresses of objects, in order; one of them stands for others near it.
    pub(crate) objects: Vec<usize>,
    /// Where arrays keep their data, which no walk reads.
    pub(crate) arrays: Vec<Range<usize>>,
}

/// What a walk found, before anybody else is asked.
pub(crate) struct Walked {
    graph: GraphBuilder,
    n_objects: usize,
    notes: Vec<String>,
    touched: WalkedMemory,
    /// Objects that keep a pool of an allocator's to themselves.
    pools: Vec<(NodeIdx, PoolId)>,
    /// Objects that an adapter of the user's tells of, their place, and which adapter.
    questions: Vec<(Py<PyAny>, NodeIdx, u8)>,
}

/// Finds what leads to device memory. All of it happens in one section; what it found outlives that.
pub(crate) fn find(
    py: Python<'_>,
    places: &Places<'_>,
    search: Search,
    registered: &[Registered<'_>],
) -> PyResult<Walked> {
    let tracked = match search.extent {
        Extent::Names => None,
        Extent::Everything => Some(roots::tracked(py)?),
    };
    let _quiet = Quiet::of_imported(py);
    Ok(Section::enter(py, search.is_copy, |section| {
        walk(section, places, tracked.as_ref(), search, registered)
    }))
}

fn walk<'s>(
    section: &'s Section<'s>,
    places: &Places<'_>,
    tracked: Option<&Bound<'_, PyList>>,
    search: Search,
    registered: &[Registered<'_>],
) -> Walked {
    let roots = Roots::find(section, places);
    fault(FaultPoint::RootsFound);
    let adapters = adapters::all(section, search.reads_graph);
    let libraries = &roots.libraries;
    let mut heap = Heap::new(section, &adapters, registered, libraries, search.limits);
    for object in roots.closed.iter().chain(&roots.passed) {
        heap.close(object);
    }
    enter(&mut heap, &roots.found);
    let rest = match tracked.and_then(|tracked| section.object(tracked.as_any()).list()) {
        None => Vec::new(),
        Some(tracked) => rest::find(&mut heap, &roots, &tracked.collect::<Vec<_>>()),
    };
    fault(FaultPoint::HeapWalked);
    let asked = heap.questions.iter().map(|(node, _)| *node);
    let wanted: Vec<_> = asked
        .chain(heap.pools.iter().map(|(node, _)| *node))
        .collect();
    let pruned = Pruned::of(&heap, &wanted);
    let mut built = graph::build(&heap, &pruned, roots.found.iter().chain(&rest));
    for (hook, handle) in release::handles(&roots.found) {
        built.graph.handle(hook, handle);
    }
    if search.extent == Extent::Everything && !heap.is_cut() {
        built.graph.whole();
    }
    let question = |(node, adapter): &(_, u8)| {
        let place = built.known[*node as usize]?;
        Some((heap.object(*node)?.unbind(), place, *adapter))
    };
    let pool = |(node, pool): &(_, PoolId)| Some((built.known[*node as usize]?, *pool));
    Walked {
        pools: heap.pools.iter().filter_map(pool).collect(),
        questions: heap.questions.iter().filter_map(question).collect(),
        n_objects: heap.n_objects(),
        touched: if search.is_copy {
            heap.touched()
        } else {
            WalkedMemory::default()
        },
        notes: heap.notes.into_iter().collect(),
        graph: built.graph,
    }
}

impl Walked {
    /// Takes in what the walk could not find out itself: from here on nothing is borrowed.
    pub(crate) fn asked(mut self, py: Python<'_>, asker: &mut dyn Asker) -> Found {
        if !self.questions.is_empty() || !self.pools.is_empty() {
            self.ask(py, asker);
        }
        Found {
            graph: self.graph.build(),
            n_objects: self.n_objects,
            notes: self.notes,
            touched: self.touched,
        }
    }

    fn ask(&mut self, py: Python<'_>, asker: &mut dyn Asker) {
        let questions = std::mem::take(&mut self.questions);
        let pools = std::mem::take(&mut self.pools);
        let mut distinct: Vec<PoolId> = Vec::new();
        for (_, pool) in &pools {
            if !distinct.contains(pool) {
                distinct.push(*pool);
            }
        }
        let objects = questions.iter();
        let objects = objects.map(|(object, _, adapter)| (object.bind(py).clone(), *adapter));
        let told = asker.ask(py, &objects.collect::<Vec<_>>(), &distinct);
        let holders = questions.iter().map(|(_, holder, _)| *holder);
        self.take_held(holders.zip(told.objects));
        for (number, (pool, free)) in distinct.iter().zip(told.pools).enumerate() {
            let holders = pools.iter().filter(|(_, it)| it == pool);
            let holders: Vec<NodeIdx> = holders.map(|(holder, _)| *holder).collect();
            self.take_free(number as u64, &holders, free);
        }
    }

    /// What adapters of the user's told of the objects at these places.
    fn take_held(&mut self, told: impl Iterator<Item = (NodeIdx, Vec<adapters::own::Held>)>) {
        /// Keys of the user's are told from the numbers of frameworks' storages.
        const OWN: u64 = 1 << 63;
        let mut known = HashMap::new();
        for (number, (holder, held)) in told.enumerate() {
            for (idx, held) in held.into_iter().enumerate() {
                let unshared = OWN | OWN >> 1 | (number << 8 | idx & 0xFF) as u64;
                let id = held.key.map_or(unshared, |key| OWN | key & !(OWN >> 1));
                let storage = *known.entry((held.device.clone(), id)).or_insert_with(|| {
                    self.graph
                        .node(Node::storage(id, held.device, held.n_bytes))
                });
                self.graph.categorise(holder, Category::Tensor);
                self.graph.edge(holder, storage, Step::Within);
            }
        }
    }

    /// What is free in a pool that others cannot use: it is reserved for who has the pool.
    fn take_free(
        &mut self,
        number: u64,
        holders: &[NodeIdx],
        free: Vec<(String, gpumem_model::units::Bytes)>,
    ) {
        /// Told from storages of frameworks and from keys of the user's.
        const POOLS: u64 = 1 << 62;
        for (device, n_bytes) in free {
            let node = Node::storage(POOLS | number, device, n_bytes);
            let storage = self.graph.node(node.of(Category::Workspace));
            for holder in holders {
                self.graph.edge(*holder, storage, Step::Within);
            }
        }
    }
}

/// Goes as far as the roots lead.
fn enter<'s>(heap: &mut Heap<'_, 's>, roots: &[Root<'s>]) {
    for root in roots {
        heap.reach(&root.object);
    }
    heap.run();
}
