//! What the attributes of a named object have: the levels of `trainer.history` beside that of `trainer`.

use std::collections::{BTreeMap, BTreeSet};

use super::branches::MAX_DEPTH;
use super::csr_graph::{NONE, SESSION};
use super::grows_in::NameStorages;
use super::heap_analysis::HeapAnalysis;
use super::inventory::Grown;
use super::retained_size::{RetainedSize, SizedStorage};
use super::step::Step;
use super::{HolderLimits, path, words};
use gpumem_model::holders::{Holder, NameLevel, RootKind, Traits};
use gpumem_model::units::Bytes;

/// An object with more of them is a collection, and is followed as a whole.
const MOST_BRANCHES: usize = 16;

/// Of all names together.
const MOST_LEVELS: usize = 128;

/// What a vertex is to the name that it is found through: the named object itself, or part of it.
const ITSELF: u32 = NONE - 1;

/// The storages that are found through one attribute.
struct Branch<'s> {
    n_bytes: u64,
    n_storages: u64,
    /// Parts of the bytes: what only graphs hold, and what is new.
    n_saved: u64,
    n_new: u64,
    /// The largest of those that are new, or else of all.
    main: &'s SizedStorage,
    storages: NameStorages<'s>,
}

impl<'s> Branch<'s> {
    fn new(main: &'s SizedStorage) -> Self {
        Self {
            n_bytes: 0,
            n_storages: 0,
            n_saved: 0,
            n_new: 0,
            main,
            storages: NameStorages::default(),
        }
    }

    fn add(&mut self, stored: &'s SizedStorage, is_new: bool) {
        self.n_bytes += stored.n_bytes;
        self.n_storages += 1;
        self.n_saved += if stored.is_saved { stored.n_bytes } else { 0 };
        if (is_new, stored.n_bytes) > (self.n_new > 0, self.main.n_bytes) {
            self.main = stored;
        }
        self.n_new += if is_new { stored.n_bytes } else { 0 };
        self.storages.add(stored, is_new);
    }
}

impl HeapAnalysis<'_> {
    /// The levels of the attributes, and of the string keys, of the objects that these variables are. Of those that
    /// have something new, also what each holds.
    pub(super) fn main_branches(
        &self,
        device: u16,
        names: &BTreeSet<&str>,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> (Vec<NameLevel>, Vec<Holder>) {
        let is_asked = |root: u32| {
            let name = self.web.name_of(root);
            name.filter(|it| it.kind == RootKind::Variable && names.contains(it.name))
        };
        let is_new = |stored: &SizedStorage| grown.is_some_and(|grown| self.is_new(stored, grown));
        let mut heads = vec![NONE; self.web.n_vertices()];
        let mut branches: BTreeMap<u32, BTreeMap<u32, Branch<'_>>> = BTreeMap::new();
        for stored in self.storages_on(device) {
            if is_asked(stored.root).is_none() {
                continue;
            }
            let head = self.head(stored.root, self.vertex(stored.number), &mut heads);
            let of_root = branches.entry(stored.root).or_default();
            if head != ITSELF && self.is_part(head) && of_root.len() <= MOST_BRANCHES {
                let is_new = is_new(stored);
                let branch = of_root.entry(head);
                let branch = branch.or_insert_with(|| Branch::new(stored));
                branch.add(stored, is_new);
            }
        }
        branches.retain(|_, branches| branches.len() <= MOST_BRANCHES);
        let branches = branches.iter().flat_map(|(root, branches)| {
            let branches = branches.iter();
            branches.map(|(head, branch)| (*root, *head, branch))
        });
        let (mut levels, mut holders) = (Vec::new(), Vec::new());
        for (root, head, branch) in branches.take(MOST_LEVELS) {
            let Some(holder) = self.main_branch(root, head, branch, tallies, limits) else {
                continue;
            };
            levels.push(NameLevel {
                kind: holder.kind,
                name: holder.name.clone(),
                n_bytes: Bytes::new(branch.n_bytes),
                n_storages: branch.n_storages,
            });
            holders.extend(Some(holder).filter(|_| branch.n_new > 0));
        }
        (levels, holders)
    }

    /// A branch as a holder, by what is new in it.
    fn main_branch(
        &self,
        root: u32,
        head: u32,
        branch: &Branch<'_>,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
    ) -> Option<Holder> {
        let edge = self.web.edge(head)?;
        let name = self.web.name_of(root)?;
        let vertex = self.web.first_node() + edge.to.0;
        let number = self.dominators.number(vertex);
        let tally = &tallies[number as usize];
        let main = self.vertex(branch.main.number);
        let (branches, more) = self.branches(number, tallies, limits, limits.depth.min(MAX_DEPTH));
        // The name may be a class.
        let above = self.target(root);
        let above = above.map(|it| &*self.web.graph.node(it).type_name);
        let links = self.reach.path(SESSION, main);
        let traits = self.traits(Some(edge.to), tally, main, None);
        let bound = self.web.graph.node(edge.to).bound;
        Some(Holder {
            fresh: Some(Bytes::new(branch.n_new)),
            path: path::text(&self.web, &self.reach, SESSION, main),
            what: words::object(self.web.graph.node(edge.to), tally),
            traits: Traits {
                // What other attributes keep, too, is freed with neither.
                graph: Bytes::new(branch.n_saved.max(tally.graph)),
                is_shared: tally.n_bytes < branch.n_bytes / 2,
                keeper: self.keeper(above, &links),
                filled_by: name.filled_by.unwrap_or_default().to_owned(),
                grows_in: self.grows_in(root, Some(edge.to), &branch.storages, tallies),
                // A key is no entry of what it leads to.
                bound: traits.bound.or(bound.map(|it| self.filled(it, vertex))),
                ..traits
            },
            branches,
            more,
            ..Holder::new(
                RootKind::Variable,
                &format!("{}{}", name.name, edge.step),
                Bytes::new(branch.n_bytes),
            )
        })
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

    /// An attribute, or what stands under a text in a dict. What a tensor has is its own.
    fn is_part(&self, link: u32) -> bool {
        let edge = self.web.edge(link);
        edge.is_some_and(|edge| match &edge.step {
            Step::Attribute(name) => !matches!(&**name, "grad" | "grad_fn"),
            Step::Key(key) => key.starts_with(['\'', '"']),
            _ => false,
        })
    }
}
