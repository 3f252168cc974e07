//! The names that have more, summed over the looks at the heap.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::branches::branch_of;
use super::{Course, GrowingHolders, Looks};
use crate::context::Context;
use crate::names::{GrowingNames, NameHistory, NameKey};
use gpumem_model::holders::{
    DeviceHolders, GrowsIn, Holder, HolderBranch, Remainder, RootKind, variable_of,
};
use gpumem_model::recording::{DeviceIdx, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes};

/// A name with one tensor in this many looks replaces it. A collection begins with one, too.
const SINGLE_LOOKS: usize = 3;

/// A name is reported if it holds at least this share of the growth.
const MIN_SHARE: f64 = 0.1;

/// On the host, names that gained this share of the growth have part of it.
const MIN_PART: f64 = 0.25;

/// What steps collected may have that much more than their levels rose by: the first has no level before it.
const MAX_SHARE_OF_STEPS: f64 = 1.5;

/// At most this many names are reported.
const MAX_NAMES: usize = 3;

/// A name, as it is followed from look to look.
pub(super) type Key<'a> = (RootKind, Cow<'a, str>);

#[derive(Default)]
struct Sum<'a> {
    grown: ByteDelta,
    n_grown: usize,
    n_shrunk: usize,
    /// In how many looks it was found, and in how many of them it had one tensor.
    n_seen: usize,
    n_single: usize,
    /// As the latest look found them: several of displayed results, and of threads of one function.
    latest: Vec<&'a Holder>,
    /// Where the latest look that found more found it.
    grows_in: Option<&'a GrowsIn>,
}

/// Who holds what these runs, or the steps in them, kept on a device.
///
/// A loop collects what is new, also where its run lets go of as much. Names that hold little of
/// what was kept are left out, and all but the first few. `steps_grew` is what the level rose by since the
/// loop began, if steps are judged: names that have much more than that had it before.
pub(in crate::findings) fn from_looks(
    context: Context<'_>,
    runs: &[RunIdx],
    device: DeviceIdx,
    steps_grew: Option<Bytes>,
    kept: Bytes,
    looks: Looks,
) -> GrowingHolders {
    let steps = steps_grew.is_some();
    let Context {
        recording, names, ..
    } = context;
    let more_of = |holder: &Holder, is_first: bool| {
        if steps {
            holder.gained(is_first)
        } else {
            holder.grown
        }
    };
    let mut looked_at: Vec<RunIdx> = runs.iter().map(|run| recording.outermost(*run)).collect();
    looked_at.dedup();
    let all = looked_at.iter().filter_map(|run| match looks {
        Looks::AfterRuns => {
            let is_first = recording.holders_before(*run, device).is_none();
            Some((recording.holders(*run, device)?, is_first))
        }
        Looks::InsideRuns => {
            let mut inside = recording.holders_inside(*run, device);
            inside.next_back().map(|(_, look)| (look, false))
        }
    });
    let mut n_looks = 0;
    let mut sums: BTreeMap<Key<'_>, Sum<'_>> = BTreeMap::new();
    for (look, is_first) in all {
        // The first look of a session has none before it to be compared with.
        n_looks += usize::from(holders_of(look).any(|holder| holder.grown.is_some()));
        for (key, holders) in by_key(names, device, look) {
            let grown = holders
                .iter()
                .filter_map(|holder| more_of(holder, is_first));
            let grown: ByteDelta = grown.sum();
            let sum = sums.entry(key).or_default();
            sum.grown += grown;
            sum.n_grown += usize::from(grown > ByteDelta::ZERO);
            sum.n_shrunk += usize::from(grown < ByteDelta::ZERO);
            sum.n_seen += 1;
            // More of them are no replacement.
            let is_as_before = sum.latest.is_empty() || sum.latest.len() == holders.len();
            let is_single = holders.iter().all(|it| is_one_tensor(it));
            sum.n_single += usize::from(is_single && is_as_before);
            let mut within = holders.iter().filter_map(|it| it.traits.grows_in.as_ref());
            sum.grows_in = within.next().or(sum.grows_in);
            sum.latest = holders;
        }
    }
    let now = recording.latest_holders(device);
    let now = now.filter(|_| looks == Looks::AfterRuns);
    let now = now.map(|(_, look)| by_key(names, device, look));
    for (key, holders) in now.into_iter().flatten() {
        if let Some(sum) = sums.get_mut(&key) {
            sum.latest = holders;
        }
    }
    let mut sums: Vec<Sum<'_>> = sums
        .into_values()
        .filter(|sum| sum.grown > ByteDelta::ZERO)
        .filter(|sum| sum.grown.as_f64() >= MIN_SHARE * kept.as_f64())
        .collect();
    // What the run made before its loop, such as a model, has more than the steps kept.
    let most = MAX_SHARE_OF_STEPS * steps_grew.unwrap_or_default().as_f64();
    let is_theirs = |sum: &Sum<'_>| sum.grown.as_f64() <= most;
    let is_most = |sum: &Sum<'_>| is_theirs(sum) && sum.grown.as_f64() >= 0.5 * kept.as_f64();
    if steps && sums.iter().any(is_most) {
        sums.retain(is_theirs);
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.rank()));
    sums.truncate(MAX_NAMES);
    let found = sums
        .iter()
        .filter_map(|sum| Some((sum.holder()?, sum.course(steps))));
    let (mut holders, mut courses): (Vec<Holder>, Vec<Course>) = found.unzip();
    // Where they neither gained nor have half of it, something else grows: the host's memory is anybody's.
    let gained: ByteDelta = sums.iter().map(|it| it.grown).sum();
    let has: Bytes = holders.iter().map(|it| it.retained).sum();
    let is_host = !recording.device(device).kind.is_accelerator();
    let is_other = is_host && gained.as_f64().max(has.as_f64()) < 0.5 * kept.as_f64();
    if is_other {
        holders.clear();
        courses.clear();
    }
    GrowingHolders {
        has_part: is_other && gained.as_f64() >= MIN_PART * kept.as_f64(),
        ..GrowingHolders::new(recording, holders, courses, n_looks)
    }
}

