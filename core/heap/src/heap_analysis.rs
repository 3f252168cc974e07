//! One search of the graph: everything about it that no device and no limit changes.

use super::csr_graph::CsrGraph;
use super::dominators::Dominators;
use super::graph::ObjectGraph;
use super::node::Storage;
use super::number_lists::NumberLists;
use super::reach::Reachability;
use super::retained_size::{SizedStorage, StorageIndex};
use super::shared::{self, Sharers};
use gpumem_model::units::Bytes;

/// A graph with its dominators, paths and storages.
///
/// A name's retained size is the sum of the storages that its node dominates. The dominators are
/// found by semi-NCA (Georgiadis, Tarjan and Werneck, *Finding Dominators in Practice*, 2006).
pub struct HeapAnalysis<'a> {
    pub(super) web: CsrGraph<'a>,
    pub(super) reach: Reachability,
    pub(super) dominators: Dominators,
    pub(super) children: NumberLists,
    /// The root, or the thing that roots share, under which each number is.
    pub(super) tops: Vec<u32>,
    pub(super) ground: StorageIndex,
    pub(super) sharers: Vec<(u32, Sharers)>,
}

impl<'a> HeapAnalysis<'a> {
    /// Analyzes a graph. Time and memory are about linear in its objects and edges.
    pub fn at(graph: &'a ObjectGraph) -> Self {
        let mut web = CsrGraph::new(graph);
        let reach = Reachability::search(&mut web);
        let dominators = Dominators::new(&web);
        let tops = dominators.tops();
        Self {
            children: dominators.children(),
            ground: StorageIndex::new(&web, &reach, &dominators),
            sharers: shared::sharers(&web, &dominators, &tops),
            tops,
            dominators,
            reach,
            web,
        }
    }

    /// The storages of a device.
    pub(super) fn storages_on(&self, device: u16) -> impl Iterator<Item = &SizedStorage> + Clone {
        let storages = self.ground.storages.iter();
        storages.filter(move |it| it.device == device)
    }

    /// What the graph has of a storage.
    pub(super) fn storage(&self, stored: &SizedStorage) -> Option<&'a Storage> {
        let node = self.web.object(self.vertex(stored.number))?;
        node.storage.as_ref()
    }

    /// The devices of storages, then those on which something is allocated and none was found.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        let found = self.ground.devices.iter().map(|label| &**label);
        let is_found = |label: &str| self.ground.devices.iter().any(|it| &**it == label);
        let ledger = self.web.graph.ledger.keys().map(String::as_str);
        found.chain(ledger.filter(move |label| !is_found(label)))
    }

    /// What is allocated on a device beyond the storages that were found; `None` where nobody says
    /// what is allocated.
    pub(super) fn unseen(&self, label: &str) -> Option<Bytes> {
        let handed_out = self.web.graph.ledger.get(label)?;
        let device = self.ground.devices.iter().position(|it| &**it == label);
        let is_its =
            |it: &&SizedStorage| it.is_handed_out() && Some(usize::from(it.device)) == device;
        let found = self.ground.storages.iter().filter(is_its);
        let (n_bytes, n_storages) = found.fold((0, 0), |(n_bytes, n), it| {
            (it.n_bytes.saturating_add(n_bytes), n + 1)
        });
        Some(handed_out.beyond(Bytes::new(n_bytes), n_storages))
    }

    /// The vertex of a number in the dominator tree.
    pub(super) fn vertex(&self, number: u32) -> u32 {
        self.dominators.vertices[number as usize]
    }
}
