//! Which names hold what a series kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::decision::NameCourse;
use super::suggest;
use super::{Details, Finding, FindingKind};
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::names::{self, BranchGain, GrowingNames, NameKey, Names};
use crate::reason::Reason;
use gpumem_model::holders::{
    Bound, DeviceHolders, Holder, HolderBranch, Keeper, NameLevel, Rest, RootKind, Traits,
    variable_of,
};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Bytes};

/// Growth and a name that holds it, seen in so many runs, need no longer series to be a leak.
pub(super) const ENOUGH_RUNS: usize = 5;

/// A name that has more after each of so many runs collects, and its owner is asked whether that is meant.
pub(super) const EARLY_RUNS: usize = 4;

/// One tensor in so many looks, and no more: it is replaced. A collection begins with one, too.
const SINGLE_LOOKS: usize = 3;

/// A collection of fewer entries does not tell what each of them takes.
pub(super) const MIN_ENTRIES: u64 = 6;

/// A name is told of if it holds at least this share of what was kept.
const WORTH_TELLING: f64 = 0.1;

/// At most so many names are told of.
const N_TOLD: usize = 3;

/// The names that hold what runs kept: first those that collect it, then the most.
#[derive(Debug, Clone, Default)]
pub(super) struct Growers {
    /// Each with what it has more over all of the runs, and as the latest look found it.
    pub(super) holders: Vec<Holder>,
    /// What each of them does.
    courses: Vec<Course>,
    /// After how many of the runs there was a look.
    n_looks: usize,
    /// A cell reads what the first name collects, and then empties it: its graphs are there for a purpose.
    is_emptied: bool,
    /// A cell adds to it only what it does not have yet: it may be full soon.
    is_cache: bool,
}

/// What a name does from look to look.
#[derive(Debug, Clone, Copy, Default)]
struct Course {
    /// At how many looks it had more than at the one before, and it never had less.
    n_grown: usize,
    only_grows: bool,
    /// In each of them it had one tensor and nothing else.
    is_one_tensor: bool,
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
    let found = sums
        .iter()
        .filter_map(|sum| Some((sum.holder()?, sum.course(steps))));
    let (mut holders, mut courses): (Vec<Holder>, Vec<Course>) = found.unzip();
    // Where they neither gained nor have half of it, something else grows: the host's memory is anybody's.
    let gained = sums.iter().fold(ByteDelta::ZERO, |sum, it| sum + it.grown);
    let has: Bytes = holders.iter().map(|it| it.retained).sum();
    let is_host = !recording.device(device).kind.is_accelerator();
    if is_host && gained.as_f64().max(has.as_f64()) < 0.5 * kept.as_f64() {
        holders.clear();
        courses.clear();
    }
    Growers::new(recording, holders, courses, n_looks)
}

/// One of these findings tells of growth on that device which that name holds.
pub(super) fn is_told(
    names: &Names,
    findings: &[Finding],
    device: DeviceIdx,
    name: &NameKey,
) -> bool {
    let is_it = |holder: &Holder| {
        let key = names.key(device, holder);
        let is_part = names::is_branch(&key) && variable_of(&key.1) == name.1;
        let rest = holder.path.strip_prefix(&*name.1);
        let is_main = names::is_branch(name)
            && rest.is_some_and(|rest| !rest.starts_with(source_text::is_name_letter));
        key == *name || (is_part || is_main) && key.0 == name.0
    };
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
    told.map(holder).collect()
}

