//! Which names hold what a series kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::decision::NameCourse;
use super::suggest;
use super::{Details, Finding, FindingKind};
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::names::{GrowingNames, NameKey, Names};
use crate::reason::Reason;
use gpumem_model::holders::{
    Bound, DeviceHolders, Holder, HolderBranch, Keeper, Rest, RootKind, Traits,
};
use gpumem_model::recording::{DeviceIdx, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes};

/// Growth and a name that holds it, seen in so many runs, need no longer series to be a leak.
pub(super) const ENOUGH_RUNS: usize = 5;

/// A name that has more after each of so many runs collects, and its owner is asked whether that is meant.
pub(super) const EARLY_RUNS: usize = 4;

/// One tensor in so many looks, and no more: it is replaced. A collection begins with one, too.
const SINGLE_LOOKS: usize = 3;

/// A name is told of if it holds at least this share of what was kept.
const WORTH_TELLING: f64 = 0.1;

/// At most so many names are told of.
const N_TOLD: usize = 3;

/// The names that hold what runs kept: first those that collect it, then the most.
#[derive(Debug, Clone, Default)]
pub(super) struct Growers {
    /// Each with what it has more over all of the runs, and as the latest look found it.
    pub(super) holders: Vec<Holder>,
    /// After how many of the runs there was a look.
    n_looks: usize,
    /// In how many of them the first name had more than before.
    n_grown: usize,
    /// In each of them it had one tensor and nothing else.
    is_one_tensor: bool,
    /// A cell reads what the first name collects, and then empties it: its graphs are there for a purpose.
    is_emptied: bool,
}

/// Which looks tell who holds what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Looks {
    /// Those after the runs.
    #[default]
    AfterRuns,
    /// The latest inside of each: it goes on, or what it kept is gone with it.
    InsideRuns,
}

/// A name, as it is followed from look to look.
type Key<'a> = (RootKind, Cow<'a, str>);

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
}

