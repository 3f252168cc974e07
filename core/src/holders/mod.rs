//! What keeps memory alive: names, paths, retained bytes.
//!
//! Whoever walks the live objects builds an [`ObjectGraph`]. [`Holders`] is what
//! it says: how much each name alone keeps, what several of them share, the
//! shortest path to the largest object, and what the bytes of a device are for.
//! It is small whatever the graph's size, and goes into a recording as it is.

mod branches;
mod csr_graph;
mod dominators;
mod fix;
mod found;
mod graph;
mod heap_analysis;
mod inventory;
mod ledger;
mod part;
mod path;
mod preferred;
mod reach;
mod retained_size;
mod root;
mod shared;
mod step;
#[cfg(test)]
mod tests;
mod words;

pub use fix::{Fix, FixReason, fix, fix_of_rerun};
pub use found::Found;
pub use graph::{Category, GraphBuilder, Node, NodeIdx, ObjectGraph, Storage};
pub use heap_analysis::HeapAnalysis;
pub(crate) use inventory::{Entry, Shelf};
pub use inventory::{Inventory, Since};
pub use ledger::Allocated;
pub use part::Part;
pub use preferred::HeldBy;
pub use root::{Root, RootKind};
pub use step::Step;

use crate::sort;
use crate::units::{ByteDelta, Bytes};

/// How much of a graph is listed; the rest is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Names of a device.
    pub n_roots: usize,
    /// Groups of names that share something.
    pub n_shared: usize,
    /// Branches of a name, and of each branch.
    pub n_branches: usize,
    /// Branches of branches.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            n_roots: 24,
            n_shared: 8,
            n_branches: 6,
            depth: 3,
        }
    }
}

/// Who holds what, device by device.
///
/// ```
/// use gpumem_core::holders::{GraphBuilder, Holders, Limits, Node, Root, Step};
/// use gpumem_core::units::Bytes;
///
/// let mut builder = GraphBuilder::default();
/// let losses = builder.node(Node::object("list"));
/// let loss = builder.node(Node::tensor("Tensor", "float32", &[1024, 1024]));
/// let storage = builder.node(Node::storage(1, "cuda:0", Bytes::mib(4)));
/// builder.edge(losses, loss, Step::Index(0));
/// builder.edge(loss, storage, Step::Within);
/// builder.root(Root::variable("losses", losses));
///
/// let holders = Holders::of(&builder.build(), &Limits::default());
/// let losses = &holders.devices[0].roots[0];
/// assert_eq!((&*losses.name, losses.retained), ("losses", Bytes::mib(4)));
/// assert_eq!((&*losses.path, &*losses.what), ("losses[0]", "list of 1 tensor"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// The fullest device first. One without a storage is not there.
    pub devices: Vec<DeviceHolders>,
}

impl Holders {
    /// What a graph says, where every step has its name.
    pub fn of(graph: &ObjectGraph, limits: &Limits) -> Self {
        HeapAnalysis::at(graph).holders(limits, None)
    }

    /// What is held on the device of that label.
    pub fn on(&self, device: &str) -> Option<&DeviceHolders> {
        self.devices.iter().find(|it| it.device == device)
    }
}

/// Who holds what on one device.
///
/// `roots`, `more`, `shared` and `more_shared` together are `n_bytes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceHolders {
    /// As people write it: `cuda:0`, `sim:0`, `host`.
    pub device: String,
    /// Every storage that was seen, once, and what else is allocated.
    pub n_bytes: Bytes,
    /// How many those are.
    pub n_storages: u64,
    /// Names by what each alone keeps, the most first.
    pub roots: Vec<Holder>,
    /// Further names.
    pub more: Rest,
    /// Names that have more than at the look before, and keep none of what they hold alone: it is
    /// among what is `shared`.
    pub sharing: Vec<Holder>,
    /// What several names keep together, the most first.
    pub shared: Vec<SharedMemory>,
    /// Further ones of those.
    pub more_shared: Rest,
    /// What places of `IPython` keep of what no name of the user's reaches, the most first.
    pub kept: Vec<Kept>,
    /// What the allocated bytes are for, each byte once, in the order of [`Part::ALL`]; what is
    /// only reserved, in the pool of a captured graph, is for nothing.
    pub parts: Vec<(Part, Bytes)>,
    /// The walk stopped at a bound: there is more than this.
    pub is_cut: bool,
}

/// So many names that grew are kept of a look that a later one followed.
const N_GROWN: usize = 8;

/// So far below a name, and so many at each level, is kept of the look before the latest.
const OUTLINE_DEPTH: usize = 2;
const N_OUTLINED: usize = 6;

impl DeviceHolders {
    /// Drops what is far below the names, and what is small beside the rest.
    pub(crate) fn keep_outline(&mut self) {
        for holder in &mut self.roots {
            keep_largest(&mut holder.branches, &mut holder.more, OUTLINE_DEPTH);
        }
    }

    /// Drops what the names hold: what is left tells how much each of them kept.
    pub(crate) fn keep_names(&mut self) {
        for holder in &mut self.roots {
            holder.branches.clear();
            holder.more = Rest::default();
        }
    }

