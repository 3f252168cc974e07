//! The live Python heap → what of it leads to device memory.
//!
//! From named roots, through what every type tells the garbage collector (`tp_traverse`): none of
//! the user's code runs, nothing is imported, and nothing is kept alive. First comes reach alone,
//! then what leads to a storage is told from the rest, and only that gets its names.
//!
//! The GIL is held from the first root to the last edge, and the garbage collector is off, so that
//! borrowed pointers stay good. Interpreters without a GIL are not supported: there is no `abi3`
//! wheel for them.
#![expect(unsafe_code, reason = "the slots of live types, borrowed objects")]

mod classes;
mod garbage;
mod graph;
mod heap;
mod label;
mod limits;
mod native;
mod prune;
mod rest;
mod roots;
mod sink;
mod table;

use std::collections::HashMap;

use gpumem_core::holders::{Category, GraphBuilder, Node, NodeIdx, ObjectGraph, Step};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::adapters::own::{self, Asks};
use crate::adapters::{self, pools};
use crate::trouble;
use heap::Heap;
use prune::Pruned;
use roots::{Root, Roots};

pub(crate) use limits::{_look_for, Limits};
pub(crate) use sink::{Details, Part, PoolId, Sink, Storage, StorageId};

/// No collection runs while this lives: a class's `__del__` must not run, nor an object go.
struct Uncollected {
    was_enabled: bool,
}

impl Uncollected {
    fn new(_: Python<'_>) -> Self {
        // SAFETY: the GIL is held.
        let was_enabled = unsafe { ffi::PyGC_Disable() } == 1;
        Self { was_enabled }
    }
}

impl Drop for Uncollected {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: made and dropped where the GIL is held.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What has a name.
    Names,
    /// Then libraries, cyclic garbage, and what no Python object leads to.
    Everything,
}

/// What is looked for, how far, and by whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    pub(crate) extent: Extent,
    pub(crate) limits: Limits,
    pub(crate) asks: Asks,
}

/// What was found.
pub(crate) struct Found {
    pub(crate) graph: ObjectGraph,
    /// How many objects were looked at.
    pub(crate) n_objects: usize,
}

/// Finds what leads to device memory from everything that has a name.
pub(crate) fn find(py: Python<'_>, shells: &[Bound<'_, PyAny>], search: Search) -> PyResult<Found> {
    let registered = own::registered(py, search.asks);
    let walked = {
        let _uncollected = Uncollected::new(py);
        walk(py, &Roots::find(py, shells)?, &registered, search)?
    };
    Ok(walked.asked(py, &registered))
}

/// The same from the entries of one namespace.
pub(crate) fn find_from(
    py: Python<'_>,
    namespace: &Bound<'_, PyDict>,
    search: Search,
) -> PyResult<Found> {
    let registered = own::registered(py, search.asks);
    let walked = {
        let _uncollected = Uncollected::new(py);
        walk(py, &Roots::of(py, namespace)?, &registered, search)?
    };
    Ok(walked.asked(py, &registered))
}

/// What a walk found, before the user's own code is asked.
struct Walked<'py> {
    graph: GraphBuilder,
    n_objects: usize,
    /// What adapters of ours could not read.
    failures: Vec<PyErr>,
    /// Objects that keep a pool of an allocator's to themselves.
    pools: Vec<(NodeIdx, PoolId)>,
    /// Objects that an adapter of the user's tells of, their place, and which adapter.
    questions: Vec<(Bound<'py, PyAny>, NodeIdx, u8)>,
}

