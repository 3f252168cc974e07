//! The reached nodes that lead to a storage: usually few.

use super::heap::{Heap, NodeKind, NodeNumber};

/// The nodes that lead to device memory, and the references between them.
pub(super) struct Pruned {
    /// By node: it leads to device memory.
    is_kept: Vec<bool>,
}

impl Pruned {
    /// Goes back from every storage, and from what else is `wanted`.
    pub(super) fn new(heap: &Heap<'_, '_>, wanted: &[NodeNumber]) -> Self {
        let storages =
            |number: &NodeNumber| matches!(heap.places[*number as usize], NodeKind::Storage(_));
        let every = 0..heap.places.len() as NodeNumber;
        let mut open: Vec<NodeNumber> = every.filter(storages).collect();
        open.extend(wanted);
        let mut is_kept = vec![false; heap.places.len()];
        if open.is_empty() {
            return Self { is_kept };
        }
        for node in &open {
            is_kept[*node as usize] = true;
        }
        let referrers = Referrers::new(heap);
        while let Some(node) = open.pop() {
            for referrer in referrers.of_node(node) {
                if !std::mem::replace(&mut is_kept[*referrer as usize], true) {
                    open.push(*referrer);
                }
            }
        }
        Self { is_kept }
    }

    pub(super) fn keeps(&self, node: NodeNumber) -> bool {
        self.is_kept[node as usize]
    }
}

/// The references turned round.
struct Referrers {
    /// Where those of each node end in `sources`; those of the node before end where they begin.
    ends: Vec<u32>,
    sources: Vec<NodeNumber>,
}

impl Referrers {
    fn new(heap: &Heap<'_, '_>) -> Self {
        let n_nodes = heap.places.len();
        let mut ends = vec![0_u32; n_nodes + 1];
        for_each(heap, |_, to| ends[to as usize + 1] += 1);
        for node in 0..n_nodes {
            ends[node + 1] += ends[node];
        }
        let mut sources = vec![0; ends[n_nodes] as usize];
        // Each node's begin moves to its end while it is filled.
        for_each(heap, |from, to| {
            let end = &mut ends[to as usize];
            sources[*end as usize] = from;
            *end += 1;
        });
        Self { ends, sources }
    }

    fn of_node(&self, node: NodeNumber) -> &[NodeNumber] {
        let node = node as usize;
        let begin = if node == 0 { 0 } else { self.ends[node - 1] };
        &self.sources[begin as usize..self.ends[node] as usize]
    }
}

/// Every reference, from the first node's on.
fn for_each(heap: &Heap<'_, '_>, mut visit: impl FnMut(NodeNumber, NodeNumber)) {
    for from in 0..heap.starts.len() {
        for to in heap.references_of(from as NodeNumber) {
            visit(from as NodeNumber, *to);
        }
    }
    for hidden in &heap.hidden_references {
        visit(hidden.from, hidden.to);
    }
}
