//! What a search found, for comparison with a later one.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::heap_analysis::HeapAnalysis;
use super::holding::Holding;
use super::node::Storage;
use gpumem_model::holders::RootKind;
use gpumem_model::units::{ByteDelta, Bytes};

/// Share of a device's bytes from which hidden growth is worth a second search.
const WORTH_LOOKING: f64 = 0.01;

/// The largest storages are kept one by one, up to this many; the others are summed up by name, so that
/// what is kept between two searches is bounded.
const MAX_STORAGES: usize = 1 << 14;

/// Names kept one by one: those with the most bytes.
const MAX_NAMES: usize = 1 << 12;

/// What stands for the names beyond [`MAX_NAMES`].
const OTHER_NAMES: &str = "…";

/// Which storages a search found, and under which name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// What was there on each device.
    pub devices: Vec<Shelf>,
    /// The names that [`InventoryEntry::name`] counts.
    pub names: Vec<(RootKind, Box<str>)>,
    /// The search covered more than names: libraries, cyclic garbage, what nothing leads to.
    pub is_whole: bool,
}

/// What was there on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shelf {
    /// As people write it: `cuda:0`.
    pub device: Box<str>,
    /// By their ids, in order.
    pub storages: Vec<(u64, InventoryEntry)>,
    /// Storages of at most this size are not among `storages`, but in `sums`.
    pub summed_up_to: Bytes,
    /// One for each name that has such storages, and for each of both kinds of them.
    pub sums: Vec<InventoryEntry>,
    /// What the allocators had handed out, if they reported it.
    pub handed_out: Option<Bytes>,
    /// Part of it: found nowhere.
    pub unseen: Bytes,
    /// What each variable holds that has much.
    pub holdings: Vec<Holding>,
    /// Likewise of variables that are gone: what should be dead by now, and lived on.
    pub promises: Vec<Holding>,
}

/// A storage, or the sum of small ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InventoryEntry {
    /// Its size.
    pub n_bytes: Bytes,
    /// The position of its name.
    pub name: u32,
    /// An allocator of the device handed it out.
    pub is_handed_out: bool,
}

impl HeapAnalysis<'_> {
    /// What is there now, for comparison with a later search.
    pub fn inventory(&self) -> Inventory {
        Inventory::new(self)
    }
}

impl Inventory {
    fn new(look: &HeapAnalysis<'_>) -> Self {
        let graph = look.web.graph;
        let shelf = |label: &str| Shelf {
            device: label.into(),
            handed_out: graph.ledger.get(label).map(|it| it.n_bytes),
            unseen: look.unseen(label).unwrap_or_default(),
            ..Shelf::default()
        };
        let mut devices: Vec<Shelf> = look.labels().map(shelf).collect();
        for (shelf, holdings) in devices.iter_mut().zip(look.holdings()) {
            shelf.holdings = holdings;
        }
        for stored in &look.ground.storages {
            let storage = look.storage(stored);
            let storage = storage.filter(|storage| storage.n_bytes > Bytes::ZERO);
            if let (Some(storage), Some(name)) = (storage, stored.root.checked_sub(1)) {
                let entry = InventoryEntry {
                    n_bytes: storage.n_bytes,
                    name,
                    is_handed_out: stored.is_handed_out(),
                };
                let shelf = &mut devices[usize::from(stored.device)];
                shelf.storages.push((storage.id, entry));
            }
        }
        let mut inventory = Self {
            devices,
            names: Vec::new(),
            is_whole: graph.is_whole,
        };
        let names = look.web.names.iter().map(|it| (it.kind, it.name));
        inventory.keep_names(&names.collect::<Vec<_>>());
        inventory.keep_largest();
        inventory
    }

