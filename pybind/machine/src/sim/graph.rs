//! What a result keeps for a backward pass: a graph of reference-counted nodes
//! that Python's garbage collector cannot see, as in torch.

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex};

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

use super::device::SimStorage;

use gpumem_base::locks::lock;

/// Where the gradient of a tensor goes.
#[derive(Clone)]
pub enum Gradient {
    /// Into the tensor itself: the user made it with `requires_grad=True`.
    Leaf(Arc<Leaf>),
    /// Back through the operation that made it.
    Node(Arc<GraphNode>),
}

/// A tensor that collects a gradient. A graph that reaches it keeps its storage.
pub struct Leaf {
    storage: Arc<SimStorage>,
    grad: Mutex<Option<Arc<SimStorage>>>,
}

/// One operation of a graph.
pub struct GraphNode {
    op: &'static str,
    inputs: Vec<Gradient>,
    saved: Mutex<Saved>,
}

enum Saved {
    Storages(Vec<Arc<SimStorage>>),
    Freed,
}

impl Leaf {
    pub(super) fn new(storage: Arc<SimStorage>) -> Self {
        Self {
            storage,
            grad: Mutex::new(None),
        }
    }

    /// The memory of the tensor itself.
    pub fn storage(&self) -> &Arc<SimStorage> {
        &self.storage
    }

    /// The memory of its gradient, if it has one.
    pub fn grad(&self) -> Option<Arc<SimStorage>> {
        lock(&self.grad).clone()
    }

    pub(super) fn forget_grad(&self) {
        // Taken out first: the block goes back after the lock is gone.
        let grad = lock(&self.grad).take();
        drop(grad);
    }

    fn ensure_grad(&self) -> PyResult<()> {
        if self.grad().is_none() {
            // Not under the lock: if memory runs out, the search for holders reads this graph.
            let twin = self.storage.twin();
            let refused = |error| super::refused(self.storage.device(), &error);
            *lock(&self.grad) = Some(Arc::new(twin.map_err(refused)?));
        }
        Ok(())
    }
}

impl GraphNode {
    pub(super) fn new(
        op: &'static str,
        inputs: Vec<Gradient>,
        saved: Vec<Arc<SimStorage>>,
    ) -> Self {
        Self {
            op,
            inputs,
            saved: Mutex::new(Saved::Storages(saved)),
        }
    }

    /// The operation's name.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Where the gradients of what went into it go.
    pub fn inputs(&self) -> &[Gradient] {
        &self.inputs
    }

    /// What it keeps for a backward pass; nothing when that has been.
    pub fn saved(&self) -> Vec<Arc<SimStorage>> {
        match &*lock(&self.saved) {
            Saved::Storages(storages) => storages.clone(),
            Saved::Freed => Vec::new(),
        }
    }

    fn is_freed(&self) -> bool {
        matches!(*lock(&self.saved), Saved::Freed)
    }

    /// Releases the saved tensors; a node without any can be traversed again.
    fn free(&self) {
        let mut saved = lock(&self.saved);
        if matches!(&*saved, Saved::Storages(storages) if !storages.is_empty()) {
            let freed = mem::replace(&mut *saved, Saved::Freed);
            drop(saved);
            drop(freed);
        }
    }
}

impl Drop for GraphNode {
    /// Link by link: a chain that dropped itself link in link would overflow the stack.
    fn drop(&mut self) {
        let mut orphans = mem::take(&mut self.inputs);
        while let Some(orphan) = orphans.pop() {
            if let Gradient::Node(node) = orphan
                && let Some(mut node) = Arc::into_inner(node)
            {
                orphans.append(&mut node.inputs);
            }
        }
    }
}

/// Goes back from `start`: every leaf has its gradient, and what the graph saved is freed.
pub(super) fn backward(start: &Gradient) -> PyResult<()> {
    let (nodes, leaves) = reach(start);
    if let Some(node) = nodes.iter().find(|node| node.is_freed()) {
        let op = node.op();
        return Err(PyRuntimeError::new_err(format!(
            "trying to go back through the graph a second time: what `{op}` saved is freed"
        )));
    }
    leaves.iter().try_for_each(|leaf| leaf.ensure_grad())?;
    for node in nodes {
        node.free();
    }
    Ok(())
}

/// Every node and leaf of the graph, each once.
fn reach(start: &Gradient) -> (Vec<&GraphNode>, Vec<&Leaf>) {
    let (mut nodes, mut leaves) = (Vec::new(), Vec::new());
    let mut seen: HashSet<*const ()> = HashSet::new();
    let mut open = vec![start];
    while let Some(next) = open.pop() {
        match next {
            Gradient::Leaf(leaf) if seen.insert(Arc::as_ptr(leaf).cast()) => leaves.push(&**leaf),
            Gradient::Node(node) if seen.insert(Arc::as_ptr(node).cast()) => {
                nodes.push(&**node);
                open.extend(&node.inputs);
            }
            _ => {}
        }
    }
    (nodes, leaves)
}
