//! Who holds a device's memory: the summary of one look at the live objects, as a recording keeps it.
//!
//! `heap` makes it.

mod allocated;
mod outlived;
mod part;
mod root_kind;
mod twin;

pub use allocated::Allocated;
pub use outlived::{Outlived, WayOut};
pub use part::StorageUse;
pub use root_kind::RootKind;
pub use twin::Twin;

use std::borrow::Cow;

use serde::Serialize;

use crate::named;
use crate::units::{ByteDelta, Bytes};

/// Who holds what on one device.
///
/// `roots`, `more`, `shared` and `more_shared` add up to `n_bytes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceHolders {
    /// As people write it: `cuda:0`, `sim:0`, `host`.
    pub device: String,
    /// Every storage that was seen, once, and what else is allocated.
    pub n_bytes: Bytes,
    /// How many storages those are.
    pub n_storages: u64,
    /// Names by what each one retains, the largest first.
    pub roots: Vec<Holder>,
    /// Further names.
    pub more: Remainder,
    /// Names that hold more than at the last search but retain nothing themselves, because others hold it
    /// too: it is part of `shared`.
    pub sharing: Vec<Holder>,
    /// The names that have other bytes here than at the last search, or all if there was none.
    pub changed: Vec<NameLevel>,
    /// Those attributes of objects in `changed` that have something new, each with the path of that:
    /// `trainer.history`.
    pub growing_branches: Vec<Holder>,
    /// What several names retain together, the largest first.
    pub shared: Vec<SharedMemory>,
    /// Further shared memory.
    pub more_shared: Remainder,
    /// What `IPython` alone keeps, reachable from no name of the user's; the largest first.
    pub kept: Vec<IpythonRetention>,
    /// Variables that are gone while what they held lives on.
    pub outlived: Vec<Outlived>,
    /// Variables that are gone, or have a new object, with what that gave back: all that they held.
    pub given_back: Vec<NameLevel>,
    /// Variables that hold the same shapes and sizes as another one.
    pub twins: Vec<Twin>,
    /// What the allocated bytes are for, each byte once, in the order of [`StorageUse::ALL`]. Memory that is only
    /// reserved, in the pool of a captured graph, is not included.
    pub parts: Vec<(StorageUse, Bytes)>,
    /// The walk stopped at a bound: there is more than this.
    pub is_cut: bool,
}

/// How many names that grew are kept of an older search.
const N_GROWN: usize = 8;

/// How deep, and how many branches per level, are kept of the search before the latest.
const OUTLINE_DEPTH: usize = 2;
const N_OUTLINED: usize = 6;

impl DeviceHolders {
    /// Drops what is far below the names, and what is small beside the rest: what a
    /// [`Recording`](crate::recording::Recording) keeps of the look before the latest.
    pub fn keep_outline(&mut self) {
        self.twins.clear();
        for holder in self.roots.iter_mut().chain(&mut self.growing_branches) {
            keep_largest(&mut holder.branches, &mut holder.more, OUTLINE_DEPTH);
        }
    }

    /// Drops what the names hold; what is left tells how much each of them retained.
    pub(crate) fn keep_names(&mut self) {
        for holder in self.roots.iter_mut().chain(&mut self.growing_branches) {
            holder.branches.clear();
            holder.more = Remainder::default();
        }
    }

    /// Drops all but the names that grew most, without their branches: what a
    /// [`Recording`](crate::recording::Recording) keeps of earlier looks.
    pub fn keep_what_grew(&mut self) {
        self.twins.clear();
        // Where none was before it, all is new.
        let has_grown = |holder: &Holder| {
            let is_fresh = holder.fresh.is_some_and(|fresh| fresh > Bytes::ZERO);
            holder.grown.is_none_or(|grown| grown > ByteDelta::ZERO) || is_fresh
        };
        let (mut grown, other): (Vec<_>, Vec<_>) = self.roots.drain(..).partition(has_grown);
        grown.sort_by_key(|holder| std::cmp::Reverse((holder.grown, holder.retained)));
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

fn keep_largest(branches: &mut Vec<HolderBranch>, more: &mut Remainder, depth: usize) {
    if depth == 0 {
        branches.clear();
        *more = Remainder::default();
        return;
    }
    for dropped in branches.drain(N_OUTLINED.min(branches.len())..) {
        more.add(dropped.n, dropped.n_bytes.get());
    }
    for branch in branches {
        keep_largest(&mut branch.branches, &mut branch.more, depth - 1);
    }
}

/// What only `IPython` and Python itself keep: each byte once, at the first place that keeps it.
/// An entry of [`DeviceHolders::kept`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpythonRetention {
    /// The kind of place.
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

/// What is not listed one by one: how many, and their bytes. [`DeviceHolders::more`] is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remainder {
    /// How many.
    pub n: u64,
    /// Their bytes.
    pub n_bytes: Bytes,
}

impl Remainder {
    /// How many more there are, and their bytes together.
    pub fn add(&mut self, n: u64, n_bytes: u64) {
        self.n += n;
        self.n_bytes += Bytes::new(n_bytes);
    }
}

/// A name, and what would be free without it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// As the user knows it: `losses`, `Out[3]`.
    pub name: String,
    /// What kind of name it is.
    pub kind: RootKind,
    /// Retained size: freed when this name lets go, and only then.
    #[serde(rename = "n_bytes")]
    pub retained: Bytes,
    /// How much more it holds than at the last search; `None` without one. Bytes that only moved from
    /// another name do not count.
    #[serde(rename = "grown_bytes")]
    pub grown: Option<ByteDelta>,
    /// What it holds that was not there at the last search. A loop that collects its results anew in every
    /// run has `fresh` bytes and no growth.
    #[serde(skip)]
    pub fresh: Option<Bytes>,
    /// Where that came from. Only `%gpumem why` looks it up in the recording and the framework.
    #[serde(skip)]
    pub origin: HolderOrigin,
    /// The Python expression of the largest object: `losses[3].grad_fn._saved_self`.
    pub path: String,
    /// What it is, in words: `list of 96 tensors, each with its graph`.
    pub what: String,
    /// The facts behind the words.
    #[serde(skip)]
    pub traits: Traits,
    /// What it holds, the most first.
    #[serde(rename = "children")]
    pub branches: Vec<HolderBranch>,
    /// Further branches.
    #[serde(skip)]
    pub more: Remainder,
}