/// Those that keep something alone, and those that share all they have.
fn holders_of(look: &DeviceHolders) -> impl Iterator<Item = &Holder> {
    look.roots.iter().chain(&look.sharing)
}

fn by_key<'a>(
    names: &NameHistory,
    device: DeviceIdx,
    look: &'a DeviceHolders,
) -> HashMap<Key<'a>, Vec<&'a Holder>> {
    let mut by_key: HashMap<Key<'_>, Vec<&Holder>> = HashMap::new();
    for holder in holders_of(look) {
        let key = names.series_name(device, holder);
        by_key.entry(key).or_default().push(holder);
    }
    by_key
}

impl Sum<'_> {
    /// It has only ever had more. What a run puts in the place of the last one's comes and goes,
    /// and may for long be larger than what a leak has collected beside it.
    fn collects(&self) -> bool {
        self.n_grown > 1 && self.n_shrunk == 0
    }

    /// What tells most of what grows is the greatest. Of those that gained as much, it has more now.
    fn rank(&self) -> (bool, bool, ByteDelta, Bytes) {
        let now = self.latest.iter().map(|holder| holder.retained).sum();
        (!self.is_passing(), self.collects(), self.grown, now)
    }

    /// Each look found one tensor that others have, too: most likely a new one of theirs.
    fn is_passing(&self) -> bool {
        let is_shared = self.latest.iter().all(|it| it.traits.is_shared);
        self.n_seen > 1 && self.n_single == self.n_seen && is_shared
    }

    fn course(&self, steps: bool) -> Course {
        // A loop's one look sees what all of its steps left.
        let is_known = steps || (self.n_seen >= SINGLE_LOOKS && self.n_grown > 1);
        Course {
            n_grown: self.n_grown,
            only_grows: self.n_shrunk == 0,
            is_one_tensor: self.n_single == self.n_seen && is_known,
        }
    }

    /// One holder for all of them.
    fn holder(&self) -> Option<Holder> {
        let largest = self.latest.iter().max_by_key(|holder| holder.retained)?;
        let mut holder = Holder {
            grown: Some(self.grown),
            ..(*largest).clone()
        };
        let traits = &mut holder.traits;
        traits.grows_in = traits.grows_in.take().or_else(|| self.grows_in.cloned());
        if self.latest.len() > 1 {
            let n = self.latest.len();
            match holder.kind {
                RootKind::OutputHistory => {
                    "Out".clone_into(&mut holder.name);
                    holder.what = format!("{n} displayed results");
                }
                RootKind::Variable => {
                    holder.name = numbered(&self.latest);
                    holder.what = format!("{n} names");
                    // None of them is deleted for all.
                    holder.traits.type_name = String::new();
                }
                kind => {
                    let function = kind.series_name(&holder.name);
                    holder.name = format!("{function} in {n} threads");
                }
            }
            holder.retained = self.latest.iter().map(|it| it.retained).sum();
            holder.branches = self.latest.iter().map(|it| branch(it)).collect();
        }
        Some(holder)
    }
}