    /// Names the inconsistency in what another process sent.
    pub fn check(&self) -> Result<(), String> {
        let mut entries = self.devices.iter().flat_map(Shelf::entries);
        let n_names = self.names.len();
        if let Some(entry) = entries.find(|entry| entry.name as usize >= n_names) {
            let name = entry.name;
            return Err(format!(
                "a storage of name {name}, of which there are {n_names}"
            ));
        }
        let is_in_order = |it: &Shelf| it.storages.is_sorted_by_key(|(id, _)| *id);
        if let Some(shelf) = self.devices.iter().find(|it| !is_in_order(it)) {
            return Err(format!(
                "storages of {} that are out of order",
                shelf.device
            ));
        }
        Ok(())
    }

    /// Numbers the names that have storages anew, the ones with the most bytes first, and lets one
    /// name stand for those beyond the first [`MAX_NAMES`].
    fn keep_names(&mut self, names: &[(RootKind, &str)]) {
        let mut sums = vec![Bytes::ZERO; names.len()];
        let entries = self.devices.iter().flat_map(Shelf::entries);
        for entry in entries {
            sums[entry.name as usize] += entry.n_bytes;
        }
        let mut order: Vec<usize> = (0..names.len())
            .filter(|name| sums[*name] > Bytes::ZERO)
            .collect();
        order.sort_by_key(|name| std::cmp::Reverse(sums[*name]));
        let is_cut = order.len() > MAX_NAMES;
        order.truncate(MAX_NAMES);
        let mut places = vec![MAX_NAMES as u32; names.len()];
        for (place, name) in order.iter().enumerate() {
            places[*name] = place as u32;
        }
        let named = |name: &usize| (names[*name].0, names[*name].1.into());
        self.names = order.iter().map(named).collect();
        if is_cut {
            self.names.push((RootKind::Variable, OTHER_NAMES.into()));
        }
        for (_, entry) in self.devices.iter_mut().flat_map(|it| &mut it.storages) {
            entry.name = places[entry.name as usize];
        }
    }

    /// Sums up the small storages if there are too many to list.
    fn keep_largest(&mut self) {
        let most = MAX_STORAGES / self.devices.len().max(1);
        for shelf in &mut self.devices {
            shelf.keep_largest(most.max(1));
            shelf.storages.sort_unstable_by_key(|(id, _)| *id);
        }
    }

    /// Most of a device's growth is under no name, so finding it takes a search of more than names. Before
    /// the first search nothing was there.
    pub fn hides_growth_since(&self, before: Option<&Self>) -> bool {
        self.devices.iter().any(|now| {
            let before = before.and_then(|it| it.shelf(&now.device).map(|shelf| (it, shelf)));
            let handed_out = |it: &Shelf| it.handed_out.unwrap_or_default();
            let (then, nameless) = before.map_or_else(Default::default, |(it, shelf)| {
                (handed_out(shelf), it.nameless(shelf))
            });
            let grown = handed_out(now).saturating_sub(then);
            let hidden = self.nameless(now).saturating_sub(nameless);
            let is_worth_looking = hidden.as_f64() >= WORTH_LOOKING * handed_out(now).as_f64();
            is_worth_looking && hidden > grown.saturating_sub(hidden)
        })
    }

    /// Likewise of a device that no allocator accounts for, and that is known to have `grown`.
    pub fn hides_on(&self, device: &str, grown: Bytes, before: &Self) -> bool {
        let [now, then] = [self, before].map(|it| it.shelf(device).map(|shelf| it.named(shelf)));
        let named = now
            .unwrap_or_default()
            .saturating_sub(then.unwrap_or_default());
        named < grown.saturating_sub(named)
    }

    /// What was handed out and no name leads to, whether it was looked for or not.
    pub(super) fn nameless(&self, shelf: &Shelf) -> Bytes {
        let named = self.named(shelf);
        shelf
            .handed_out
            .map_or(Bytes::ZERO, |all| all.saturating_sub(named))
    }

    /// What was handed out and names lead to.
    fn named(&self, shelf: &Shelf) -> Bytes {
        let is_named = |entry: &&InventoryEntry| {
            let (kind, _) = self.names[entry.name as usize];
            entry.is_handed_out && (kind.is_named() || kind.is_ipython())
        };
        let named = shelf.entries().filter(is_named);
        named.map(|entry| entry.n_bytes).sum()
    }

