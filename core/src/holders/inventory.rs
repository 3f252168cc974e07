//! What was there at a look, to be compared with at a later one.

use std::collections::HashMap;

use super::RootKind;
use super::look::Look;
use crate::units::{ByteDelta, Bytes};

/// What hides is worth a second look from this share of what a device holds on.
const WORTH_LOOKING: f64 = 0.01;

/// Which storages were there at a look, and under which name: what a later one is held against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    devices: Vec<Shelf>,
    names: Vec<(RootKind, Box<str>)>,
    /// More than names was looked at: libraries, cyclic garbage, what nothing leads to.
    is_whole: bool,
}

/// What was there on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Shelf {
    device: Box<str>,
    /// By their ids, in order.
    storages: Vec<(u64, Entry)>,
    /// What the allocators had handed out, where they said it.
    handed_out: Option<Bytes>,
    /// Part of that which was found nowhere.
    unseen: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    n_bytes: Bytes,
    /// The position of its name.
    name: u32,
    is_handed_out: bool,
}

impl Inventory {
    pub(super) fn of(look: &Look<'_>) -> Self {
        let graph = look.web.graph;
        let names = look.web.names.iter();
        let shelf = |label: &str| Shelf {
            device: label.into(),
            handed_out: graph.ledger.get(label).map(|it| it.n_bytes),
            unseen: look.unseen(label).unwrap_or_default(),
            ..Shelf::default()
        };
        let mut devices: Vec<Shelf> = look.labels().map(shelf).collect();
        for stored in &look.ground.storages {
            let node = look.web.node_of(look.vertex(stored.number));
            let storage = node.and_then(|node| graph.node(node).storage.as_ref());
            if let (Some(storage), Some(name)) = (storage, stored.root.checked_sub(1)) {
                let entry = Entry {
                    n_bytes: storage.n_bytes,
                    name,
                    is_handed_out: stored.is_handed_out(),
                };
                let shelf = &mut devices[usize::from(stored.device)];
                shelf.storages.push((storage.id, entry));
            }
        }
        for shelf in &mut devices {
            shelf.storages.sort_unstable_by_key(|(id, _)| *id);
        }
        Self {
            devices,
            names: names.map(|it| (it.kind, it.name.into())).collect(),
            is_whole: graph.is_whole,
        }
    }

    /// Most of what a device has more than before is under no name: to say where it is, more than
    /// names must be looked at. The first time of all nothing was there before.
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

    /// What was handed out and no name leads to, whether it was looked for or not.
    fn nameless(&self, shelf: &Shelf) -> Bytes {
        let is_named = |entry: &&Entry| {
            let (kind, _) = self.names[entry.name as usize];
            entry.is_handed_out && (kind.is_named() || kind.is_ipython())
        };
        let named = shelf.entries().filter(is_named);
        let named: Bytes = named.map(|entry| entry.n_bytes).sum();
        shelf
            .handed_out
            .map_or(Bytes::ZERO, |all| all.saturating_sub(named))
    }

    fn shelf(&self, device: &str) -> Option<&Shelf> {
        self.devices.iter().find(|shelf| &*shelf.device == device)
    }

    /// What changed from a look before to this one.
    pub fn since<'i>(&'i self, before: &'i Self) -> Since<'i> {
        Since { now: self, before }
    }

    /// What each name has of these.
    fn by_name<'e>(&self, entries: impl Iterator<Item = &'e Entry>) -> HashMap<Name<'_>, Bytes> {
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
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.storages.iter().map(|(_, entry)| entry)
    }

    /// Those that an earlier look did not find.
    fn entries_beyond<'s>(&'s self, earlier: &'s Self) -> impl Iterator<Item = &'s Entry> {
        let mut known = earlier.storages.iter().map(|(id, _)| id).peekable();
        let fresh = self.storages.iter().filter(move |(id, _)| {
            while known.next_if(|it| *it < id).is_some() {}
            known.peek() != Some(&id)
        });
        fresh.map(|(_, entry)| entry)
    }
}

/// Two looks, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Since<'i> {
    now: &'i Inventory,
    before: &'i Inventory,
}

impl<'i> Since<'i> {
    /// What changed on one device.
    pub(super) fn on(self, device: &str) -> Grown<'i> {
        let nothing = Shelf::default();
        let now = self.now.shelf(device).unwrap_or(&nothing);
        let then = self.before.shelf(device).unwrap_or(&nothing);
        let fresh = self.now.by_name(now.entries_beyond(then));
        let is_known = then.handed_out.is_some() && now.handed_out.is_some();
        Grown {
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

type Name<'i> = (RootKind, &'i str);

/// What each name has more, or less.
pub(super) struct Grown<'i> {
    now: HashMap<Name<'i>, Bytes>,
    then: HashMap<Name<'i>, Bytes>,
    /// Of what each name has, what was not there before.
    fresh: HashMap<Name<'i>, Bytes>,
    n_fresh: Bytes,
    /// Both looks went equally far: else what is beyond names is new to one of them.
    is_comparable: bool,
    unseen: Option<ByteDelta>,
}

impl Grown<'_> {
    /// A name that only took over what another one had did not grow: none can have grown by more
    /// than is new on the device. `None` where the look before did not go that far.
    pub(super) fn of(&self, kind: RootKind, name: &str) -> Option<ByteDelta> {
        let held = |at: &HashMap<_, Bytes>| at.get(&(kind, name)).copied().unwrap_or_default();
        let grown = held(&self.now).since(held(&self.then));
        self.knows(kind)
            .then(|| grown.min(self.n_fresh.since(Bytes::ZERO)))
    }

    /// Likewise, of what is new.
    pub(super) fn fresh_of(&self, kind: RootKind, name: &str) -> Option<Bytes> {
        let fresh = self.fresh.get(&(kind, name)).copied();
        self.knows(kind).then(|| fresh.unwrap_or_default())
    }

    fn knows(&self, kind: RootKind) -> bool {
        self.is_comparable || kind.is_named() || kind.is_ipython()
    }

    /// Of what was found nowhere.
    pub(super) fn of_unseen(&self) -> Option<ByteDelta> {
        self.unseen.filter(|_| self.is_comparable)
    }
}