/// A branch that holds this share of a name is where its entries are.
const HOLDS_MOST: f64 = 0.8;

impl Holder {
    /// A name that retains this much; nothing else is known of it.
    pub fn new(kind: RootKind, name: &str, retained: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            retained,
            ..Self::default()
        }
    }

    /// The variable, also of an attribute that grew: `trainer` of `trainer.history`.
    pub fn variable(&self) -> &str {
        match self.kind {
            RootKind::Variable => variable_of(&self.name),
            _ => &self.name,
        }
    }

    /// The bound of what collects: its own, or of the container in it.
    pub fn bound(&self) -> Option<Bound> {
        let within = || self.traits.grows_in.as_ref()?.bound;
        self.traits.bound.or_else(within)
    }

    /// What it has that is new since the look before; all, if there was none.
    pub fn gained(&self, is_first: bool) -> Option<ByteDelta> {
        let fresh = self.fresh.or(is_first.then_some(self.retained));
        fresh.map_or(self.grown, |fresh| Some(fresh.since(Bytes::ZERO)))
    }

    /// The entries of the container that has most of it, and what they retain; its tensors, if none has.
    pub fn entries(&self) -> (u64, f64) {
        let mut branches = &self.branches;
        while let Some(first) = branches.first() {
            if first.n_bytes.as_f64() < HOLDS_MOST * self.retained.as_f64() {
                break;
            }
            if first.n > 1 {
                return (first.n, first.n_bytes.as_f64());
            }
            branches = &first.branches;
        }
        (self.traits.n_tensors, self.retained.as_f64())
    }

    /// It is a variable of a function that runs in the cell's own thread: `outs in encode()`.
    pub fn is_local(&self) -> bool {
        self.kind == RootKind::ThreadFrame && self.name.ends_with("()")
    }

    /// A module's global as the text of the module writes it: `losses` of `train.losses`.
    pub fn within_module(&self) -> Cow<'_, Self> {
        let is_global = self.kind == RootKind::ModuleGlobal;
        let names = self.name.rsplit_once('.').filter(|_| is_global);
        let Some((module, name)) = names else {
            return Cow::Borrowed(self);
        };
        let path = self.path.strip_prefix(module);
        let path = path.and_then(|it| it.strip_prefix('.'));
        Cow::Owned(Self {
            name: name.to_owned(),
            path: path.unwrap_or(&self.path).to_owned(),
            ..self.clone()
        })
    }
}

/// Where what a holder has came from: [`Holder::origin`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderOrigin {
    /// Jupyter's number of the run since which it holds most of that, by the looks of the recording.
    pub since: Option<u32>,
    /// The line that allocated the largest storage, where the framework tells: `In [4], line 2`, `train.py:12`.
    pub line: Option<String>,
}

impl HolderOrigin {
    /// In words: `since In [4]`.
    pub fn describe(&self) -> Option<String> {
        let line = self
            .line
            .as_ref()
            .map(|line| format!("allocated in {line}"));
        line.or_else(|| Some(format!("since In [{}]", self.since?)))
    }
}

/// The part of a branch's name that is a variable's: `trainer` of `trainer.history`.
pub fn variable_of(name: &str) -> &str {
    name.split(['.', '[']).next().unwrap_or_default()
}