/// Who holds what these runs, or the steps in them, kept on a device.
///
/// A loop collects what is new, also where its run lets go of as much. Names that hold little of
/// what was kept are left out, and all but the first few.
pub(super) fn growers(
    context: Context<'_>,
    runs: &[RunIdx],
    device: DeviceIdx,
    steps: bool,
    kept: Bytes,
    looks: Looks,
) -> Growers {
    let Context {
        recording, names, ..
    } = context;
    let more_of = |holder: &Holder| match holder.fresh {
        Some(fresh) if steps => Some(fresh.since(Bytes::ZERO)),
        _ => holder.grown,
    };
    let mut looked_at: Vec<RunIdx> = runs.iter().map(|run| recording.outermost(*run)).collect();
    looked_at.dedup();
    let all = looked_at.iter().filter_map(|run| match looks {
        Looks::AfterRuns => recording.holders(*run, device),
        Looks::InsideRuns => {
            let mut inside = recording.holders_inside(*run, device);
            inside.next_back().map(|(_, look)| look)
        }
    });
    let mut n_looks = 0;
    let mut sums: BTreeMap<Key<'_>, Sum<'_>> = BTreeMap::new();
    for look in all {
        // The first look of a session has none before it to be compared with.
        n_looks += usize::from(holders_of(look).any(|holder| holder.grown.is_some()));
        for (key, holders) in by_key(names, device, look) {
            let grown = holders.iter().filter_map(|holder| more_of(holder));
            let grown = grown.fold(ByteDelta::ZERO, |sum, grown| sum + grown);
            let sum = sums.entry(key).or_default();
            sum.grown += grown;
            sum.n_grown += usize::from(grown > ByteDelta::ZERO);
            sum.n_shrunk += usize::from(grown < ByteDelta::ZERO);
            sum.n_seen += 1;
            // More of them are no replacement.
            let is_as_before = sum.latest.is_empty() || sum.latest.len() == holders.len();
            let is_single = holders.iter().all(|it| is_one_tensor(it));
            sum.n_single += usize::from(is_single && is_as_before);
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
        .filter(|sum| sum.grown.as_f64() >= WORTH_TELLING * kept.as_f64())
        .collect();
    sums.sort_by_key(|sum| std::cmp::Reverse((sum.collects(), sum.grown)));
    sums.truncate(N_TOLD);
    let first = sums.first();
    let mut holders: Vec<_> = sums.iter().filter_map(Sum::holder).collect();
    // Where they neither gained nor have half of it, something else grows: the host's memory is anybody's.
    let gained = sums.iter().fold(ByteDelta::ZERO, |sum, it| sum + it.grown);
    let has: Bytes = holders.iter().map(|it| it.retained).sum();
    let is_host = !recording.device(device).kind.is_accelerator();
    if is_host && gained.as_f64().max(has.as_f64()) < 0.5 * kept.as_f64() {
        holders.clear();
    }
    Growers {
        is_emptied: holders
            .first()
            .is_some_and(|it| suggest::is_emptied(recording, it)),
        n_grown: first.map_or(0, |sum| sum.n_grown),
        // A loop's one look sees what all of its steps left.
        is_one_tensor: first.is_some_and(|sum| {
            let is_seen = sum.n_seen >= SINGLE_LOOKS && sum.n_grown > 1;
            sum.n_single == sum.n_seen && (steps || is_seen)
        }),
        holders,
        n_looks,
    }
}

/// One of these findings tells of growth on that device which that name holds.
pub(super) fn is_told(
    names: &Names,
    findings: &[Finding],
    device: DeviceIdx,
    name: &NameKey,
) -> bool {
    let is_it = |holder: &Holder| names.key(device, holder) == *name;
    findings.iter().any(|finding| {
        let is_growth = matches!(finding.details, Details::Growth(_));
        let grows = is_growth && finding.device == device && finding.kind != FindingKind::Settled;
        grows && finding.holders.iter().any(is_it)
    })
}

/// Those that keep something alone, and those that share all they have.
fn holders_of(look: &DeviceHolders) -> impl Iterator<Item = &Holder> {
    look.roots.iter().chain(&look.sharing)
}

fn by_key<'a>(
    names: &Names,
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

    /// One holder for all of them.
    fn holder(&self) -> Option<Holder> {
        let largest = self.latest.iter().max_by_key(|holder| holder.retained)?;
        let mut holder = Holder {
            grown: Some(self.grown),
            ..(*largest).clone()
        };
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
fn of_names(context: Context<'_>, growing: &GrowingNames) -> Vec<Holder> {
    let latest = context.recording.latest_holders(growing.device);
    let latest = latest.map(|(_, look)| by_key(context.names, growing.device, look));
    let latest = latest.unwrap_or_default();
    let total = growing
        .names
        .iter()
        .map(|(_, gained)| gained.as_f64())
        .sum::<f64>();
    let told = growing.names.iter().take(N_TOLD);
    let told = told.filter(|(_, gained)| gained.as_f64() >= WORTH_TELLING * total);
    let holder = |((kind, name), grown): &(NameKey, ByteDelta)| {
        let sum = Sum {
            grown: *grown,
            latest: latest
                .get(&(*kind, name.into()))
                .cloned()
                .unwrap_or_default(),
            ..Sum::default()
        };
        let trunk = latest.get(&(*kind, crate::names::trunk(name).into()));
        let branch = trunk.and_then(|trunk| part_of(trunk.first()?, name));
        let unknown = || Holder::new(*kind, name, grown.magnitude());
        sum.holder().unwrap_or_else(|| Holder {
            grown: Some(*grown),
            ..branch.unwrap_or_else(unknown)
        })
    };
    told.map(holder).collect()
}

/// What a look tells of the branch of that name.
fn part_of(trunk: &Holder, name: &str) -> Option<Holder> {
    let step = name.strip_prefix(&*trunk.name)?;
    let mut branches = trunk.branches.iter();
    let Some(branch) = branches.find(|branch| branch.step == step) else {
        return Some(Holder {
            path: name.to_owned(),
            what: format!("part of {}", trunk.traits.type_name),
            ..Holder::new(trunk.kind, name, Bytes::ZERO)
        });
    };
    // The rest is known of the largest object alone.
    let is_largest = trunk.path.starts_with(name);
    Some(Holder {
        path: if is_largest { &trunk.path } else { name }.to_owned(),
        what: branch.what.clone(),
        traits: if is_largest {
            trunk.traits.clone()
        } else {
            Traits::default()
        },
        branches: branch.branches.clone(),
        more: branch.more,
        ..Holder::new(trunk.kind, name, branch.n_bytes)
    })
}

/// A name as part of what holds it.
fn branch(holder: &Holder) -> HolderBranch {
    HolderBranch {
        step: holder.name.clone(),
        what: holder.what.clone(),
        n: 1,
        n_bytes: holder.retained,
        branches: Vec::new(),
        more: Rest::default(),
    }
}

/// It has one tensor and nothing else of size: a sum that keeps its graph has that as well.
fn is_one_tensor(holder: &Holder) -> bool {
    let traits = &holder.traits;
    let is_variable = holder.kind.is_named() && holder.kind != RootKind::ThreadFrame;
    is_variable && traits.n_tensors == 1 && traits.graph == Bytes::ZERO
}

/// Nobody means to keep what is kept there.
fn is_accident(holder: &Holder, is_emptied: bool) -> bool {
    let is_meant =
        matches!(holder.kind, RootKind::Variable | RootKind::ModuleGlobal) || holder.is_local();
    let traits = &holder.traits;
    !is_meant || (traits.graph > Bytes::ZERO && !is_emptied) || traits.keeper.is_some()
}

impl Growers {
    /// Those of names that were followed: that they collect is known.
    pub(super) fn of_names(context: Context<'_>, growing: &GrowingNames) -> Self {
        let holders = of_names(context, growing);
        let first = holders.first();
        Self {
            is_emptied: first.is_some_and(|it| suggest::is_emptied(context.recording, it)),
            holders,
            n_looks: growing.runs.len(),
            n_grown: growing.runs.len(),
            is_one_tensor: false,
        }
    }

    /// What they say of growth: that a name of the user's, or IPython, collects most of what was
    /// kept, more after each run; or that the name does not collect, whatever grows.
    pub(super) fn course(&self, kept: Bytes) -> Option<(NameCourse, Evidence)> {
        let first = self.holders.first()?;
        let grown = first.grown.unwrap_or_default();
        let is_most = grown.as_f64() >= 0.5 * kept.as_f64();
        let is_named = first.kind.is_named() || first.kind.is_ipython();
        let grows = is_named && is_most && self.n_grown == self.n_looks;
        let bound = first.traits.bound.filter(|bound| bound.n <= bound.most);
        // The cache of a method keeps the objects, too, and nobody means that.
        let bound = bound.filter(|_| first.traits.keeper != Some(Keeper::Class));
        let course = match bound {
            Some(bound) if is_most => NameCourse::Ends(fills(first, bound)),
            _ if is_most && self.is_one_tensor => NameCourse::Ends(Reason::OneTensor),
            _ if grows && self.n_looks > 1 => NameCourse::Collects,
            _ => NameCourse::Unclear,
        };
        let figure = Evidence {
            holds: course == NameCourse::Collects,
            ..Evidence::met(Statistic::Held, grown.as_f64(), 0.5 * kept.as_f64())
        };
        Some((course, figure))
    }

    /// They have more after each of these runs, which are enough of them: no need to wait for more.
    pub(super) fn prove(&self, n_runs: usize, course: NameCourse) -> bool {
        n_runs >= ENOUGH_RUNS && course == NameCourse::Collects && self.may_prove(n_runs)
    }

    /// So far there was a look after each of them, and what holds it is an accident.
    pub(super) fn may_prove(&self, n_runs: usize) -> bool {
        let is_each = self.n_looks + 1 >= n_runs && self.n_grown == self.n_looks;
        is_each && self.are_accident()
    }

    /// There is a name, and what it holds is an accident.
    pub(super) fn are_accident(&self) -> bool {
        !self.holders.is_empty() && self.is_accident(true)
    }

    /// Nobody meant to keep it: what has no name, either, where that is no allocator's doing.
    pub(super) fn is_accident(&self, on_accelerator: bool) -> bool {
        let first = self.holders.first();
        first.map_or(on_accelerator, |it| is_accident(it, self.is_emptied))
    }

    /// The first of them are objects that only refer to each other.
    pub(super) fn wait_for_collector(&self) -> bool {
        let first = self.holders.first();
        first.is_some_and(|it| it.kind == RootKind::CyclicGarbage)
    }

    /// There was a look after one of the runs.
    pub(super) fn is_looked_at(&self) -> bool {
        self.n_looks > 0
    }
}

/// A branch that holds this share of a name is where its entries are.
const HOLDS_MOST: f64 = 0.8;

/// How many entries the container in a holder has that holds most of it, and their bytes; its tensors, if none
/// holds most.
pub(super) fn entries(holder: &Holder) -> (u64, f64) {
    let mut branches = &holder.branches;
    while let Some(first) = branches.first() {
        if first.n_bytes.as_f64() < HOLDS_MOST * holder.retained.as_f64() {
            break;
        }
        if first.n > 1 {
            return (first.n, first.n_bytes.as_f64());
        }
        branches = &first.branches;
    }
    (holder.traits.n_tensors, holder.retained.as_f64())
}

/// How far it is filled, and what it has when it is full.
fn fills(holder: &Holder, bound: Bound) -> Reason {
    // Of entries that other names have, too, it retains nothing.
    let (n, n_bytes) = match entries(holder) {
        (n, n_bytes) if n < bound.n && 2 * n >= bound.n => (n, n_bytes as u64),
        _ => (bound.n.max(1), holder.retained.get()),
    };
    let of_rest = (n_bytes % n).saturating_mul(bound.most) / n;
    let when_full = (n_bytes / n).saturating_mul(bound.most);
    Reason::Fills {
        n: bound.n,
        most: bound.most,
        when_full: Bytes::new(when_full.saturating_add(of_rest)),
    }
}
