//! The graph as arrays, with one vertex above everything: the session, then the
//! roots, then objects and storages.

use std::collections::HashMap;

use super::graph::ObjectGraph;
use super::node::{NodeIdx, TensorCategory};
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
    /// Successors of vertex `v`: `targets[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    targets: Vec<u32>,
    /// Which edge of the graph each is; beyond those the entries of roots.
    links: Vec<u32>,
    /// Storage nodes that stand for the storage of another one, in order.
    twins: Vec<u32>,
    /// What no root reaches, by the objects that lead to the rest of it.
    pub(super) orphans: Vec<u32>,
}

impl<'a> CsrGraph<'a> {
    pub(super) fn new(graph: &'a ObjectGraph) -> Self {
        let (names, name_of) = names(&graph.roots);
        let mut web = Self {
            graph,
            names,
            starts: Vec::new(),
            targets: Vec::new(),
            links: Vec::new(),
            twins: Vec::new(),
            orphans: Vec::new(),
        };
        web.connect(&name_of);
        web
    }

    /// Fills the adjacency: counts, starts, then each edge at its place.
    fn connect(&mut self, name_of: &[u32]) {
        let graph = self.graph;
        let twins = twins(graph);
        let first = self.first_node();
        let n_edges = graph.edges.len();
        let of_edges = graph
            .edges
            .iter()
            .map(|edge| (first + edge.from.0, first + edge.to.0));
        let of_roots = graph
            .roots
            .iter()
            .zip(name_of)
            .map(|(root, name)| (1 + name, first + root.target.0));
        let of_twins = twins
            .iter()
            .map(|(twin, original)| (first + twin.0, first + original.0));
        let pairs = || {
            of_edges
                .clone()
                .chain(of_roots.clone())
                .chain(of_twins.clone())
        };

        let n_pairs = n_edges + graph.roots.len() + twins.len();
        let mut starts = vec![0_u32; self.n_vertices() + 1];
        for (from, _) in pairs() {
            starts[from as usize + 1] += 1;
        }
        for v in 1..starts.len() {
            starts[v] += starts[v - 1];
        }
        let mut next = starts.clone();
        let mut targets = vec![0_u32; n_pairs];
        let mut links = vec![0_u32; n_pairs];
        for (link, (from, to)) in pairs().enumerate() {
            let slot = &mut next[from as usize];
            targets[*slot as usize] = to;
            links[*slot as usize] = link as u32;
            *slot += 1;
        }
        (self.starts, self.targets, self.links) = (starts, targets, links);
        self.twins = twins.iter().map(|(twin, _)| twin.0).collect();
        self.twins.sort_unstable();
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

    /// The root of a vertex; `None` for the session and the nodes.
    pub(super) fn name_of(&self, vertex: u32) -> Option<&RootName<'a>> {
        self.names.get((vertex as usize).wrapping_sub(1))
    }

    pub(super) fn is_graph(&self, vertex: u32) -> bool {
        let node = self.node_of(vertex).map(|idx| self.graph.node(idx));
        node.is_some_and(|node| {
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
            _ => {
                let slot = self.starts[vertex as usize] as usize + n;
                let is_its = slot < self.starts[vertex as usize + 1] as usize;
                is_its.then(|| (self.targets[slot], self.links[slot]))
            }
        }
    }

    /// What a vertex holds, and by which link.
    pub(super) fn successors(&self, vertex: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).map_while(move |n| self.successor(vertex, n))
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