    /// Drops all but the names that grew most, without their branches.
    pub(crate) fn keep_what_grew(&mut self) {
        // Where none was before it, all is new.
        let has_grown = |holder: &Holder| {
            let is_fresh = holder.fresh.is_some_and(|fresh| fresh > Bytes::ZERO);
            holder.grown.is_none_or(|grown| grown > ByteDelta::ZERO) || is_fresh
        };
        let (mut grown, other): (Vec<_>, Vec<_>) = self.roots.drain(..).partition(has_grown);
        sort::sort_by_key(&mut grown, |holder| {
            std::cmp::Reverse((holder.grown, holder.retained))
        });
        let dropped = grown.split_off(grown.len().min(N_GROWN));
        for holder in other.iter().chain(&dropped) {
            self.more.add(1, holder.retained.get());
        }
        self.roots = grown;
        self.sharing.truncate(N_GROWN);
        self.keep_names();
        for shared in self.shared.drain(..) {
            self.more_shared.add(1, shared.n_bytes.get());
        }
    }
}

fn keep_largest(branches: &mut Vec<HolderBranch>, more: &mut Rest, depth: usize) {
    if depth == 0 {
        branches.clear();
        *more = Rest::default();
        return;
    }
    for dropped in branches.drain(N_OUTLINED.min(branches.len())..) {
        more.add(dropped.n, dropped.n_bytes.get());
    }
    for branch in branches {
        keep_largest(&mut branch.branches, &mut branch.more, depth - 1);
    }
}

/// What nothing but places of `IPython` and Python keeps: each byte once, at the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Which kind of place.
    pub place: RootKind,
    /// All that it keeps.
    pub n_bytes: Bytes,
    /// The name that keeps the largest object: `Out[3]`, `last exception`.
    pub name: String,
    /// The Python expression of that object.
    pub path: String,
    /// What that is, in words: `float32[1024, 1024]`.
    pub what: String,
}

/// What is not listed one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rest {
    /// How many.
    pub n: u64,
    /// Their bytes.
    pub n_bytes: Bytes,
}

impl Rest {
    fn add(&mut self, n: u64, n_bytes: u64) {
        self.n += n;
        self.n_bytes += Bytes::new(n_bytes);
    }
}

/// A name, and what would be free without it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// As the user knows it: `losses`, `Out[3]`.
    pub name: String,
    /// What kind of name it is.
    pub kind: RootKind,
    /// What it alone keeps: free when it lets go, and only then.
    pub retained: Bytes,
    /// What it holds more than at the look before this one, where there was one.
    /// Bytes that only changed hands do not count.
    pub grown: Option<ByteDelta>,
    /// What it holds that was not there at the look before: all of it where a loop collects anew
    /// what an earlier run had collected, and nothing was `grown`.
    pub fresh: Option<Bytes>,
    /// The Python expression of the largest object: `losses[3].grad_fn._saved_self`.
    pub path: String,
    /// What it is, in words: `list of 96 tensors, each with its graph`.
    pub what: String,
    /// The facts behind the words.
    pub traits: Traits,
    /// What it holds, the most first.
    pub branches: Vec<HolderBranch>,
    /// Further branches.
    pub more: Rest,
}

impl Holder {
    /// A name that holds so much, and nothing more is known of it.
    pub fn new(kind: RootKind, name: &str, retained: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            retained,
            grown: None,
            fresh: None,
            path: String::new(),
            what: String::new(),
            traits: Traits::default(),
            branches: Vec::new(),
            more: Rest::default(),
        }
    }
}

/// What decides how a holder is helped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traits {
    /// The type of the object that has the name: `list`.
    pub type_name: String,
    /// How many tensors it alone keeps.
    pub n_tensors: u64,
    /// Each of them is a single number.
    pub scalars: bool,
    /// Part of what it keeps that only graphs of the autograd hold.
    pub graph: Bytes,
    /// The largest object is held by a function: its closure, its defaults, its cache.
    pub by_function: bool,
    /// What most of its bytes are for, where that is known.
    pub part: Option<Part>,
}

/// Part of what a name keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderBranch {
    /// How it is reached from what holds it: `[3]`, `.grad_fn`; of several `[0] … [95]`.
    pub step: String,
    /// What it is, in words.
    pub what: String,
    /// How many alike it stands for.
    pub n: u64,
    /// What it alone keeps, together.
    pub n_bytes: Bytes,
    /// What it holds in turn.
    pub branches: Vec<HolderBranch>,
    /// Further branches.
    pub more: Rest,
}

/// What several names keep: free only when all of them let go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedMemory {
    /// The first few of the names, as they are preferred in a path.
    pub names: Vec<String>,
    /// There are further ones.
    pub and_others: bool,
    /// What they keep together.
    pub n_bytes: Bytes,
    /// The Python expression of the largest object.
    pub path: String,
    /// What it is, in words.
    pub what: String,
    /// What most of its bytes are for, where that is known.
    pub part: Option<Part>,
}
