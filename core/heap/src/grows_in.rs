//! The container in which a name grows: the deepest that has something new beside what it had before.

use std::collections::HashMap;

use super::csr_graph::SESSION;
use super::heap_analysis::HeapAnalysis;
use super::inventory::Grown;
use super::node::NodeIdx;
use super::path;
use super::retained_size::{RetainedSize, SizedStorage};
use gpumem_model::holders::GrowsIn;
use gpumem_model::units::Bytes;

/// What collects, and can be emptied.
const COLLECTIONS: [&str; 6] = ["OrderedDict", "defaultdict", "deque", "dict", "list", "set"];

/// What a name holds on a device.
#[derive(Default)]
pub(super) struct NameStorages<'s> {
    new: Vec<&'s SizedStorage>,
    old: Vec<&'s SizedStorage>,
}

impl HeapAnalysis<'_> {
    /// What each of these roots holds on a device: what is new, and what the look before found there, too.
    pub(super) fn storages_of(
        &self,
        device: u16,
        roots: &[u32],
        grown: &Grown<'_>,
    ) -> HashMap<u32, NameStorages<'_>> {
        let mut of_roots: HashMap<u32, NameStorages<'_>> = roots
            .iter()
            .map(|root| (*root, NameStorages::default()))
            .collect();
        for stored in self.storages_on(device) {
            if let Some(of_root) = of_roots.get_mut(&stored.root) {
                of_root.add(stored, self.is_new(stored, grown));
            }
        }
        of_roots
    }

    /// The look before did not find it under the same name.
    pub(super) fn is_new(&self, stored: &SizedStorage, grown: &Grown<'_>) -> bool {
        let storage = self.storage(stored);
        let known = storage.zip(self.web.name_of(stored.root));
        known.is_some_and(|(storage, name)| grown.is_new(storage, name.kind, name.name))
    }

    /// Where a root grows, if that is not the object `itself` of which it is asked.
    pub(super) fn grows_in(
        &self,
        root: u32,
        itself: Option<NodeIdx>,
        storages: &NameStorages<'_>,
        tallies: &[RetainedSize],
    ) -> Option<GrowsIn> {
        let newest = storages.new.iter().rev().max_by_key(|it| it.n_bytes)?;
        let way: Vec<u32> = self.way(root, newest).collect();
        let places: HashMap<u32, usize> = way.iter().copied().zip(0..).collect();
        let met_old = self.meetings(root, &storages.old, &places);
        let deepest = met_old.into_iter().flatten().min()?;
        let place = (deepest..way.len()).find(|place| self.collects(way[*place]))?;
        let container = way[place];
        let met_new = self.meetings(root, &storages.new, &places);
        let node = self
            .web
            .node_of(container)
            .filter(|node| Some(*node) != itself)?;
        let is_bounded = |stored: &&SizedStorage| self.is_bounded(root, stored);
        let bound = self.web.graph.node(node).bound;
        let bound = bound.filter(|_| storages.new.iter().all(is_bounded));
        let tally = &tallies[self.dominators.number(container) as usize];
        let (mut n_all, mut n_in) = (0, 0);
        for (stored, met) in storages.new.iter().zip(met_new) {
            let is_in = met.is_some_and(|met| met <= place);
            n_all += stored.n_bytes;
            n_in += if is_in { stored.n_bytes } else { 0 };
        }
        let beside = n_all as f64 / n_in as f64;
        Some(GrowsIn {
            path: path::text(&self.web, &self.reach, SESSION, container),
            is_all: n_in == n_all,
            bound: bound.map(|bound| self.filled(bound, container)),
            n_bytes: Bytes::new((tally.n_bytes as f64 * beside) as u64),
        })
    }

    /// What lies between a storage and the root of its path, from itself on.
    fn way(&self, root: u32, stored: &SizedStorage) -> impl Iterator<Item = u32> {
        let above = move |at: &u32| Some(self.reach.above(*at)).filter(|above| *above != root);
        std::iter::successors(Some(self.vertex(stored.number)), above)
    }

    /// Where the ways of storages meet another one, by the places on that.
    fn meetings(
        &self,
        root: u32,
        storages: &[&SizedStorage],
        places: &HashMap<u32, usize>,
    ) -> Vec<Option<usize>> {
        let mut known: HashMap<u32, Option<usize>> = HashMap::new();
        let mut all = Vec::new();
        for stored in storages {
            let (mut passed, mut met) = (Vec::new(), None);
            for at in self.way(root, stored) {
                if let Some(place) = places.get(&at) {
                    met = Some(*place);
                    break;
                }
                if let Some(before) = known.get(&at) {
                    met = *before;
                    break;
                }
                passed.push(at);
            }
            known.extend(passed.into_iter().map(|at| (at, met)));
            all.push(met);
        }
        all
    }

    /// What collects it has a bound.
    fn is_bounded(&self, root: u32, stored: &SizedStorage) -> bool {
        let mut nodes = self.way(root, stored).filter_map(|it| self.web.object(it));
        nodes.any(|node| node.bound.is_some())
    }

    /// A container that a reader sees on the way.
    fn collects(&self, vertex: u32) -> bool {
        let node = self.web.object(vertex);
        let is_collection = node.is_some_and(|it| COLLECTIONS.contains(&&*it.type_name));
        is_collection && !path::is_within(&self.web, self.reach.link(vertex))
    }
}

impl<'s> NameStorages<'s> {
    pub(super) fn add(&mut self, stored: &'s SizedStorage, is_new: bool) {
        if is_new {
            self.new.push(stored);
        } else {
            self.old.push(stored);
        }
    }
}
