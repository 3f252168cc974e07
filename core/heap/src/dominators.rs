//! Which object alone keeps which: the tree of immediate dominators.
//!
//! A vertex dominates another if every path to that one leads through it: without the first, the
//! second is free. The algorithm is semi-NCA (Georgiadis, Tarjan and Werneck, "Finding dominators in
//! practice", 2006): semidominators as Lengauer and Tarjan find them, then the nearest common ancestor
//! on the tree built so far. Nothing here is recursive, so a chain of a million objects does not
//! overflow the stack.

use super::csr_graph::{CsrGraph, NONE, SESSION};
use super::number_lists::NumberLists;

/// The dominator tree, in the numbers of a depth-first search: the parent of
/// each has a smaller number than itself.
pub(super) struct Dominators {
    /// The vertex of each number.
    pub(super) vertices: Vec<u32>,
    /// The number of each vertex.
    numbers: Vec<u32>,
    /// The number of its immediate dominator; the session's is its own.
    pub(super) above: Vec<u32>,
    /// Who holds each, by numbers.
    holders: NumberLists,
}

impl Dominators {
    /// Every vertex must be reached: what no root names hangs on "unnamed".
    pub(super) fn new(web: &CsrGraph<'_>) -> Self {
        let (vertices, numbers, parents) = search(web);
        let holders = holders(web, &vertices, &numbers);
        let semi = semidominators(&parents, &holders);
        let mut above = parents;
        for v in 1..above.len() {
            let mut up = above[v];
            while up > semi[v] {
                up = above[up as usize];
            }
            above[v] = up;
        }
        Self {
            vertices,
            numbers,
            above,
            holders,
        }
    }

    pub(super) fn number(&self, vertex: u32) -> u32 {
        self.numbers[vertex as usize]
    }

    /// The numbers of those that hold this one.
    pub(super) fn holders(&self, number: u32) -> &[u32] {
        self.holders.get(number)
    }

    /// The numbers that each number dominates immediately.
    pub(super) fn children(&self) -> NumberLists {
        let pairs = || (1..self.above.len() as u32).map(|v| (self.above[v as usize], v));
        NumberLists::new(self.above.len(), pairs)
    }

    /// For each number the one below the session on its way up.
    pub(super) fn tops(&self) -> Vec<u32> {
        let mut tops: Vec<u32> = vec![0; self.above.len()];
        for v in 1..self.above.len() {
            tops[v] = match self.above[v] {
                0 => v as u32,
                up => tops[up as usize],
            };
        }
        tops
    }
}

/// Depth first from the session: vertices by number, numbers by vertex, parents by number.
fn search(web: &CsrGraph<'_>) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let n = web.n_vertices();
    let mut numbers = vec![NONE; n];
    let mut vertices = Vec::with_capacity(n);
    let mut parents = Vec::with_capacity(n);
    numbers[SESSION as usize] = 0;
    vertices.push(SESSION);
    parents.push(0);
    // A vertex, its number, and which successor is next.
    let mut open = vec![(SESSION, 0_u32, 0_usize)];
    while let Some((vertex, parent, next)) = open.last_mut() {
        let Some((target, _)) = web.successor(*vertex, *next) else {
            open.pop();
            continue;
        };
        *next += 1;
        if numbers[target as usize] == NONE {
            let number = vertices.len() as u32;
            numbers[target as usize] = number;
            vertices.push(target);
            parents.push(*parent);
            open.push((target, number, 0));
        }
    }
    (vertices, numbers, parents)
}

/// Who holds each, by numbers. The session's hold on the roots is left out: it
/// is their parent already.
fn holders(web: &CsrGraph<'_>, vertices: &[u32], numbers: &[u32]) -> NumberLists {
    let pairs = || {
        (1..vertices.len() as u32).flat_map(|from| {
            let vertex = vertices[from as usize];
            web.successors(vertex)
                .map(move |(target, _)| (numbers[target as usize], from))
        })
    };
    NumberLists::new(vertices.len(), pairs)
}

/// The smallest number from which a path leads to each, on which every number
/// in between is larger than its own.
fn semidominators(parents: &[u32], holders: &NumberLists) -> Vec<u32> {
    let n = parents.len() as u32;
    let mut semi = parents.to_vec();
    let mut forest = Forest {
        above: parents.to_vec(),
        best: (0..n).collect(),
        open: Vec::new(),
    };
    for v in (1..n).rev() {
        let of_holders = holders.get(v).iter();
        let least = of_holders
            .map(|holder| forest.best_above(*holder, v))
            .fold(semi[v as usize], u32::min);
        semi[v as usize] = least;
        forest.best[v as usize] = least;
    }
    semi
}

/// Paths up the search tree, shortened as they are gone.
struct Forest {
    above: Vec<u32>,
    /// The smallest semidominator on the part that is cut short; before that is
    /// known, a vertex's own number.
    best: Vec<u32>,
    open: Vec<u32>,
}

impl Forest {
    /// The smallest semidominator on the way up from `v`, below anything up to `last`.
    fn best_above(&mut self, v: u32, last: u32) -> u32 {
        let mut at = v;
        while self.above[at as usize] > last {
            self.open.push(at);
            at = self.above[at as usize];
        }
        // From the top down, so that each finds the one above it cut short.
        while let Some(below) = self.open.pop() {
            let up = self.above[below as usize] as usize;
            let best = self.best[below as usize].min(self.best[up]);
            self.best[below as usize] = best;
            self.above[below as usize] = self.above[up];
        }
        self.best[v as usize]
    }
}
