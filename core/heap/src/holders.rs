//! Who holds what, device by device, and how it grew.

mod changed;
mod sharing;
mod traits;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::branches::MAX_DEPTH;
use super::csr_graph::{RootName, SESSION};
use super::heap_analysis::HeapAnalysis;
use super::inventory::{Grown, Since};
use super::node::{NodeIdx, TensorCategory};
use super::path;
use super::reach::BestHolder;
use super::retained_size::{RetainedSize, SizedStorage};
use super::{HolderLimits, Holders, ledger, words};
use gpumem_model::holders::{
    DeviceHolders, Holder, HolderOrigin, IpythonRetention, Remainder, RootKind, StorageUse, Traits,
};
use gpumem_model::units::Bytes;

pub(super) use self::traits::{is_of_hooks, keeper_of_step};

/// What lies under a name, or under what several names share.
struct Top {
    largest: SizedStorage,
    parts: BTreeMap<StorageUse, u64>,
}

impl Top {
    fn new(largest: SizedStorage) -> Self {
        Self {
            largest,
            parts: BTreeMap::new(),
        }
    }
}

/// What most of the bytes under these are for.
fn most<'t>(tops: impl IntoIterator<Item = &'t Top>) -> Option<StorageUse> {
    let mut sums: BTreeMap<StorageUse, u64> = BTreeMap::new();
    for (part, n_bytes) in tops.into_iter().flat_map(|top| &top.parts) {
        *sums.entry(*part).or_default() += n_bytes;
    }
    let most = sums
        .into_iter()
        .max_by_key(|(part, n)| (*n, Reverse(*part)));
    most.map(|(part, _)| part)
}