/// The attributes that gained nearly all of what an object did, with what they do; or the object, by their path.
fn branches_that_grew(
    context: Context<'_>,
    (runs, device, n_steps): (&[RunIdx], DeviceIdx, Option<usize>),
    looks: Looks,
    object: &Holder,
    course: Course,
) -> Vec<(Holder, Course)> {
    let recording = context.recording;
    let ends = runs.first().zip(runs.last());
    // What has a bound is known by it, and not by what it keeps its items in.
    let may_be_part = object.kind == RootKind::Variable && object.traits.bound.is_none();
    let Some((first, last)) = ends.filter(|_| may_be_part) else {
        return Vec::new();
    };
    let ends = (recording.outermost(*first), recording.outermost(*last));
    let inside = || {
        let inside = recording.holders_inside(ends.1, device).rev();
        inside.map(|(_, look)| look)
    };
    let after = || recording.looks(device).rev().map(|(_, look)| look);
    let main = if let Some(n_steps) = n_steps {
        let look = match looks {
            Looks::AfterRuns => recording.holders(ends.1, device),
            Looks::InsideRuns => inside().next(),
        };
        let look = look.map(|look| (ends.1, look));
        branches_of_loop(
            context,
            device,
            look,
            object,
            enough_entries(n_steps, looks),
        )
    } else {
        let gains = context.names.gains(device, &object.name, ends);
        let (gained, branches) = gains.unwrap_or_default();
        names::main_branches(branches, gained)
    };
    let sum = main.iter().map(|it| it.gained.as_f64()).sum::<f64>();
    let grown = object.grown.unwrap_or_default();
    let found = main.into_iter().filter_map(|gain| {
        let holder = match looks {
            Looks::AfterRuns => branch_of(object, gain.name, after().chain(inside())),
            Looks::InsideRuns => branch_of(object, gain.name, inside().chain(after())),
        };
        let holder = Holder {
            grown: Some(match n_steps {
                // The looks compared may have been inside of the run.
                Some(_) => ByteDelta::from_f64(grown.as_f64() * gain.gained.as_f64() / sum),
                None => gain.gained,
            }),
            ..holder?
        };
        let course = Course {
            n_grown: match n_steps {
                Some(_) => course.n_grown,
                None => gain.n_grown.min(course.n_grown),
            },
            ..course
        };
        Some((holder, course))
    });
    let found: Vec<(Holder, Course)> = found.collect();
    match found.first() {
        Some((first, _)) if !found.iter().all(|(it, _)| is_nameable(recording, it)) => {
            vec![(with_path_of(object, first), course)]
        }
        _ => found,
    }
}

/// An attribute of the user's, and nothing of hooks, caches, classes and the like, for which their object is known.
fn is_nameable(recording: &Recording, branch: &Holder) -> bool {
    names::is_attribute(&branch.name)
        && !names::is_private(recording, &branch.name)
        && branch.traits.keeper.is_none()
}

/// The object by what grew in it.
fn with_path_of(object: &Holder, branch: &Holder) -> Holder {
    Holder {
        path: branch.path.clone(),
        traits: Traits {
            type_name: object.traits.type_name.clone(),
            n_tensors: object.traits.n_tensors,
            is_shared: object.traits.is_shared,
            ..branch.traits.clone()
        },
        ..object.clone()
    }
}

/// What collects in a loop of so many steps has something of every second of them, or of the first ones at a look
/// that was taken while it went on.
fn enough_entries(n_steps: usize, looks: Looks) -> u64 {
    match looks {
        Looks::AfterRuns => (n_steps as u64).div_ceil(2),
        Looks::InsideRuns => MIN_ENTRIES,
    }
}

