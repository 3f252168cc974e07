//! The graph as lists of vertices, with one vertex above everything: the session, then the
//! roots, then objects and storages.

use std::collections::HashMap;

use super::graph::{Edge, ObjectGraph};
use super::node::{Node, NodeIdx, TensorCategory};
use super::number_lists::NumberLists;
use super::root::Root;
use gpumem_model::holders::RootKind;

/// What stands for "nothing" among vertices and links.
pub(super) const NONE: u32 = u32::MAX;
/// The vertex above every root.
pub(super) const SESSION: u32 = 0;

/// A name with all objects that it reaches at once: roots of equal name and kind.
#[derive(Debug)]
pub(super) struct RootName<'a> {
    pub(super) name: &'a str,
    pub(super) kind: RootKind,
    pub(super) filled_by: Option<&'a str>,
}

/// A graph with compressed adjacency.
pub(super) struct CsrGraph<'a> {
    pub(super) graph: &'a ObjectGraph,
    /// Distinct roots, preferred kinds first; the last is "unnamed". Vertices 1, 2, …
    pub(super) names: Vec<RootName<'a>>,
    /// Of each vertex what it holds, and which edge of the graph leads there; beyond the edges are the entries of
    /// roots.
    successors: NumberLists<(u32, u32)>,
    /// Storage nodes that stand for the storage of another one, in order.
    twins: Vec<u32>,
    /// What no root reaches, by the objects that lead to the rest of it.
    pub(super) orphans: Vec<u32>,
}

impl<'a> CsrGraph<'a> {
    pub(super) fn new(graph: &'a ObjectGraph) -> Self {
        let (names, name_of) = names(&graph.roots);
        let twins = twins(graph);
        let first = 1 + names.len() as u32;
        let of_edges = graph.edges.iter();
        let of_edges = of_edges.map(|edge| (first + edge.from.0, first + edge.to.0));
        let of_roots = graph.roots.iter().zip(&name_of);
        let of_roots = of_roots.map(|(root, name)| (1 + name, first + root.target.0));
        let of_twins = twins.iter();
        let of_twins = of_twins.map(|(twin, original)| (first + twin.0, first + original.0));
        let all = of_edges.chain(of_roots).chain(of_twins).zip(0..);
        let pairs = || all.clone().map(|((from, to), link)| (from, (to, link)));
        let successors = NumberLists::new(first as usize + graph.nodes.len(), pairs);
        let mut twins: Vec<u32> = twins.iter().map(|(twin, _)| twin.0).collect();
        twins.sort_unstable();
        Self {
            graph,
            names,
            successors,
            twins,
            orphans: Vec::new(),
        }
    }

    /// The node's bytes are counted at another one.
    pub(super) fn is_twin(&self, idx: u32) -> bool {
        self.twins.binary_search(&idx).is_ok()
    }

    pub(super) fn n_vertices(&self) -> usize {
        self.first_node() as usize + self.graph.nodes.len()
    }

    /// The vertex of the first node.
    pub(super) fn first_node(&self) -> u32 {
        1 + self.names.len() as u32
    }

    /// The vertex of "unnamed".
    pub(super) fn unnamed(&self) -> u32 {
        self.names.len() as u32
    }

    /// The node of a vertex; `None` for the session and the roots.
    pub(super) fn node_of(&self, vertex: u32) -> Option<NodeIdx> {
        vertex.checked_sub(self.first_node()).map(NodeIdx)
    }

    /// The object or the storage of a vertex; `None` for the session and the roots.
    pub(super) fn object(&self, vertex: u32) -> Option<&'a Node> {
        self.node_of(vertex).map(|idx| self.graph.node(idx))
    }

    /// The root of a vertex; `None` for the session and the nodes.
    pub(super) fn name_of(&self, vertex: u32) -> Option<&RootName<'a>> {
        self.names.get((vertex as usize).wrapping_sub(1))
    }

    pub(super) fn is_graph(&self, vertex: u32) -> bool {
        self.object(vertex).is_some_and(|node| {
            node.category == Some(TensorCategory::Graph) && node.storage.is_none()
        })
    }

    /// The successor number `n` of a vertex and the link to it, which is none
    /// below the session and below "unnamed".
    pub(super) fn successor(&self, vertex: u32, n: usize) -> Option<(u32, u32)> {
        let unlinked = |target: u32| (target, NONE);
        match vertex {
            SESSION => (n < self.names.len()).then(|| unlinked(n as u32 + 1)),
            _ if vertex == self.unnamed() => self.orphans.get(n).copied().map(unlinked),
            _ => self.successors.get(vertex).get(n).copied(),
        }
    }

    /// What a vertex holds, and by which link.
    pub(super) fn successors(&self, vertex: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).map_while(move |n| self.successor(vertex, n))
    }

    /// The edge that a link is; `None` of the entry of a root.
    pub(super) fn edge(&self, link: u32) -> Option<&'a Edge> {
        self.graph.edges.get(link as usize)
    }

    /// The root whose entry a link is; `None` for an edge of the graph.
    pub(super) fn entry(&self, link: u32) -> Option<&'a Root> {
        let idx = (link as usize).checked_sub(self.graph.edges.len())?;
        self.graph.roots.get(idx)
    }
}

/// The distinct roots in the order of preference, and which of them each root is.
fn names(roots: &[Root]) -> (Vec<RootName<'_>>, Vec<u32>) {
    let mut seen: HashMap<(RootKind, &str), u32> = HashMap::new();
    let mut found: Vec<RootName<'_>> = Vec::new();
    let first_met: Vec<u32> = roots
        .iter()
        .map(|root| {
            *seen.entry((root.kind, &*root.name)).or_insert_with(|| {
                found.push(RootName {
                    name: &root.name,
                    kind: root.kind,
                    filled_by: root.filled_by.as_deref(),
                });
                found.len() as u32 - 1
            })
        })
        .collect();
    let mut order: Vec<u32> = (0..found.len() as u32).collect();
    order.sort_by_key(|idx| found[*idx as usize].kind);
    let mut rank = vec![0; found.len()];
    for (new, old) in order.iter().enumerate() {
        rank[*old as usize] = new as u32;
    }
    let mut names: Vec<RootName<'_>> = found;
    names.sort_by_key(|name| name.kind);
    names.push(RootName {
        name: "unnamed",
        kind: RootKind::Unnamed,
        filled_by: None,
    });
    (
        names,
        first_met.iter().map(|old| rank[*old as usize]).collect(),
    )
}

/// Storage nodes that stand for the same storage as an earlier one: two
/// frameworks that share memory. Only the first has its bytes.
fn twins(graph: &ObjectGraph) -> Vec<(NodeIdx, NodeIdx)> {
    let mut storages: Vec<(u64, u32)> = graph
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(idx, node)| Some((node.storage.as_ref()?.id, idx as u32)))
        .collect();
    storages.sort_unstable();
    let mut twins = Vec::new();
    for alike in storages.chunk_by(|a, b| a.0 == b.0) {
        let device = |idx: u32| {
            graph.nodes[idx as usize]
                .storage
                .as_ref()
                .map(|it| &it.device)
        };
        for (n, (_, idx)) in alike.iter().enumerate().skip(1) {
            let original = alike[..n]
                .iter()
                .find(|(_, it)| device(*it) == device(*idx));
            twins.extend(original.map(|(_, original)| (NodeIdx(*idx), NodeIdx(*original))));
        }
    }
    twins
}