fn walk<'py>(
    py: Python<'py>,
    roots: &Roots<'py>,
    registered: &[(Bound<'py, PyType>, Bound<'py, PyAny>)],
    search: Search,
) -> PyResult<Walked<'py>> {
    let adapters = adapters::all(py);
    let classes: Vec<_> = registered.iter().map(|(class, _)| class.clone()).collect();
    let mut heap = Heap::new(py, &adapters, &classes, &roots.libraries, search.limits)?;
    for object in roots.closed.iter().chain(&roots.passed) {
        heap.close(object);
    }
    enter(&mut heap, &roots.found);
    let rest = match search.extent {
        Extent::Names => Vec::new(),
        Extent::Everything => rest::find(&mut heap, roots)?,
    };
    let asked = heap.questions.iter().map(|(node, _)| *node);
    let wanted: Vec<_> = asked
        .chain(heap.pools.iter().map(|(node, _)| *node))
        .collect();
    let pruned = Pruned::of(&heap, &wanted);
    let mut built = graph::build(&heap, &pruned, roots.found.iter().chain(&rest))?;
    if search.extent == Extent::Everything && !heap.is_cut() {
        built.graph.whole();
    }
    let question = |(node, adapter): &(_, u8)| {
        let place = built.known[*node as usize]?;
        Some((heap.object(*node)?, place, *adapter))
    };
    let pool = |(node, pool): &(_, PoolId)| Some((built.known[*node as usize]?, *pool));
    Ok(Walked {
        pools: heap.pools.iter().filter_map(pool).collect(),
        questions: heap.questions.iter().filter_map(question).collect(),
        n_objects: heap.n_objects(),
        failures: heap.failures,
        graph: built.graph,
    })
}

impl<'py> Walked<'py> {
    /// Takes in what the user's own adapters tell: from here on nothing is borrowed.
    fn asked(
        mut self,
        py: Python<'py>,
        registered: &[(Bound<'py, PyType>, Bound<'py, PyAny>)],
    ) -> Found {
        /// Keys of the user's are told from the numbers of frameworks' storages.
        const OWN: u64 = 1 << 63;
        for error in std::mem::take(&mut self.failures) {
            let message = format!("an object was passed over when looking for holders: {error}");
            trouble::log_once(py, &message);
        }
        self.measure_pools(py);
        let mut known = HashMap::new();
        for (number, (object, holder, adapter)) in self.questions.iter().enumerate() {
            let (_, function) = &registered[usize::from(*adapter)];
            for (idx, held) in own::ask(function, object).into_iter().enumerate() {
                let unshared = OWN | OWN >> 1 | (number << 8 | idx & 0xFF) as u64;
                let id = held.key.map_or(unshared, |key| OWN | key & !(OWN >> 1));
                let storage = *known.entry((held.device.clone(), id)).or_insert_with(|| {
                    self.graph
                        .node(Node::storage(id, held.device, held.n_bytes))
                });
                self.graph.categorise(*holder, Category::Tensor);
                self.graph.edge(*holder, storage, Step::Within);
            }
        }
        Found {
            graph: self.graph.build(),
            n_objects: self.n_objects,
        }
    }

    /// Takes in what is free in pools that others cannot use: it is reserved for who has the pool.
    fn measure_pools(&mut self, py: Python<'_>) {
        /// Told from storages of frameworks and from keys of the user's.
        const POOLS: u64 = 1 << 62;
        let mut known: HashMap<PoolId, Vec<NodeIdx>> = HashMap::new();
        for (holder, pool) in std::mem::take(&mut self.pools) {
            let number = known.len() as u64;
            let storages = known.entry(pool).or_insert_with(|| {
                let free = pools::free(py, pool).into_iter();
                let node = |(device, n_bytes)| Node::storage(POOLS | number, device, n_bytes);
                let idx = |node: Node| self.graph.node(node.of(Category::Workspace));
                free.map(node).map(idx).collect()
            });
            for storage in storages {
                self.graph.edge(holder, *storage, Step::Within);
            }
        }
    }
}

/// Goes as far as the roots lead.
fn enter<'py>(heap: &mut Heap<'_, 'py>, roots: &[Root<'py>]) {
    for root in roots {
        heap.reach(&root.object);
    }
    heap.run();
}
