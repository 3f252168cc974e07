//! The live Python heap → the part that leads to device memory.
//!
//! The walk starts from named roots and follows `tp_traverse` of every type, in a section in which
//! no Python code runs ([`crate::still`]). It first finds what is reachable, then prunes
//! everything that leads to no storage, and names only the rest.
//!
//! In a build of Python without the GIL none of this is called, and no [`Section`] can be entered.
#![expect(unsafe_code, reason = "the slots of live types, borrowed objects")]

mod bound;
mod classes;
mod garbage;
mod graph;
mod heap;
mod label;
mod native;
mod prune;
mod queries;
mod release;
mod rest;
mod roots;
mod sink;
mod table;

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use gpumem_heap::{GraphBuilder, Node, NodeIdx, ObjectGraph, Step, TensorCategory};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::adapters::registered::Registered;
use crate::adapters::{self, Quiet};
use crate::look::{FaultPoint, fault};
use crate::still::Section;
use heap::Heap;
use prune::Pruned;
use roots::{NamedRoot, Roots};

pub(crate) use classes::HAVE_GC;
pub use queries::LocalBackend;
pub(crate) use queries::{Answers, QueryBackend};
pub(crate) use roots::other_threads;
pub use roots::{Places, current_frames, own_thread, waiting_tasks};
pub use sink::PoolId;
pub(crate) use sink::{ObjectDetails, ObjectPart, Sink, StorageEntry, StorageId};

/// Finds what a walk needs, once, when the module is loaded: this imports.
pub fn resolve(py: Python<'_>) -> PyResult<()> {
    native::resolve(py)?;
    roots::resolve(py)
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkExtent {
    /// What has a name.
    Names,
    /// Then libraries, cyclic garbage, and what no Python object leads to.
    Everything,
}

/// How far a walk goes at most.
#[derive(Debug, Clone, Copy)]
pub struct WalkLimits {
    /// It ends then, …
    pub until: Instant,
    /// … and when its thread has spent so much of a core, if that is limited.
    pub cpu_until: Option<Duration>,
    /// So many objects are looked at.
    pub n_nodes: usize,
}

/// What a walk searches, and its limits.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// What it goes through.
    pub extent: WalkExtent,
    /// Where it ends.
    pub limits: WalkLimits,
    /// This process is a copy of the user's.
    pub is_copy: bool,
    /// What torch's autograd keeps is read.
    pub reads_graph: bool,
}

/// What was found.
pub struct WalkResult {
    /// Every object that leads to memory.
    pub graph: ObjectGraph,
    /// How many objects were looked at.
    pub n_objects: usize,
    /// What was passed over or left out, and why.
    pub notes: Vec<String>,
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

/// The result of a walk, before adapters and allocators are queried.
pub struct Walked {
    graph: GraphBuilder,
    n_objects: usize,
    notes: Vec<String>,
    touched: WalkedMemory,
    /// Objects that keep a pool of an allocator's to themselves.
    pools: Vec<(NodeIdx, PoolId)>,
    /// Objects that a user's adapter handles, their place, and which adapter.
    questions: Vec<(Py<PyAny>, NodeIdx, u8)>,
}

/// Finds what leads to device memory. All of it happens in one section; what it found outlives that.
pub fn find(
    py: Python<'_>,
    places: &Places<'_>,
    search: Search,
    registered: &[Registered<'_>],
) -> PyResult<Walked> {
    let tracked = match search.extent {
        WalkExtent::Names => None,
        WalkExtent::Everything => Some(roots::tracked(py)?),
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
    let adapters = adapters::all(section, search.reads_graph, tracked.is_some());
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
    let queried = heap.questions.iter().map(|(node, _)| *node);
    let wanted: Vec<_> = queried
        .chain(heap.pools.iter().map(|(node, _)| *node))
        .collect();
    let pruned = Pruned::new(&heap, &wanted);
    let mut built = graph::build(&heap, &pruned, roots.found.iter().chain(&rest));
    for (hook, handle) in release::handles(&roots.found) {
        built.graph.handle(hook, handle);
    }
    if search.extent == WalkExtent::Everything && !heap.is_cut() {
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
    /// Queries adapters and allocators, and builds the graph. Nothing is borrowed any more.
    pub fn complete(mut self, py: Python<'_>, backend: &mut dyn QueryBackend) -> WalkResult {
        if !self.questions.is_empty() || !self.pools.is_empty() {
            self.ask(py, backend);
        }
        WalkResult {
            graph: self.graph.build(),
            n_objects: self.n_objects,
            notes: self.notes,
            touched: self.touched,
        }
    }

    fn ask(&mut self, py: Python<'_>, backend: &mut dyn QueryBackend) {
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
        let answers = backend.ask(py, &objects.collect::<Vec<_>>(), &distinct);
        let holders = questions.iter().map(|(_, holder, _)| *holder);
        self.add_reported(holders.zip(answers.objects));
        for (number, (pool, free)) in distinct.iter().zip(answers.pools).enumerate() {
            let holders = pools.iter().filter(|(_, it)| it == pool);
            let holders: Vec<NodeIdx> = holders.map(|(holder, _)| *holder).collect();
            self.add_free(number as u64, &holders, free);
        }
    }

    /// Adds the bytes that the user's adapters reported for the objects at these places.
    fn add_reported(
        &mut self,
        reported: impl Iterator<Item = (NodeIdx, Vec<adapters::registered::ReportedBytes>)>,
    ) {
        /// Separates the user's keys from the numbers of frameworks' storages.
        const OWN: u64 = 1 << 63;
        let mut known = HashMap::new();
        for (number, (holder, held)) in reported.enumerate() {
            for (idx, held) in held.into_iter().enumerate() {
                let unshared = OWN | OWN >> 1 | (number << 8 | idx & 0xFF) as u64;
                let id = held.key.map_or(unshared, |key| OWN | key & !(OWN >> 1));
                let storage = *known.entry((held.device.clone(), id)).or_insert_with(|| {
                    self.graph
                        .node(Node::storage(id, held.device, held.n_bytes))
                });
                self.graph.categorise(holder, TensorCategory::Tensor);
                self.graph.edge(holder, storage, Step::Within);
            }
        }
    }

    /// Adds the free bytes of a pool: only the pool's owner can use them.
    fn add_free(
        &mut self,
        number: u64,
        holders: &[NodeIdx],
        free: Vec<(String, gpumem_model::units::Bytes)>,
    ) {
        /// Separates pools from storages of frameworks and from the user's keys.
        const POOLS: u64 = 1 << 62;
        for (device, n_bytes) in free {
            let node = Node::storage(POOLS | number, device, n_bytes);
            let storage = self
                .graph
                .node(node.with_category(TensorCategory::Workspace));
            for holder in holders {
                self.graph.edge(*holder, storage, Step::Within);
            }
        }
    }
}

/// Goes as far as the roots lead.
fn enter<'s>(heap: &mut Heap<'_, 's>, roots: &[NamedRoot<'s>]) {
    for root in roots {
        heap.reach(&root.object);
    }
    heap.run();
}