/// `model_1 … model_6`.
fn numbered(holders: &[&Holder]) -> String {
    let names = || holders.iter().map(|holder| &*holder.name);
    let first = names().min_by_key(|name| (name.len(), *name));
    let last = names().max_by_key(|name| (name.len(), *name));
    format!(
        "{} … {}",
        first.unwrap_or_default(),
        last.unwrap_or_default()
    )
}

/// The holders of what names gained, as the latest look found them.
pub(super) fn holders_of_names(context: Context<'_>, growing: &GrowingNames) -> Vec<Holder> {
    let latest = context.recording.latest_holders(growing.device);
    let latest = latest.map(|(_, look)| by_key(context.names, growing.device, look));
    let latest = latest.unwrap_or_default();
    let total = growing
        .names
        .iter()
        .map(|(_, gained)| gained.as_f64())
        .sum::<f64>();
    let reported = growing.names.iter().take(MAX_NAMES);
    let reported = reported.filter(|(_, gained)| gained.as_f64() >= MIN_SHARE * total);
    let holder = |((kind, name), grown): &(NameKey, ByteDelta)| {
        let sum = Sum {
            grown: *grown,
            latest: latest
                .get(&(*kind, name.into()))
                .cloned()
                .unwrap_or_default(),
            ..Sum::default()
        };
        let object = latest.get(&(*kind, variable_of(name).into()));
        let branch = object.and_then(|object| {
            let looks = context.recording.looks(growing.device).rev();
            branch_of(object.first()?, name, looks.map(|(_, look)| look))
        });
        let unknown = || Holder::new(*kind, name, grown.magnitude());
        sum.holder().unwrap_or_else(|| Holder {
            grown: Some(*grown),
            ..branch.unwrap_or_else(unknown)
        })
    };
    reported.map(holder).collect()
}

/// A name as part of what holds it.
fn branch(holder: &Holder) -> HolderBranch {
    HolderBranch {
        step: holder.name.clone(),
        what: holder.what.clone(),
        n: 1,
        n_bytes: holder.retained,
        branches: Vec::new(),
        more: Remainder::default(),
    }
}

/// It has one tensor and nothing else of size: a sum that keeps its graph has that as well.
fn is_one_tensor(holder: &Holder) -> bool {
    let traits = &holder.traits;
    let is_variable = holder.kind.is_named() && holder.kind != RootKind::ThreadFrame;
    is_variable && traits.n_tensors == 1 && traits.graph == Bytes::ZERO
}
