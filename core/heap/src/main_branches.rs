//! What the attributes of a named object have: the levels of `trainer.history` beside that of `trainer`.

use std::collections::{BTreeMap, BTreeSet};

use super::csr_graph::NONE;
use super::heap_analysis::HeapAnalysis;
use super::path;
use super::step::Step;
use gpumem_model::holders::{NameLevel, RootKind};
use gpumem_model::units::Bytes;

/// An object with more of them is a collection, and is followed as a whole.
const MOST_BRANCHES: usize = 16;

/// Of all names together.
const MOST_LEVELS: usize = 128;

/// What a vertex is to the name that it is found through: the named object itself, or part of it.
const ITSELF: u32 = NONE - 1;

impl HeapAnalysis<'_> {
    /// The levels of the attributes, and of the string keys, of the objects that these variables are.
    pub(super) fn main_branches(&self, device: u16, names: &BTreeSet<&str>) -> Vec<NameLevel> {
        let is_asked = |root: u32| {
            let name = self.web.name_of(root);
            name.filter(|it| it.kind == RootKind::Variable && names.contains(it.name))
        };
        let mut heads = vec![NONE; self.web.n_vertices()];
        let mut branches: BTreeMap<u32, BTreeMap<u32, (u64, u64)>> = BTreeMap::new();
        for stored in self.ground.storages.iter().filter(|it| it.device == device) {
            if is_asked(stored.root).is_none() {
                continue;
            }
            let head = self.head(stored.root, self.vertex(stored.number), &mut heads);
            let of_root = branches.entry(stored.root).or_default();
            if head != ITSELF && self.is_part(head) && of_root.len() <= MOST_BRANCHES {
                let (n_bytes, n_storages) = of_root.entry(head).or_default();
                *n_bytes += stored.n_bytes;
                *n_storages += 1;
            }
        }
        branches.retain(|_, branches| branches.len() <= MOST_BRANCHES);
        let level = |root: u32, head: u32, (n_bytes, n_storages): (u64, u64)| {
            let step = &self.web.graph.edges.get(head as usize)?.step;
            Some(NameLevel {
                kind: RootKind::Variable,
                name: format!("{}{step}", self.web.name_of(root)?.name),
                n_bytes: Bytes::new(n_bytes),
                n_storages,
            })
        };
        let levels = branches.into_iter().flat_map(|(root, branches)| {
            let levels = branches.into_iter();
            levels.filter_map(move |(head, sums)| level(root, head, sums))
        });
        levels.take(MOST_LEVELS).collect()
    }

    /// The first link below the object of a name that a reader sees, on the way to `vertex`.
    fn head(&self, root: u32, vertex: u32, heads: &mut [u32]) -> u32 {
        let mut way = Vec::new();
        let mut at = vertex;
        while at != root && heads[at as usize] == NONE {
            way.push(at);
            at = self.reach.above(at);
        }
        let mut head = if at == root { NONE } else { heads[at as usize] };
        for at in way.into_iter().rev() {
            let link = self.reach.link(at);
            head = match head {
                NONE => ITSELF,
                ITSELF if !path::is_within(&self.web, link) => link,
                head => head,
            };
            heads[at as usize] = head;
        }
        head
    }

    /// An attribute, or what stands under a text in a dict.
    fn is_part(&self, link: u32) -> bool {
        let edge = self.web.graph.edges.get(link as usize);
        edge.is_some_and(|edge| match &edge.step {
            Step::Attribute(_) => true,
            Step::Key(key) => key.starts_with(['\'', '"']),
            _ => false,
        })
    }
}