/// The same of a loop, by the look at its end. What it collects is in many storages. Since a look
/// that was taken while it went on, several may have grown; else much that is made once was made in the run.
fn branches_of_loop<'a>(
    context: Context<'a>,
    device: DeviceIdx,
    look: Option<(RunIdx, &'a DeviceHolders)>,
    object: &Holder,
    enough: u64,
) -> Vec<BranchGain<'a>> {
    let Some((run, end)) = look else {
        return Vec::new();
    };
    let levels = |look: &'a DeviceHolders| {
        let named = look
            .changed
            .iter()
            .filter(|it| it.kind == RootKind::Variable);
        let of_object = named.filter(|it| variable_of(&it.name) == object.name);
        of_object.collect::<Vec<&NameLevel>>()
    };
    let end_levels = levels(end);
    let inside = context.recording.holders_inside(run, device);
    let mut inside = inside
        .map(|(_, look)| look)
        .filter(|look| !std::ptr::eq(*look, end));
    let first = inside.find_map(|look| Some(levels(look)).filter(|it| !it.is_empty()));
    let before = |level: &NameLevel| {
        if let Some(first) = &first {
            let known = first.iter().find(|it| it.name == level.name);
            known.map_or((Bytes::ZERO, 0), |it| (it.n_bytes, it.n_storages))
        } else {
            let key = (level.kind, level.name.clone());
            let known = context.names.level_before(device, &key, run);
            known.unwrap_or_default()
        }
    };
    let gain = |level: &&'a NameLevel| {
        let (n_bytes, n_storages) = before(level);
        let n_new = level.n_storages.saturating_sub(n_storages);
        BranchGain {
            name: &level.name,
            gained: level.n_bytes.since(n_bytes),
            n_grown: if n_new >= enough { 2 } else { 1 },
        }
    };
    let gains = end_levels.iter().map(gain);
    let (of_object, branches): (Vec<_>, Vec<_>) = gains.partition(|it| it.name == object.name);
    let of_object = of_object.first().map_or(ByteDelta::ZERO, |it| it.gained);
    let mut main = names::main_branches(branches, of_object);
    if main.is_empty() || of_object <= ByteDelta::ZERO {
        // It lets go of what it collected before.
        let fresh = end.growing_branches.iter();
        let fresh = fresh.filter(|it| variable_of(&it.name) == object.name);
        let fresh = fresh.map(|it| BranchGain {
            name: &it.name,
            gained: it.fresh.unwrap_or_default().since(Bytes::ZERO),
            n_grown: if it.traits.n_tensors >= enough { 2 } else { 1 },
        });
        main = names::main_branches(fresh.collect(), object.grown.unwrap_or_default());
        if main.len() > 1 {
            main.clear();
        }
    }
    if first.is_none() && main.len() > 1 {
        main.clear();
    }
    main
}

/// The branch of that name: what it has by its object, its path by the latest of these looks at which it grew.
fn branch_of<'a>(
    object: &Holder,
    name: &str,
    looks: impl Iterator<Item = &'a DeviceHolders>,
) -> Option<Holder> {
    let part = part_of(object, name)?;
    let mut grown = looks.flat_map(|look| &look.growing_branches);
    let Some(grown) = grown.find(|it| it.name == name) else {
        return Some(part);
    };
    let is_listed = part.retained > Bytes::ZERO;
    let now = if is_listed { &part } else { grown };
    Some(Holder {
        retained: now.retained,
        what: now.what.clone(),
        branches: now.branches.clone(),
        more: now.more,
        ..grown.clone()
    })
}