    pub(super) fn shelf(&self, device: &str) -> Option<&Shelf> {
        self.devices.iter().find(|shelf| &*shelf.device == device)
    }

    /// What changed between an earlier search and this one.
    pub fn since<'i>(&'i self, before: &'i Self) -> Since<'i> {
        Since { now: self, before }
    }

    /// What each name has of these.
    fn by_name<'e>(
        &self,
        entries: impl Iterator<Item = &'e InventoryEntry>,
    ) -> HashMap<InventoryName<'_>, Bytes> {
        let mut sums = vec![Bytes::ZERO; self.names.len()];
        for entry in entries {
            sums[entry.name as usize] += entry.n_bytes;
        }
        let mut by_name = HashMap::new();
        for ((kind, name), n_bytes) in self.names.iter().zip(sums) {
            *by_name.entry((*kind, &**name)).or_default() += n_bytes;
        }
        by_name
    }
}

impl Shelf {
    fn entries(&self) -> impl Iterator<Item = &InventoryEntry> {
        self.storages
            .iter()
            .map(|(_, entry)| entry)
            .chain(&self.sums)
    }

    /// Listed storages that an earlier search did not find.
    fn entries_beyond<'s>(&'s self, earlier: &'s Self) -> impl Iterator<Item = &'s InventoryEntry> {
        let small = self.small_beside(earlier);
        let mut known = earlier.storages.iter().map(|(id, _)| id).peekable();
        let fresh = self.storages.iter().filter(move |(id, entry)| {
            while known.next_if(|it| *it < id).is_some() {}
            known.peek() != Some(&id) && entry.n_bytes > small
        });
        fresh.map(|(_, entry)| entry)
    }

    /// Up to this size one of two looks only has sums.
    fn small_beside(&self, other: &Self) -> Bytes {
        self.summed_up_to.max(other.summed_up_to)
    }

    /// What is at most so large, storages and sums.
    fn entries_up_to(&self, small: Bytes) -> impl Iterator<Item = &InventoryEntry> {
        let storages = self.storages.iter().map(|(_, entry)| entry);
        let storages = storages.filter(move |entry| entry.n_bytes <= small);
        storages.chain(&self.sums)
    }

    /// Keeps the `most` largest, and of equal ones all or none.
    fn keep_largest(&mut self, most: usize) {
        if self.storages.len() <= most {
            return;
        }
        let mut sizes: Vec<Bytes> = self.storages.iter().map(|(_, it)| it.n_bytes).collect();
        let (_, largest_left_out, _) =
            sizes.select_nth_unstable_by_key(most, |size| std::cmp::Reverse(*size));
        self.summed_up_to = *largest_left_out;
        let small = self
            .storages
            .extract_if(.., |(_, entry)| entry.n_bytes <= *largest_left_out);
        let mut sums: BTreeMap<(u32, bool), Bytes> = BTreeMap::new();
        for (_, entry) in small {
            *sums.entry((entry.name, entry.is_handed_out)).or_default() += entry.n_bytes;
        }
        let sum = |((name, is_handed_out), n_bytes)| InventoryEntry {
            n_bytes,
            name,
            is_handed_out,
        };
        self.sums = sums.into_iter().map(sum).collect();
        self.storages.shrink_to_fit();
    }
}

/// Two searches, the later compared with the earlier. [`Inventory::since`] makes it.
#[derive(Debug, Clone, Copy)]
pub struct Since<'i> {
    now: &'i Inventory,
    before: &'i Inventory,
}

