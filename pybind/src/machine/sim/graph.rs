//! What a result keeps for a backward pass: a graph of reference-counted nodes
//! that Python's garbage collector cannot see, as in torch.

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

use super::device::Storage;

/// Where the gradient of a tensor goes.
#[derive(Clone)]
pub(crate) enum Gradient {
    /// Into the tensor itself: the user made it with `requires_grad=True`.
    Leaf(Arc<Leaf>),
    /// Back through the operation that made it.
    Node(Arc<Node>),
}

/// A tensor that collects a gradient. A graph that reaches it keeps its storage.
pub(crate) struct Leaf {
    storage: Arc<Storage>,
    grad: Mutex<Option<Arc<Storage>>>,
}

/// One operation of a graph.
pub(crate) struct Node {
    op: &'static str,
    inputs: Vec<Gradient>,
    saved: Mutex<Saved>,
}

enum Saved {
    Storages(Vec<Arc<Storage>>),
    Freed,
}

impl Leaf {
    pub(super) fn new(storage: Arc<Storage>) -> Self {
        Self {
            storage,
            grad: Mutex::new(None),
        }
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    pub(crate) fn grad(&self) -> Option<Arc<Storage>> {
        lock(&self.grad).clone()
    }

    pub(super) fn forget_grad(&self) {
        // Taken out first: the block goes back after the lock is gone.
        let grad = lock(&self.grad).take();
        drop(grad);
    }

    fn ensure_grad(&self) -> PyResult<()> {
        if self.grad().is_none() {
            // Not under the lock: where memory runs out, whoever looks who holds it comes by here.
            let twin = self.storage.twin();
            let refused = |error| super::refused(self.storage.device(), &error);
            *lock(&self.grad) = Some(Arc::new(twin.map_err(refused)?));
        }
        Ok(())
    }
}

impl Node {
    pub(super) fn new(op: &'static str, inputs: Vec<Gradient>, saved: Vec<Arc<Storage>>) -> Self {
        Self {
            op,
            inputs,
            saved: Mutex::new(Saved::Storages(saved)),
        }
    }

    pub(crate) fn op(&self) -> &'static str {
        self.op
    }

    pub(crate) fn inputs(&self) -> &[Gradient] {
        &self.inputs
    }

    /// What it keeps for a backward pass; nothing when that has been.
    pub(crate) fn saved(&self) -> Vec<Arc<Storage>> {
        match &*lock(&self.saved) {
            Saved::Storages(storages) => storages.clone(),
            Saved::Freed => Vec::new(),
        }
    }

    fn is_freed(&self) -> bool {
        matches!(*lock(&self.saved), Saved::Freed)
    }

    /// Lets go of what was saved; a node that saved nothing can be passed again.
    fn free(&self) {
        let mut saved = lock(&self.saved);
        if matches!(&*saved, Saved::Storages(storages) if !storages.is_empty()) {
            let freed = mem::replace(&mut *saved, Saved::Freed);
            drop(saved);
            drop(freed);
        }
    }
}

impl Drop for Node {
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
fn reach(start: &Gradient) -> (Vec<&Node>, Vec<&Leaf>) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