/// What the look at an object has of a branch.
fn part_of(object: &Holder, name: &str) -> Option<Holder> {
    let step = name.strip_prefix(&*object.name)?;
    let mut branches = object.branches.iter();
    let Some(branch) = branches.find(|branch| branch.step == step) else {
        return Some(Holder {
            path: name.to_owned(),
            what: format!("part of {}", object.traits.type_name),
            ..Holder::new(object.kind, name, Bytes::ZERO)
        });
    };
    // The rest is known of the largest object alone.
    let is_largest = object.path.starts_with(name);
    Some(Holder {
        path: if is_largest { &object.path } else { name }.to_owned(),
        what: branch.what.clone(),
        traits: if is_largest {
            object.traits.clone()
        } else {
            Traits::default()
        },
        branches: branch.branches.clone(),
        more: branch.more,
        ..Holder::new(object.kind, name, branch.n_bytes)
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
    // Who switched the collector off may collect now and then.
    let may_go = holder.kind == RootKind::UncollectedGarbage;
    let is_kept = (traits.graph > Bytes::ZERO && !is_emptied) || traits.keeper.is_some();
    !may_go && (!is_meant || is_kept)
}

impl Growers {
    /// Those of names that were followed: that they collect is known.
    pub(super) fn of_names(context: Context<'_>, growing: &GrowingNames) -> Self {
        let holders = of_names(context, growing);
        let n_looks = growing.runs.len();
        let course = Course {
            n_grown: n_looks,
            only_grows: true,
            is_one_tensor: false,
        };
        let courses = vec![course; holders.len()];
        Self::new(context.recording, holders, courses, n_looks)
    }

    fn new(
        recording: &Recording,
        holders: Vec<Holder>,
        courses: Vec<Course>,
        n_looks: usize,
    ) -> Self {
        let first = holders.first();
        Self {
            is_emptied: first.is_some_and(|it| suggest::is_emptied(recording, it)),
            is_cache: first.is_some_and(|it| suggest::is_cache(recording, it)),
            holders,
            courses,
            n_looks,
        }
    }

    fn first_course(&self) -> Course {
        self.courses.first().copied().unwrap_or_default()
    }

    /// With the attributes that grew in the place of their objects.
    pub(super) fn with_branches(
        self,
        context: Context<'_>,
        series: (&[RunIdx], DeviceIdx, Option<usize>),
        looks: Looks,
    ) -> Self {
        let mut found: Vec<(Holder, Course)> = Vec::new();
        for (holder, course) in self.holders.into_iter().zip(self.courses) {
            let branches = branches_that_grew(context, series, looks, &holder, course);
            if branches.is_empty() {
                found.push((holder, course));
            }
            found.extend(branches);
        }
        let (holders, courses) = found.into_iter().unzip();
        Self::new(context.recording, holders, courses, self.n_looks)
    }

    /// Those of each name by itself, if several collect; what does not collect is left out. Of a loop of so many
    /// steps one look tells: what collects has something of every second of them.
    pub(super) fn each(
        &self,
        recording: &Recording,
        n_steps: Option<usize>,
        looks: Looks,
    ) -> Vec<Self> {
        let all = self.holders.iter().zip(&self.courses);
        let collecting = all.filter(|(holder, course)| match n_steps {
            Some(n_steps) => holder.traits.n_tensors >= enough_entries(n_steps, looks),
            None => course.only_grows && course.n_grown > 1 && 2 * course.n_grown >= self.n_looks,
        });
        let each = collecting.map(|(holder, course)| {
            let (holders, courses) = (vec![holder.clone()], vec![*course]);
            Self::new(recording, holders, courses, self.n_looks)
        });
        let each: Vec<Self> = each.collect();
        if each.len() > 1 { each } else { Vec::new() }
    }

    /// What they say of growth: that a name of the user's, or IPython, collects most of what was
    /// kept, more after each run; or that the name does not collect, whatever grows.
    pub(super) fn course(&self, kept: Bytes) -> Option<(NameCourse, Evidence)> {
        let first = self.holders.first()?;
        let grown = first.grown.unwrap_or_default();
        let is_most = grown.as_f64() >= 0.5 * kept.as_f64();
        let is_named = first.kind.is_named() || first.kind.is_ipython();
        let of_first = self.first_course();
        let grows = is_named && is_most && of_first.n_grown == self.n_looks;
        let bound = first.traits.bound.filter(|bound| bound.n <= bound.most);
        // The cache of a method keeps the objects, too, and nobody means that.
        let bound = bound.filter(|_| first.traits.keeper != Some(Keeper::Class));
        let course = match bound {
            Some(bound) if is_most => NameCourse::Ends(fills(first, bound)),
            _ if is_most && of_first.is_one_tensor => NameCourse::Ends(Reason::OneTensor),
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
        let is_each = self.n_looks + 1 >= n_runs && self.first_course().n_grown == self.n_looks;
        is_each && self.are_accident() && !self.is_cache
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

    /// The same, and the collector is off.
    pub(super) fn are_left_by_collector(&self) -> bool {
        let first = self.holders.first();
        first.is_some_and(|it| it.kind == RootKind::UncollectedGarbage)
    }

    /// There was a look after one of the runs.
    pub(super) fn is_looked_at(&self) -> bool {
        self.n_looks > 0
    }
}

/// How far it is filled, and what it has when it is full.
fn fills(holder: &Holder, bound: Bound) -> Reason {
    // Of entries that other names have, too, it retains nothing.
    let (n, n_bytes) = match holder.entries() {
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