impl HeapAnalysis<'_> {
    /// Who holds what, within `limits`, and how it grew if there was an earlier search.
    pub fn holders(&self, limits: &HolderLimits, since: Option<Since<'_>>) -> Holders {
        let mut devices: Vec<DeviceHolders> = self
            .labels()
            .enumerate()
            .map(|(device, label)| {
                let grown = since.map(|since| since.on(label));
                let mut found = self.device(device as u16, label, limits, grown.as_ref());
                if let Some(unseen) = self.unseen(label).filter(|it| *it > Bytes::ZERO) {
                    let grown = grown.as_ref().and_then(Grown::of_unseen);
                    ledger::add_unseen(&mut found, unseen, self.web.graph.is_whole, grown);
                }
                found
            })
            .filter(|device| device.n_bytes > Bytes::ZERO)
            .collect();
        devices.sort_by_key(|device| Reverse(device.n_bytes));
        Holders { devices }
    }

    fn device(
        &self,
        device: u16,
        label: &str,
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> DeviceHolders {
        let tallies = self.ground.tallies(&self.web, &self.dominators, device);
        let tops = self.tops(device);
        let (roots, more) = self.roots(device, &tallies, &tops, limits, grown);
        let (shared, more_shared) = self.shared(&tallies, &tops, limits);
        let stored = || self.storages_on(device);
        let (changed, growing_branches) = self.changed(device, &tallies, limits, grown);
        DeviceHolders {
            device: label.to_owned(),
            n_bytes: stored().map(|it| Bytes::new(it.n_bytes)).sum(),
            n_storages: stored().count() as u64,
            roots,
            more,
            sharing: self.sharing(device, &tallies, limits, grown),
            changed,
            growing_branches,
            shared,
            more_shared,
            kept: self.kept(stored()),
            parts: parts(stored()),
            is_cut: self.web.graph.is_cut,
            ..DeviceHolders::default()
        }
    }

    /// The storages under each top that are listed one by one.
    fn tops(&self, device: u16) -> HashMap<u32, Top> {
        let mut tops: HashMap<u32, Top> = HashMap::new();
        for stored in self.storages_on(device) {
            let top = self.tops[stored.number as usize];
            let known = tops.entry(top).or_insert_with(|| Top::new(*stored));
            if stored.n_bytes > known.largest.n_bytes {
                known.largest = *stored;
            }
            *known.parts.entry(part(stored)).or_default() += stored.n_bytes;
        }
        tops
    }

    /// What only graphs hold and these names lead to first, alone or together with others.
    fn saved(&self, device: u16, roots: &[u32]) -> HashMap<u32, Bytes> {
        let mut saved: HashMap<u32, Bytes> = roots.iter().map(|it| (*it, Bytes::ZERO)).collect();
        for stored in self.storages_on(device).filter(|it| it.is_saved) {
            if let Some(sum) = saved.get_mut(&stored.root) {
                *sum += Bytes::new(stored.n_bytes);
            }
        }
        saved
    }

    fn roots(
        &self,
        device: u16,
        tallies: &[RetainedSize],
        tops: &HashMap<u32, Top>,
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> (Vec<Holder>, Remainder) {
        let of_root = |root: u32| tallies[self.dominators.number(root) as usize].n_bytes;
        let mut roots: Vec<u32> = (1..self.web.first_node())
            .filter(|root| of_root(*root) > 0)
            .collect();
        // Of equal ones those that are new: names that are numbered are many.
        let more_than_before = |root: u32| {
            let name = &self.web.names[root as usize - 1];
            grown.and_then(|grown| grown.growth(name.kind, name.name))
        };
        roots.sort_by_cached_key(|root| Reverse((of_root(*root), more_than_before(*root))));
        let mut more = Remainder::default();
        for root in roots.drain(limits.n_roots.min(roots.len())..) {
            more.add(1, of_root(root));
        }
        let saved = self.saved(device, &roots);
        let storages = grown.map(|grown| self.storages_of(device, &roots, grown));
        let holder = |root: &u32| {
            let mut holder = self.root(*root, tallies, tops, limits, grown);
            holder.traits.graph = saved[root].max(holder.traits.graph);
            let storages = storages.as_ref().map(|of_roots| &of_roots[root]);
            let itself = self.target(*root);
            holder.traits.grows_in =
                storages.and_then(|it| self.grows_in(*root, itself, it, tallies));
            holder
        };
        (roots.iter().map(holder).collect(), more)
    }

    fn root(
        &self,
        root: u32,
        tallies: &[RetainedSize],
        tops: &HashMap<u32, Top>,
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> Holder {
        let number = self.dominators.number(root);
        let tally = &tallies[number as usize];
        let name = &self.web.names[root as usize - 1];
        let top = tops.get(&number);
        let largest = top.map_or(root, |top| self.vertex(top.largest.number));
        let target = self.target(root);
        // What the name holds itself is shown in its place, with what that holds.
        let shown = match self.children.get(number) {
            [child] if self.web.node_of(self.vertex(*child)) == target => *child,
            _ => number,
        };
        let (branches, more) = self.branches(shown, tallies, limits, limits.depth.min(MAX_DEPTH));
        Holder {
            name: name.name.to_owned(),
            kind: name.kind,
            retained: Bytes::new(tally.n_bytes),
            grown: grown.and_then(|grown| grown.growth(name.kind, name.name)),
            fresh: grown.and_then(|grown| grown.fresh_of(name.kind, name.name)),
            origin: HolderOrigin::default(),
            path: path::text(&self.web, &self.reach, SESSION, largest),
            what: match target {
                Some(idx) => self
                    .suspended_in(root, idx)
                    .unwrap_or_else(|| words::object(self.web.graph.node(idx), tally)),
                None => words::container(None, tally),
            },
            traits: Traits {
                filled_by: filler(name),
                ..self.traits(target, tally, largest, most(top))
            },
            branches,
            more,
        }
    }

    /// `list of 8 generators`: what their variables hold is not what is in the list.
    fn suspended_in(&self, root: u32, container: NodeIdx) -> Option<String> {
        let (vertex, _) = self.web.successors(root).next()?;
        let entries = self.web.successors(vertex);
        let types = entries.map(|(entry, _)| words::suspended(self.web.object(entry)?));
        let types: Option<Vec<[&str; 2]>> = types.collect();
        let types = types?;
        let &[one, many] = types.first()?;
        let noun = if types.len() == 1 { one } else { many };
        let is_alike = types.iter().all(|it| it[0] == one);
        let type_name = words::type_name(self.web.graph.node(container));
        is_alike.then(|| format!("{type_name} of {} {noun}", types.len()))
    }

    /// The named object, if it is a single one.
    pub(super) fn target(&self, root: u32) -> Option<NodeIdx> {
        let mut targets = self.web.successors(root);
        let target = targets.next().filter(|_| targets.next().is_none());
        target.and_then(|(vertex, _)| self.web.node_of(vertex))
    }

    /// What each place of `IPython` keeps that no name of the user's reaches.
    fn kept<'s>(&self, stored: impl Iterator<Item = &'s SizedStorage>) -> Vec<IpythonRetention> {
        let mut places: BTreeMap<RootKind, (Bytes, &SizedStorage)> = BTreeMap::new();
        for stored in stored.filter(|it| it.held == BestHolder::ByIpython) {
            let Some(name) = self.web.name_of(stored.root) else {
                continue;
            };
            let (n_bytes, largest) = places.entry(name.kind).or_insert((Bytes::ZERO, stored));
            *n_bytes += Bytes::new(stored.n_bytes);
            if stored.n_bytes > largest.n_bytes {
                *largest = stored;
            }
        }
        let kept = |(place, (n_bytes, largest)): (RootKind, (Bytes, &SizedStorage))| {
            let vertex = self.vertex(largest.number);
            let name = self.web.name_of(largest.root);
            IpythonRetention {
                place,
                n_bytes,
                name: name.map_or_else(String::new, |name| name.name.to_owned()),
                path: path::text(&self.web, &self.reach, SESSION, vertex),
                what: self.owner_words(vertex),
            }
        };
        let mut kept: Vec<IpythonRetention> = places.into_iter().map(kept).collect();
        kept.sort_by_key(|it| Reverse(it.n_bytes));
        kept
    }

    /// The tensor by which a storage is reached, in words.
    fn owner_words(&self, storage: u32) -> String {
        let path = self.reach.path(SESSION, storage);
        let object = path.last().and_then(|(from, ..)| self.web.object(*from));
        object.map_or_else(String::new, |node| {
            words::object(node, &RetainedSize::default())
        })
    }
}

fn filler(name: &RootName<'_>) -> String {
    name.filled_by.unwrap_or_default().to_owned()
}

/// What the storages of a device are for, in the order of [`StorageUse::ALL`].
fn parts<'s>(stored: impl Iterator<Item = &'s SizedStorage>) -> Vec<(StorageUse, Bytes)> {
    let mut parts: BTreeMap<StorageUse, Bytes> = BTreeMap::new();
    for stored in stored.filter(|it| it.is_handed_out()) {
        *parts.entry(part(stored)).or_default() += Bytes::new(stored.n_bytes);
    }
    parts.into_iter().collect()
}

/// Who holds it goes before what it is: a model that nothing but a traceback holds is the traceback's.
fn part(stored: &SizedStorage) -> StorageUse {
    match (stored.held, stored.category) {
        (BestHolder::Unnamed, _) => StorageUse::Unnamed,
        (BestHolder::ByIpython, _) => StorageUse::Ipython,
        (BestHolder::BySystem, _) | (_, Some(TensorCategory::Workspace)) => StorageUse::Workspaces,
        (_, Some(TensorCategory::Parameter)) => StorageUse::Parameters,
        (_, Some(TensorCategory::Gradient)) => StorageUse::Gradients,
        (_, Some(TensorCategory::OptimizerState)) => StorageUse::OptimizerState,
        (_, Some(TensorCategory::KvCache)) => StorageUse::KvCaches,
        _ if stored.is_saved => StorageUse::Graphs,
        _ => StorageUse::Names,
    }
}
