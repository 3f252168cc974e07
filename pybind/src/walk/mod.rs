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
#![allow(dead_code, reason = "what asks for a walk follows")]

mod classes;
mod heap;
mod label;
mod native;
mod prune;
mod sink;
mod step;
mod table;

use heap::Limits;
pub(crate) use sink::{Details, Part, Sink, Storage, StorageId};
pub(crate) use step::{Category, Step};

use std::collections::HashSet;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::adapters;
use heap::Heap;
use label::Labeller;
use prune::Pruned;

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

/// One reference that leads to device memory.
#[derive(Debug)]
struct Edge {
    from: u32,
    to: u32,
    step: Step,
}

/// Walks from the values of `namespace`.
fn walk(py: Python<'_>, namespace: &Bound<'_, PyDict>, limits: Limits) -> PyResult<Vec<Edge>> {
    let _uncollected = Uncollected::new(py);
    let (adapters, libraries) = (adapters::all(py), HashSet::new());
    let mut heap = Heap::new(py, &adapters, &libraries, limits)?;
    heap.reach(namespace.as_any());
    heap.run();
    let pruned = Pruned::of(&heap, &[]);
    let mut labeller = Labeller::new(py)?;
    let mut edges = Vec::new();
    for &from in &pruned.nodes {
        let Some(object) = heap.object(from) else {
            continue;
        };
        let is_target = |address| heap.node_of(address).is_some_and(|it| pruned.keeps(it));
        for (address, step) in labeller.labels(&object, &is_target).targets {
            let to = heap.node_of(address).unwrap_or_default();
            edges.push(Edge { from, to, step });
        }
    }
    Ok(edges)
}
