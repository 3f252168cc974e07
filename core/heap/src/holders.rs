//! Who holds what, device by device, and how it grew.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::branches::MAX_DEPTH;
use super::csr_graph::{RootName, SESSION};
use super::heap_analysis::HeapAnalysis;
use super::inventory::{Grown, SeriesName, Since};
use super::node::{CACHE, NodeIdx, TensorCategory};
use super::path;
use super::reach::BestHolder;
use super::retained_size::{RetainedSize, SizedStorage};
use super::shared::Sharers;
use super::step::Step;
use super::{HolderLimits, Holders, ledger, words};
use gpumem_model::holders::{
    Bound, DeviceHolders, Holder, HolderOrigin, IpythonRetention, Keeper, LibraryObject, NameLevel,
    Remainder, RootKind, SharedMemory, StorageUse, Traits,
};
use gpumem_model::units::{ByteDelta, Bytes};

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
        let stored = || self.ground.storages.iter().filter(|it| it.device == device);
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
            outlived: Vec::new(),
            given_back: Vec::new(),
            twins: Vec::new(),
            parts: parts(stored()),
            is_cut: self.web.graph.is_cut,
        }
    }

    /// The storages under each top that are listed one by one.
    fn tops(&self, device: u16) -> HashMap<u32, Top> {
        let mut tops: HashMap<u32, Top> = HashMap::new();
        let stored = self.ground.storages.iter().filter(|it| it.device == device);
        for stored in stored {
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
        let stored = self.ground.storages.iter().filter(|it| it.device == device);
        for stored in stored.filter(|it| it.is_saved) {
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
        let types = entries.map(|(entry, _)| {
            let node = self.web.graph.node(self.web.node_of(entry)?);
            words::suspended(node)
        });
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

    pub(super) fn traits(
        &self,
        target: Option<NodeIdx>,
        tally: &RetainedSize,
        largest: u32,
        part: Option<StorageUse>,
    ) -> Traits {
        let type_name = target.map(|idx| &*self.web.graph.node(idx).type_name);
        let links = self.reach.path(SESSION, largest);
        Traits {
            type_name: type_name.unwrap_or_default().to_owned(),
            n_tensors: tally.n_all(),
            scalars: tally.n_all() > 0 && u64::from(tally.n_scalars) == tally.n_all(),
            graph: Bytes::new(tally.graph),
            keeper: self.keeper(type_name, &links),
            is_shared: false,
            part,
            bound: self.bound(&links),
            tensor_type: self.tensor_type(&links),
            filled_by: String::new(),
            library_objects: self.library_objects(&links),
            grows_in: None,
        }
    }

    /// The objects of libraries that these links lead through, the nearest to their end first.
    fn library_objects(&self, links: &[(u32, u32, u32)]) -> Vec<LibraryObject> {
        let Some((_, end, _)) = links.last() else {
            return Vec::new();
        };
        let before = links.iter().rev().skip(1);
        before
            .filter_map(|(_, to, _)| self.library_object(*to, *end))
            .collect()
    }

    /// An object of a library on the way to `end`.
    pub(super) fn library_object(&self, vertex: u32, end: u32) -> Option<LibraryObject> {
        let class = self
            .web
            .graph
            .node(self.web.node_of(vertex)?)
            .class
            .as_ref()?;
        Some(LibraryObject {
            class: class.name.clone(),
            version: class.version.clone(),
            object: path::text(&self.web, &self.reach, SESSION, vertex),
            rest: path::text(&self.web, &self.reach, vertex, end),
        })
    }

    /// Of what has the storage at the end of the path.
    fn tensor_type(&self, links: &[(u32, u32, u32)]) -> String {
        let holder = links.last().and_then(|(from, ..)| self.web.node_of(*from));
        let holder = holder.map(|node| self.web.graph.node(node));
        let tensor = holder.filter(|node| node.category.is_some() || node.shape.is_some());
        tensor.map_or_else(String::new, |node| node.type_name.to_string())
    }

    /// Of the first container on the way to it, or of the object that has that container.
    fn bound(&self, links: &[(u32, u32, u32)]) -> Option<Bound> {
        for (_, to, link) in links {
            let edge = self.web.graph.edges.get(*link as usize);
            if edge.is_some_and(|edge| matches!(edge.step, Step::Index(_) | Step::Key(_))) {
                return None;
            }
            let node = self.web.node_of(*to);
            if let Some(bound) = node.and_then(|node| self.web.graph.node(node).bound) {
                return Some(self.filled(bound, *to));
            }
        }
        None
    }

    /// How full a container is.
    pub(super) fn filled(&self, bound: Bound, container: u32) -> Bound {
        let n = match bound.n {
            0 => self.n_entries(container).min(bound.most),
            n => n,
        };
        Bound { n, ..bound }
    }

    /// How many objects with memory a container holds whose entries Python does not count.
    fn n_entries(&self, container: u32) -> u64 {
        let links = self.web.successors(container);
        let edges = links.filter_map(|(_, link)| self.web.graph.edges.get(link as usize));
        let is_entry = |step: &Step| matches!(step, Step::Opaque | Step::Index(_) | Step::Key(_));
        let n = edges.filter(|edge| is_entry(&edge.step)).count();
        n.max(1) as u64
    }

    /// What has the object at the end of the links, if the name is of that type.
    pub(super) fn keeper(
        &self,
        type_name: Option<&str>,
        links: &[(u32, u32, u32)],
    ) -> Option<Keeper> {
        let of_link = |(_, to, link): &(u32, u32, u32)| {
            let root = self.web.entry(*link);
            let of_root = root.filter(|root| is_of_hooks(&root.path));
            let edge = self.web.graph.edges.get(*link as usize);
            let of_edge = edge.and_then(|edge| keeper_of_step(&edge.step));
            let of_step = of_root.map(|_| Keeper::Hooks).or(of_edge);
            let node = self.web.node_of(*to).map(|idx| self.web.graph.node(idx));
            let is_cache = node.is_some_and(|node| &*node.type_name == CACHE);
            of_step.or(is_cache.then_some(Keeper::Function))
        };
        let all = || links.iter().filter_map(of_link);
        match type_name {
            Some("type") => Some(Keeper::Class),
            Some(name) if name.ends_with(CACHE) => all().find(|it| *it != Keeper::Function),
            _ => all().min_by_key(|it| *it == Keeper::Function),
        }
    }

    fn shared(
        &self,
        tallies: &[RetainedSize],
        tops: &HashMap<u32, Top>,
        limits: &HolderLimits,
    ) -> (Vec<SharedMemory>, Remainder) {
        let mut groups: BTreeMap<&Sharers, Vec<u32>> = BTreeMap::new();
        for (number, sharers) in &self.sharers {
            if tallies[*number as usize].n_bytes > 0 {
                groups.entry(sharers).or_default().push(*number);
            }
        }
        let mut groups: Vec<(&Sharers, Vec<u32>, RetainedSize)> = groups
            .into_iter()
            .map(|(sharers, numbers)| {
                let mut sum = RetainedSize::default();
                for number in &numbers {
                    sum.add(&tallies[*number as usize]);
                }
                (sharers, numbers, sum)
            })
            .collect();
        groups.sort_by_key(|(_, _, sum)| Reverse(sum.n_bytes));
        let mut more = Remainder::default();
        for (_, _, sum) in groups.drain(limits.n_shared.min(groups.len())..) {
            more.add(1, sum.n_bytes);
        }
        let shared = groups.iter().map(|(sharers, numbers, sum)| {
            let tops = || numbers.iter().filter_map(|number| tops.get(number));
            let stored = tops().map(|top| &top.largest);
            let stored = stored.max_by_key(|it| (it.n_bytes, Reverse(it.number)));
            let vertex = stored.map_or(SESSION, |it| self.vertex(it.number));
            let names = sharers.roots.iter();
            let names = names.filter_map(|root| Some(self.web.name_of(*root)?.name.to_owned()));
            SharedMemory {
                names: names.collect(),
                and_others: sharers.and_others,
                n_bytes: Bytes::new(sum.n_bytes),
                path: path::text(&self.web, &self.reach, SESSION, vertex),
                what: self.numbers_words(numbers, sum),
                part: most(tops()),
            }
        });
        (shared.collect(), more)
    }

    /// The names that have more than before, and keep none of it alone: each with what is found
    /// through it first.
    fn sharing(
        &self,
        device: u16,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> Vec<Holder> {
        let keeps_nothing = |root: u32| tallies[self.dominators.number(root) as usize].n_bytes == 0;
        let stored = self.ground.storages.iter();
        let stored = stored.filter(|it| it.device == device && keeps_nothing(it.root));
        let mut by_root: BTreeMap<u32, Vec<&SizedStorage>> = BTreeMap::new();
        for stored in stored {
            by_root.entry(stored.root).or_default().push(stored);
        }
        let mut sharing: Vec<Holder> = by_root
            .into_iter()
            .filter_map(|(root, stored)| {
                let name = self.web.name_of(root)?;
                let more = grown?.growth(name.kind, name.name)?;
                (more > ByteDelta::ZERO).then(|| {
                    let holder = self.sharer(root, &stored, tallies);
                    Holder {
                        grown: Some(more),
                        fresh: grown.and_then(|grown| grown.fresh_of(name.kind, name.name)),
                        ..holder
                    }
                })
            })
            .collect();
        sharing.sort_by_key(|holder| Reverse(holder.grown));
        sharing.truncate(limits.n_shared);
        sharing
    }

    /// The names that have more or less than before, those that changed most first; and which of their branches
    /// have something new.
    fn changed(
        &self,
        device: u16,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> (Vec<NameLevel>, Vec<Holder>) {
        let mut levels: BTreeMap<SeriesName<'_>, (u64, u64)> = BTreeMap::new();
        let before = grown.map(Grown::names_before).unwrap_or_default();
        // A walk that stopped early does not know what is gone.
        if !self.web.graph.is_cut {
            levels.extend(before.keys().map(|name| (name.clone(), (0, 0))));
        }
        for stored in self.ground.storages.iter().filter(|it| it.device == device) {
            if let Some(name) = self.web.name_of(stored.root) {
                let key = (name.kind, name.kind.series_name(name.name));
                let (n_bytes, n_storages) = levels.entry(key).or_default();
                *n_bytes += stored.n_bytes;
                *n_storages += 1;
            }
        }
        let mut changed: Vec<(u64, NameLevel)> = levels
            .into_iter()
            .filter(|((kind, _), _)| grown.is_none_or(|grown| grown.knows(*kind)))
            .filter_map(|((kind, name), (n_bytes, n_storages))| {
                let key = (kind, name);
                let before = before.get(&key).map_or(0, |it| it.get());
                let level = NameLevel {
                    kind,
                    name: key.1.into_owned(),
                    n_bytes: Bytes::new(n_bytes),
                    n_storages,
                };
                (n_bytes != before).then(|| (n_bytes.abs_diff(before), level))
            })
            .collect();
        changed.sort_by_key(|(by, _)| Reverse(*by));
        changed.truncate(limits.n_changed);
        let mut changed: Vec<NameLevel> = changed.into_iter().map(|(_, level)| level).collect();
        let variables = changed.iter().filter(|it| it.kind == RootKind::Variable);
        let names: BTreeSet<&str> = variables.map(|it| &*it.name).collect();
        let (levels, growing) = self.main_branches(device, &names, tallies, limits, grown);
        changed.extend(levels);
        (changed, growing)
    }

    /// A name with these storages, each of which has other names, too.
    fn sharer(&self, root: u32, stored: &[&SizedStorage], tallies: &[RetainedSize]) -> Holder {
        let name = &self.web.names[root as usize - 1];
        let largest = stored
            .iter()
            .max_by_key(|it| (it.n_bytes, Reverse(it.number)));
        let largest = largest.map_or(0, |it| it.number);
        let tops: BTreeSet<u32> = stored
            .iter()
            .map(|it| self.tops[it.number as usize])
            .collect();
        let mut tally = RetainedSize::default();
        for top in tops {
            tally.add(&tallies[top as usize]);
        }
        let target = self.target(root);
        let what = match target {
            Some(idx) => words::object(self.web.graph.node(idx), &tally),
            None => words::container(None, &tally),
        };
        let vertex = self.vertex(largest);
        let others = self.others(root, self.tops[largest as usize]);
        Holder {
            path: path::text(&self.web, &self.reach, SESSION, vertex),
            what: format!("{what}, shared with {others}"),
            traits: Traits {
                is_shared: true,
                filled_by: filler(name),
                ..self.traits(target, &tally, vertex, None)
            },
            ..Holder::new(
                name.kind,
                name.name,
                stored.iter().map(|it| Bytes::new(it.n_bytes)).sum(),
            )
        }
    }

    /// The other names of a top.
    fn others(&self, root: u32, top: u32) -> String {
        let sharers = self.sharers.iter().find(|(number, _)| *number == top);
        let Some((_, sharers)) = sharers else {
            return "others".to_owned();
        };
        let others = sharers.roots.iter().filter(|other| **other != root);
        let others = others.filter_map(|other| Some(self.web.name_of(*other)?.name));
        let others = others.chain(sharers.and_others.then_some("others"));
        others.collect::<Vec<_>>().join(", ")
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
        let object = path.last().and_then(|(from, ..)| self.web.node_of(*from));
        object.map_or_else(String::new, |idx| {
            words::object(self.web.graph.node(idx), &RetainedSize::default())
        })
    }

    /// What several things are: one as itself, more by what they hold.
    fn numbers_words(&self, numbers: &[u32], sum: &RetainedSize) -> String {
        let one = match numbers {
            [number] => self.web.node_of(self.vertex(*number)),
            _ => None,
        };
        let node = one.map(|idx| self.web.graph.node(idx));
        match node.filter(|node| node.storage.is_none()) {
            Some(node) => words::object(node, sum),
            None => words::container(None, sum),
        }
    }
}

pub(super) fn keeper_of_step(step: &Step) -> Option<Keeper> {
    match step {
        Step::Closure(_) | Step::Default(_) | Step::Cell => Some(Keeper::Function),
        Step::Frame(_) => Some(Keeper::Traceback),
        Step::Attribute(name) | Step::Variable(name) if &**name == "__traceback__" => {
            Some(Keeper::Traceback)
        }
        Step::Attribute(name) | Step::Variable(name) | Step::Key(name) | Step::Local(name) => {
            is_of_hooks(name).then_some(Keeper::Hooks)
        }
        _ => None,
    }
}

/// Frameworks call the dicts of their hooks such: `_forward_hooks`.
pub(super) fn is_of_hooks(name: &str) -> bool {
    name.contains("_hooks")
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