impl<'i> Since<'i> {
    /// What changed on one device.
    pub(super) fn on(self, device: &'i str) -> Grown<'i> {
        let nothing = Shelf::default();
        let now = self.now.shelf(device).unwrap_or(&nothing);
        let then = self.before.shelf(device).unwrap_or(&nothing);
        let mut fresh = self.now.by_name(now.entries_beyond(then));
        let small = now.small_beside(then);
        if small > Bytes::ZERO {
            // Nobody knows which of these are new: what a name has more of them is.
            let before = self.before.by_name(then.entries_up_to(small));
            for (name, n_bytes) in self.now.by_name(now.entries_up_to(small)) {
                let known = before.get(&name).copied().unwrap_or_default();
                *fresh.entry(name).or_default() += n_bytes.saturating_sub(known);
            }
        }
        let is_known = then.handed_out.is_some() && now.handed_out.is_some();
        Grown {
            before: self.before,
            device,
            now: self.now.by_name(now.entries()),
            then: self.before.by_name(then.entries()),
            n_fresh: fresh.values().copied().sum(),
            fresh,
            // Where there was nothing at all, all is new.
            is_comparable: self.now.is_whole == self.before.is_whole
                || self.before.devices.is_empty(),
            unseen: is_known.then(|| now.unseen.since(then.unseen)),
        }
    }
}

type InventoryName<'i> = (RootKind, &'i str);

/// A name as it is compared: [`RootKind::series_name`].
pub(super) type SeriesName<'i> = (RootKind, Cow<'i, str>);

/// What each name has more, or less.
pub(super) struct Grown<'i> {
    before: &'i Inventory,
    device: &'i str,
    now: HashMap<InventoryName<'i>, Bytes>,
    then: HashMap<InventoryName<'i>, Bytes>,
    /// The new storages of each name.
    fresh: HashMap<InventoryName<'i>, Bytes>,
    n_fresh: Bytes,
    /// Both searches went equally far; otherwise what is beyond names is new to one of them.
    is_comparable: bool,
    unseen: Option<ByteDelta>,
}

impl Grown<'_> {
    /// A name that only took over what another one had did not grow: none can have grown by more
    /// than is new on the device. `None` where the look before did not go that far.
    pub(super) fn growth(&self, kind: RootKind, name: &str) -> Option<ByteDelta> {
        let held = |at: &HashMap<_, Bytes>| at.get(&(kind, name)).copied().unwrap_or_default();
        let grown = held(&self.now).since(held(&self.then));
        self.knows(kind)
            .then(|| grown.min(self.n_fresh.since(Bytes::ZERO)))
    }

    /// The earlier search did not find that storage under that name, and listed those of its size.
    pub(super) fn is_new(&self, storage: &Storage, kind: RootKind, name: &str) -> bool {
        let before = self.before;
        before.shelf(self.device).is_none_or(|shelf| {
            let storages = &shelf.storages;
            let known = storages.binary_search_by_key(&storage.id, |(id, _)| *id);
            let name_then = known.map(|at| &before.names[storages[at].1.name as usize]);
            let is_other = |then: &(RootKind, Box<str>)| (then.0, &*then.1) != (kind, name);
            storage.n_bytes > shelf.summed_up_to && name_then.map_or(true, is_other)
        })
    }

    /// Likewise, of what is new.
    pub(super) fn fresh_of(&self, kind: RootKind, name: &str) -> Option<Bytes> {
        let fresh = self.fresh.get(&(kind, name)).copied();
        self.knows(kind).then(|| fresh.unwrap_or_default())
    }

    /// What each name had at the earlier search, under the name by which it is compared.
    pub(super) fn names_before(&self) -> BTreeMap<SeriesName<'_>, Bytes> {
        let mut names = BTreeMap::new();
        for ((kind, name), n_bytes) in &self.then {
            *names.entry((*kind, kind.series_name(name))).or_default() += *n_bytes;
        }
        names
    }

    pub(super) fn knows(&self, kind: RootKind) -> bool {
        self.is_comparable || kind.is_named() || kind.is_ipython()
    }

    /// Of what was found nowhere.
    pub(super) fn of_unseen(&self) -> Option<ByteDelta> {
        self.unseen.filter(|_| self.is_comparable)
    }
}