/// Facts about a holder that decide which fix it gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traits {
    /// The type of the named object: `list`.
    pub type_name: String,
    /// How many tensors it retains.
    pub n_tensors: u64,
    /// Each of them is a single number.
    pub scalars: bool,
    /// What only the autograd graph holds of what it leads to first, alone or with others.
    pub graph: Bytes,
    /// What has the largest object, where that is no plain data.
    pub keeper: Option<Keeper>,
    /// It retains nothing alone: other names hold all of it, too.
    pub is_shared: bool,
    /// What most of its bytes are for, where that is known.
    pub part: Option<StorageUse>,
    /// What collects it has a bound, and is so full.
    pub bound: Option<Bound>,
    /// The type of the largest object, if that is a tensor or an array: `Tensor`, `ndarray`.
    pub tensor_type: String,
    /// What fills it beside the cells: `worker (thread)`, `collect (task)`. Empty if nothing does.
    pub filled_by: String,
    /// The objects of libraries on the way to the largest object, the nearest to it first.
    pub library_objects: Vec<LibraryObject>,
    /// What it has more since the look before is in a container within it.
    pub grows_in: Option<GrowsIn>,
}

/// The container within what a name holds that has something new beside what was there: [`Traits::grows_in`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrowsIn {
    /// Its Python expression: `agents['a'].memory`.
    pub path: String,
    /// All that is new of the name is in it.
    pub is_all: bool,
    /// It has a bound, and is so full.
    pub bound: Option<Bound>,
    /// What it retains, and what grew beside it in the same way.
    pub n_bytes: Bytes,
}

/// An object on the way to a holder's memory whose class a catalogued leak names: [`Traits::library_objects`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryObject {
    /// That class, which the object is of or comes from, with its module: `accelerate.accelerator.Accelerator`.
    pub class: String,
    /// The version of the library; empty if its package does not say it.
    pub version: String,
    /// The Python expression of the object: `accelerator`.
    pub object: String,
    /// The rest of the path, from the object on: `._models[0]`.
    pub rest: String,
}

/// The steps of a path: `accelerator`, `._models`, `[0]`.
pub fn path_steps(path: &str) -> Vec<&str> {
    let (mut steps, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, letter) in path.char_indices() {
        if matches!(letter, '.' | '[') && depth == 0 && at > start {
            steps.push(&path[start..at]);
            start = at;
        }
        match letter {
            '[' | '(' | '<' => depth += 1,
            ']' | ')' | '>' => depth -= 1,
            _ => {}
        }
    }
    steps.push(&path[start..]);
    steps
}

named! {
    /// What has the largest object of a name, where nobody puts data on purpose: [`Traits::keeper`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Keeper {
        /// The name is a class, which has it as an attribute.
        Class = "class",
        /// Hooks, which are added again.
        Hooks = "hooks",
        /// The frames of an exception.
        Traceback = "traceback",
        /// A function's closure, defaults or cache; not the cache that the name itself is.
        Function = "function",
    }
}

/// What a name has of a device's memory: each storage counts for the name that paths prefer.
///
/// All displayed results are one name, and so are the threads that run one function. Attributes of an
/// object that changed are listed beside it: `trainer.history`. An entry of [`DeviceHolders::changed`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameLevel {
    /// What kind of name it is.
    pub kind: RootKind,
    /// As the user knows it; see [`RootKind::series_name`].
    pub name: String,
    /// Zero if it has let go of all.
    pub n_bytes: Bytes,
    /// In how many storages.
    pub n_storages: u64,
}

/// Part of what a name retains. An entry of [`Holder::branches`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HolderBranch {
    /// The step from its holder: `[3]`, `.grad_fn`; of several `[0] … [95]`.
    pub step: String,
    /// What it is, in words.
    pub what: String,
    /// How many alike it stands for.
    pub n: u64,
    /// What it alone keeps, together.
    pub n_bytes: Bytes,
    /// What it holds in turn.
    #[serde(rename = "children")]
    pub branches: Vec<HolderBranch>,
    /// Further branches.
    #[serde(skip)]
    pub more: Remainder,
}

/// What several names retain together: freed only when all of them let go. An entry of
/// [`DeviceHolders::shared`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SharedMemory {
    /// The first few of the names, in the order in which paths prefer them.
    pub names: Vec<String>,
    /// Whether there are more names.
    pub and_others: bool,
    /// What they keep together.
    pub n_bytes: Bytes,
    /// The Python expression of the largest object.
    pub path: String,
    /// What it is, in words.
    pub what: String,
    /// What most of its bytes are for, where that is known.
    #[serde(skip)]
    pub part: Option<StorageUse>,
}

/// How full a container is that has a bound: [`Traits::bound`](Traits::bound).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bound {
    /// How many it holds.
    pub n: u64,
    /// How many it holds at most.
    pub most: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_steps() {
        let check = |path: &str, expected: &[&str]| assert_eq!(path_steps(path), expected);
        check("model", &["model"]);
        check(
            "accelerator._models[0]",
            &["accelerator", "._models", "[0]"],
        );
        check("a['x.y'][f(1.5)].b", &["a", "['x.y']", "[f(1.5)]", ".b"]);
        check("<a.Trainer>.model", &["<a.Trainer>", ".model"]);
    }
}
