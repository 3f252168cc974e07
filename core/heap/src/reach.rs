//! The shortest path to everything, and who names it first.

use super::csr_graph::{CsrGraph, NONE, SESSION};
use gpumem_model::holders::RootKind;

/// Who holds a node at best. In the order of preference; a path through the
/// user's own names is shown before one through IPython's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BestHolder {
    /// A name of the user's.
    Named,
    /// A name of the user's, but only through a graph of the autograd.
    InGraph,
    /// Only IPython.
    ByIpython,
    /// Only a library.
    BySystem,
    /// No name.
    Unnamed,
}

/// How each vertex is reached first.
pub(super) struct Reachability {
    /// The vertex before it on its path.
    from: Vec<u32>,
    /// The link between them.
    link: Vec<u32>,
    held: Vec<BestHolder>,
    /// The root at which its path begins.
    root: Vec<u32>,
}

/// Which roots a round of the search begins at.
type IsInRound = fn(RootKind) -> bool;

/// The rounds of the search: each goes as far as it can before the next. Within one, what a function was given
/// counts for the variable of who gave it.
const ROUNDS: [(BestHolder, &[IsInRound]); 4] = [
    (
        BestHolder::Named,
        &[
            |kind| kind.is_named() && kind != RootKind::ThreadFrame,
            |kind| kind == RootKind::ThreadFrame,
        ],
    ),
    (BestHolder::ByIpython, &[RootKind::is_ipython]),
    (BestHolder::BySystem, &[|kind| kind == RootKind::System]),
    (
        BestHolder::Unnamed,
        &[|kind| kind == RootKind::Unnamed || kind.is_garbage() || kind.is_graph_cycle()],
    ),
];

impl Reachability {
    /// Searches in breadth from the preferred roots on; notes in `web` what no root reaches.
    pub(super) fn search(web: &mut CsrGraph<'_>) -> Self {
        let n = web.n_vertices();
        let mut reach = Self {
            from: vec![NONE; n],
            link: vec![NONE; n],
            held: vec![BestHolder::Unnamed; n],
            root: vec![NONE; n],
        };
        for (held, in_turn) in ROUNDS {
            reach.round(web, in_turn, held);
        }
        reach.take_orphans(web);
        reach
    }

    fn round(&mut self, web: &CsrGraph<'_>, in_turn: &[IsInRound], held: BestHolder) {
        let mut graphs = Vec::new();
        for is_in_turn in in_turn {
            let roots = (1..web.unnamed()).zip(&web.names);
            let mut queue: Vec<u32> = roots
                .filter(|(_, name)| is_in_turn(name.kind))
                .map(|(vertex, _)| vertex)
                .collect();
            for vertex in &queue {
                self.meet(*vertex, SESSION, NONE, held);
                self.root[*vertex as usize] = *vertex;
            }
            self.spread(web, &mut queue, held, Some(&mut graphs));
        }
        let inside = match held {
            BestHolder::Named => BestHolder::InGraph,
            other => other,
        };
        for vertex in &graphs {
            self.held[*vertex as usize] = inside;
        }
        self.spread(web, &mut graphs, inside, None);
    }

    /// Breadth first from `queue`; nodes of graphs are put aside where a list for them is given.
    fn spread(
        &mut self,
        web: &CsrGraph<'_>,
        queue: &mut Vec<u32>,
        held: BestHolder,
        mut graphs: Option<&mut Vec<u32>>,
    ) {
        let mut next = 0;
        while let Some(vertex) = queue.get(next).copied() {
            next += 1;
            for (target, link) in web.successors(vertex) {
                if self.is_met(target) {
                    continue;
                }
                self.meet(target, vertex, link, held);
                match &mut graphs {
                    Some(graphs) if web.is_graph(target) => graphs.push(target),
                    _ => queue.push(target),
                }
            }
        }
    }

    fn meet(&mut self, vertex: u32, from: u32, link: u32, held: BestHolder) {
        let idx = vertex as usize;
        self.from[idx] = from;
        self.link[idx] = link;
        self.held[idx] = held;
        self.root[idx] = self.root[from as usize];
    }

    fn is_met(&self, vertex: u32) -> bool {
        self.from[vertex as usize] != NONE
    }

    /// What is left hangs on "unnamed": first by the objects that nothing holds
    /// which is left, then, of the cycles, by any.
    fn take_orphans(&mut self, web: &mut CsrGraph<'_>) {
        let unnamed = web.unnamed();
        self.meet(unnamed, SESSION, NONE, BestHolder::Unnamed);
        self.root[unnamed as usize] = unnamed;
        let nodes = web.first_node()..web.n_vertices() as u32;
        let left: Vec<u32> = nodes.filter(|vertex| !self.is_met(*vertex)).collect();
        let mut is_held = vec![false; if left.is_empty() { 0 } else { web.n_vertices() }];
        for vertex in &left {
            for (target, _) in web.successors(*vertex) {
                is_held[target as usize] |= target != *vertex;
            }
        }
        let (held, free): (Vec<u32>, Vec<u32>) =
            left.iter().partition(|vertex| is_held[**vertex as usize]);
        for vertex in free.into_iter().chain(held) {
            if !self.is_met(vertex) {
                web.orphans.push(vertex);
                self.meet(vertex, unnamed, NONE, BestHolder::Unnamed);
                self.spread(web, &mut vec![vertex], BestHolder::Unnamed, None);
            }
        }
    }

    pub(super) fn held(&self, vertex: u32) -> BestHolder {
        self.held[vertex as usize]
    }

    /// The vertex before it on its path.
    pub(super) fn above(&self, vertex: u32) -> u32 {
        self.from[vertex as usize]
    }

    /// The last link of the path.
    pub(super) fn link(&self, vertex: u32) -> u32 {
        self.link[vertex as usize]
    }

    /// The root at which the path begins.
    pub(super) fn root(&self, vertex: u32) -> u32 {
        self.root[vertex as usize]
    }

    /// The path down to `vertex` from `above`, which lies on it: (from, to, link).
    pub(super) fn path(&self, above: u32, vertex: u32) -> Vec<(u32, u32, u32)> {
        let mut path = Vec::new();
        let mut at = vertex;
        while at != above && at != SESSION {
            let from = self.from[at as usize];
            path.push((from, at, self.link[at as usize]));
            at = from;
        }
        path.reverse();
        path
    }
}
