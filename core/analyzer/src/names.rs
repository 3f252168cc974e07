//! What each name has of a device's memory, look by look, and which of them have more and more.
//!
//! What runs of one cell keep is judged elsewhere. Here a name is followed, whichever cell adds to it and
//! however often that is edited. A name that is emptied begins anew: it is its **episode** that grows.

mod growing_names;
mod name_series;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gpumem_model::holders::{DeviceHolders, Holder, RootKind, variable_of};
use gpumem_model::recording::{CellIdx, DeviceIdx, Recording, RunIdx};
use gpumem_model::source_text::has_word;
use gpumem_model::units::{ByteDelta, Bytes};

pub(super) use growing_names::GrowingNames;
use name_series::{EMPTIED, NamePoint, NameSeries};

/// A name that grew at this many looks, whichever cell did that, grows by itself.
const MANY_LOOKS: usize = 3;

/// A name as it is followed: [`NameHistory::key`].
pub(super) type NameKey = (RootKind, String);

/// If branches gained this share of what their object did, they are what grows.
const NEARLY_ALL: f64 = 0.9;

/// What did not gain this share of it is no part of that.
const WORTH_NAMING: f64 = 0.1;

/// What a branch has more, and at how many looks it had more than at the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchGain<'a> {
    pub(super) name: &'a str,
    pub(super) gained: ByteDelta,
    pub(super) n_grown: usize,
}

/// The branches that gained nearly all of what their object did, the most first; none if no few of them did. What
/// grew once does not grow: it is left out of what the object gained, unless nothing else grew yet.
pub(super) fn main_branches(
    branches: Vec<BranchGain<'_>>,
    of_object: ByteDelta,
) -> Vec<BranchGain<'_>> {
    let gains = branches
        .into_iter()
        .filter(|it| it.gained > ByteDelta::ZERO);
    let (mut gains, mut once): (Vec<_>, Vec<_>) = gains.partition(|it| it.n_grown > 1);
    if gains.is_empty() && once.len() == 1 {
        std::mem::swap(&mut gains, &mut once);
    }
    let sum = |gains: &[BranchGain<'_>]| gains.iter().map(|it| it.gained.as_f64()).sum::<f64>();
    let total = (of_object.as_f64() - sum(&once)).max(sum(&gains));
    gains.retain(|it| it.gained.as_f64() >= WORTH_NAMING * total);
    gains.sort_by_key(|it| std::cmp::Reverse(it.gained));
    if sum(&gains) < NEARLY_ALL * total {
        gains.clear();
    }
    gains
}

/// It is a part of what a variable names.
pub(super) fn is_branch((kind, name): &NameKey) -> bool {
    *kind == RootKind::Variable && variable_of(name).len() < name.len()
}

/// A branch is an attribute, and no key.
pub(super) fn is_attribute(branch: &str) -> bool {
    branch[variable_of(branch).len()..].starts_with('.')
}

/// A branch that a library calls its own, and no cell has the name.
pub(super) fn is_private(recording: &Recording, branch: &str) -> bool {
    let attribute = branch[variable_of(branch).len()..].strip_prefix('.');
    let is_private = |name: &str| {
        let cells = recording.cells().iter();
        let mut texts = cells.filter_map(|cell| cell.revisions.last()?.text.as_deref());
        name.starts_with('_') && !texts.any(|text| has_word(text, name))
    };
    attribute.is_some_and(is_private)
}

/// What the looks of a recording say of each name.
#[derive(Debug, Default)]
pub(super) struct NameHistory {
    of_devices: Vec<OfDevice>,
}

#[derive(Debug, Default)]
struct OfDevice {
    looks: Vec<RunIdx>,
    names: BTreeMap<NameKey, NameSeries>,
    /// Variables whose names differ by the number at their end, by the name that they may have together.
    numbered: BTreeMap<String, NumberedName>,
    /// The names that began anew, by the run after which that was seen; not those that their cell emptied.
    begun_anew: Vec<(RunIdx, NameKey)>,
}

/// `model_1`, `model_2`, …: one name if runs of one cell make them, and none grows by itself.
#[derive(Debug, Default)]
struct NumberedName {
    names: BTreeSet<String>,
    /// The cells that made them.
    makers: BTreeSet<CellIdx>,
    grow_themselves: bool,
}

/// How it is known that what a cell's runs kept was freed between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freed {
    ByName,
    ByLevel,
}

impl NameHistory {
    pub(super) fn new(recording: &Recording) -> Self {
        let mut names = Self::default();
        names.take_in(recording, None);
        names
    }

    /// Takes in the looks that are new, and those of runs from the first on that changed.
    pub(super) fn take_in(&mut self, recording: &Recording, changed: Option<RunIdx>) {
        let n_devices = recording.devices().len();
        self.of_devices.resize_with(n_devices, OfDevice::default);
        for (device, of_device) in recording.devices().iter().zip(&mut self.of_devices) {
            let last = of_device.looks.last().copied();
            if changed.is_some_and(|run| last.is_some_and(|last| run <= last)) {
                *of_device = OfDevice::default();
            }
            let known = of_device.looks.last().copied();
            let looks = recording.looks(device.idx).rev();
            let mut new: Vec<(RunIdx, &DeviceHolders)> = looks
                .take_while(|(run, _)| known.is_none_or(|known| *run > known))
                .collect();
            while let Some((run, look)) = new.pop() {
                of_device.take_in(recording, run, look);
            }
        }
    }

    /// The name under which a holder is followed: that of all that are numbered like it, if they are one.
    pub(super) fn key(&self, device: DeviceIdx, holder: &Holder) -> NameKey {
        let (kind, name) = self.series_name(device, holder);
        (kind, name.into_owned())
    }

    /// [`Self::key`].
    pub(super) fn series_name<'h>(
        &self,
        device: DeviceIdx,
        holder: &'h Holder,
    ) -> (RootKind, Cow<'h, str>) {
        let of_device = self.of_devices.get(device.get());
        let all = numbered(holder.kind, &holder.name);
        let all = all.filter(|all| of_device.is_some_and(|it| it.are_one(all)));
        let own = || holder.kind.series_name(&holder.name);
        (holder.kind, all.map_or_else(own, Cow::from))
    }

    /// How what these runs of one cell `kept` was freed before the `next` one kept something: the name that
    /// explains it began anew, or, if no name does, the level has `fallen` by most of it.
    pub(super) fn freed(
        &self,
        device: DeviceIdx,
        runs: &[RunIdx],
        next: RunIdx,
        (kept, fallen): (Bytes, Bytes),
    ) -> Option<Freed> {
        let of_device = self.of_devices.get(device.get())?;
        let last = runs.last()?;
        let begun = &of_device.begun_anew;
        let first = begun.partition_point(|(run, _)| run <= last);
        let mut begun = begun[first..].iter().take_while(|(run, _)| *run <= next);
        let explains = |series: &NameSeries| series.explains(runs, kept);
        if begun.any(|(_, name)| of_device.names.get(name).is_some_and(explains)) {
            return Some(Freed::ByName);
        }
        let has_fallen = fallen.as_f64() >= EMPTIED * kept.as_f64();
        let is_freed = has_fallen && !of_device.names.values().any(explains);
        is_freed.then_some(Freed::ByLevel)
    }

    /// What a name had after a run, if it was ever followed: of many names only the largest are, and
    /// older recordings follow none.
    pub(super) fn level(&self, device: DeviceIdx, name: &NameKey, run: RunIdx) -> Option<Bytes> {
        let series = self.of_devices.get(device.get())?.names.get(name)?;
        Some(series.after(run))
    }

    /// A name had more bytes in more storages after each of these runs.
    pub(super) fn gains_storages(
        &self,
        device: DeviceIdx,
        name: &NameKey,
        runs: &[RunIdx],
    ) -> bool {
        let of_device = self.of_devices.get(device.get());
        let series = of_device.and_then(|it| it.names.get(name));
        let Some(series) = series else {
            return false;
        };
        let mut before = 0;
        let gains = |point: &&NamePoint| {
            let before = std::mem::replace(&mut before, point.n_storages);
            point.n_storages > before && runs.binary_search(&point.run).is_ok()
        };
        series.points.iter().filter(gains).count() >= runs.len()
    }

    /// What a name had at the look before the one after `run`, and in how many storages.
    pub(super) fn level_before(
        &self,
        device: DeviceIdx,
        name: &NameKey,
        run: RunIdx,
    ) -> Option<(Bytes, u64)> {
        let series = self.of_devices.get(device.get())?.names.get(name)?;
        let n_before = series.points.partition_point(|point| point.run < run);
        let point = series.points[..n_before].last()?;
        Some((point.n_bytes, point.n_storages))
    }

    /// What a variable gained between the looks before and after these runs, and each of its branches. If there was
    /// none before, since the first look.
    pub(super) fn gains(
        &self,
        device: DeviceIdx,
        whole: &str,
        (first, last): (RunIdx, RunIdx),
    ) -> Option<(ByteDelta, Vec<BranchGain<'_>>)> {
        let of_device = self.of_devices.get(device.get())?;
        let n_before = of_device.looks.partition_point(|run| *run < first);
        let start = *of_device.looks.get(n_before.saturating_sub(1))?;
        let gained = |series: &NameSeries| series.after(last).since(series.after(start));
        let key = (RootKind::Variable, whole.to_owned());
        let of_whole = gained(of_device.names.get(&key)?);
        let branches = of_device.branches(whole).map(|(name, series)| {
            let within = series
                .points
                .iter()
                .filter(|it| start < it.run && it.run <= last);
            BranchGain {
                name,
                gained: gained(series),
                n_grown: within.filter(|it| it.grew).count(),
            }
        });
        Some((of_whole, branches.collect()))
    }

    /// The names of a device that have more and more, by the cell that adds to each most often; or those
    /// that `only` one cell adds to, among others. Growth below the first of `least` is none, and below the
    /// second only if the name had more storages after each run.
    pub(super) fn growing(
        &self,
        recording: &Recording,
        device: DeviceIdx,
        (least, least_unsteady): (Bytes, Bytes),
        only: Option<CellIdx>,
    ) -> Vec<GrowingNames> {
        let Some(of_device) = self.of_devices.get(device.get()) else {
            return Vec::new();
        };
        let branches = of_device.telling_branches(recording, least);
        let has_branch = |whole: &str| branches.iter().any(|(_, name)| variable_of(name) == whole);
        let mut by_cell: BTreeMap<CellIdx, Vec<(&NameKey, &NameSeries)>> = BTreeMap::new();
        for (name, series) in &of_device.names {
            let (kind, text) = name;
            let is_name = (kind.is_named() || kind.is_ipython()) && of_device.tells(name);
            let is_reported = if is_branch(name) {
                branches.contains(&name)
            } else {
                !(*kind == RootKind::Variable && has_branch(text))
            };
            if !is_name || !is_reported || !series.collects(least) {
                continue;
            }
            let adders = series.adders(recording, text);
            let most = adders.iter().max_by_key(|(_, n)| *n);
            let is_much = series.collects(least_unsteady);
            let most = most.filter(|(cell, _)| is_much || series.is_steady(recording, *cell));
            let is_asked = only.is_none_or(|only| adders.iter().any(|(cell, _)| *cell == only));
            if let Some((cell, _)) = most.filter(|_| is_asked) {
                by_cell.entry(*cell).or_default().push((name, series));
            }
        }
        let by_cell = by_cell.values();
        let of_device = (device, &*of_device.looks);
        let growing = by_cell.flat_map(|names| GrowingNames::each(recording, of_device, names));
        growing.collect()
    }
}

/// The name that a numbered variable may have together with others: `model_…` of `model_7`.
fn numbered(kind: RootKind, name: &str) -> Option<String> {
    let first = name.split(" … ").next().unwrap_or_default();
    let stem = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = !stem.is_empty() && stem.len() < first.len() && !name.contains(['.', '[']);
    (kind == RootKind::Variable && is_numbered).then(|| format!("{stem}…"))
}

impl NumberedName {
    fn are_one(&self) -> bool {
        self.names.len() > 1 && self.makers.len() == 1 && !self.grow_themselves
    }
}

impl OfDevice {
    /// The branches to report instead of their objects: those with nearly all of the objects' growth.
    /// Objects may also lose, from look to look, what they replace or drop elsewhere.
    fn telling_branches(&self, recording: &Recording, least: Bytes) -> Vec<&NameKey> {
        let tells = |(name, series): &(&NameKey, &NameSeries)| {
            if !is_branch(name) || !series.collects(least) {
                return false;
            }
            let whole = (RootKind::Variable, variable_of(&name.1).to_owned());
            let Some(it) = self.names.get(&whole) else {
                return false;
            };
            let gained = self.branches(&whole.1).map(|(name, series)| BranchGain {
                name,
                gained: series.now().since(series.start),
                n_grown: series.grown().count(),
            });
            let main = main_branches(gained.collect(), it.now().since(it.start));
            let is_main = is_attribute(&name.1) && main.iter().any(|it| it.name == name.1);
            (is_main || !it.grew_each_time())
                && !series.was_moved_within(it)
                && !is_private(recording, &name.1)
        };
        self.names
            .iter()
            .filter(tells)
            .map(|(name, _)| name)
            .collect()
    }

    /// The name is not part of another one, nor that of several which are not one.
    fn tells(&self, (kind, name): &NameKey) -> bool {
        match self.numbered.get(name) {
            Some(numbered) => numbered.are_one(),
            None => !numbered(*kind, name).is_some_and(|all| self.are_one(&all)),
        }
    }

    /// So does a recording say that follows them by one name.
    fn are_one(&self, all: &str) -> bool {
        let is_followed = || {
            let key = (RootKind::Variable, all.to_owned());
            self.names.contains_key(&key)
        };
        let numbered = self.numbered.get(all);
        numbered.map_or_else(is_followed, NumberedName::are_one)
    }

    /// The branches of a variable, by their names.
    fn branches(&self, whole: &str) -> impl Iterator<Item = (&str, &NameSeries)> {
        let names = self.names.range((RootKind::Variable, whole.to_owned())..);
        let names = names.map(|((kind, name), series)| (*kind, &**name, series));
        let alike = names.take_while(move |(kind, name, _)| {
            *kind == RootKind::Variable && name.starts_with(whole)
        });
        let branches = alike
            .filter(move |(_, name, _)| variable_of(name) == whole && name.len() > whole.len());
        branches.map(|(_, name, series)| (name, series))
    }

    fn take_in(&mut self, recording: &Recording, run: RunIdx, look: &DeviceHolders) {
        // What there is at the first look, nobody saw grow.
        let is_first = self.looks.is_empty();
        self.looks.push(run);
        if look.n_bytes == Bytes::ZERO {
            let names: Vec<NameKey> = self.names.keys().cloned().collect();
            for name in names {
                self.push(recording, run, name, (Bytes::ZERO, 0), false);
            }
        }
        for name in self.emptied_branches(look) {
            self.push(recording, run, name, (Bytes::ZERO, 0), is_first);
        }
        for level in &look.changed {
            let name = (level.kind, level.name.clone());
            let level = (level.n_bytes, level.n_storages);
            self.push(recording, run, name, level, is_first);
        }
        for (all, level) in self.numbered_changed(recording, run, look) {
            self.push(recording, run, (RootKind::Variable, all), level, is_first);
        }
    }

    fn push(
        &mut self,
        recording: &Recording,
        run: RunIdx,
        name: NameKey,
        level: (Bytes, u64),
        is_first: bool,
    ) {
        let series = self.names.entry(name.clone()).or_default();
        if series.push(recording, run, level, is_first) {
            self.begun_anew.push((run, name));
        }
    }

    /// What the numbered variables have together of which some changed.
    fn numbered_changed(
        &mut self,
        recording: &Recording,
        run: RunIdx,
        look: &DeviceHolders,
    ) -> BTreeMap<String, (Bytes, u64)> {
        let cell = recording.run(recording.outermost(run)).cell;
        let mut made: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for level in &look.changed {
            let Some(all) = numbered(level.kind, &level.name) else {
                continue;
            };
            let of_all = self.numbered.entry(all.clone()).or_default();
            let made = made.entry(all).or_default();
            let series = &self.names[&(level.kind, level.name.clone())];
            if of_all.names.insert(level.name.clone()) {
                of_all.makers.insert(cell);
                made.push(level.n_storages);
            } else if series.points.last().is_some_and(|last| last.grew) {
                let is_often = series.grown().count() >= MANY_LOOKS;
                of_all.grow_themselves |= is_often || of_all.makers.contains(&cell);
            }
        }
        let sum = |(all, made): (String, Vec<u64>)| {
            let of_all = self.numbered.get_mut(&all)?;
            // What one run fills are collections.
            of_all.grow_themselves |= made.len() > 1 && made.iter().any(|n| *n > 1);
            let of_names = of_all.names.iter().filter_map(|name| {
                let series = self.names.get(&(RootKind::Variable, name.clone()))?;
                series.points.last()
            });
            let level = of_names.fold((Bytes::ZERO, 0), |(n_bytes, n_storages), it| {
                (n_bytes + it.n_bytes, n_storages + it.n_storages)
            });
            Some((all, level))
        };
        made.into_iter().filter_map(sum).collect()
    }

    /// Of objects that changed: what has nothing is not listed.
    fn emptied_branches(&self, look: &DeviceHolders) -> Vec<NameKey> {
        let has = |name: &str| {
            let mut changed = look.changed.iter();
            changed.any(|it| it.kind == RootKind::Variable && it.name == name)
        };
        let names = self.names.iter();
        let left = names.filter(|(name, series)| is_branch(name) && series.now() > Bytes::ZERO);
        left.filter(|((_, name), _)| has(variable_of(name)) && !has(name))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, look, run, session};
    use crate::{Finding, FindingKind, Rules, analyze};
    use gpumem_model::holders::NameLevel;

    /// After each run, one name with this many storages of 1 MiB.
    fn followed(cells: &[(&str, &[Play])], levels_mib: &[u64]) -> Vec<Finding> {
        let (mut recording, _) = session(cells);
        let mut known = 0;
        for (run, level) in recording.runs().to_vec().iter().zip(levels_mib) {
            let n_bytes = Bytes::mib(*level);
            let changed = (n_bytes.get() != known).then_some(("losses", *level, *level));
            known = n_bytes.get();
            let holders = DeviceHolders {
                device: "sim:0".to_owned(),
                n_bytes: n_bytes.max(Bytes::mib(1)),
                changed: changed.into_iter().map(self::level).collect(),
                ..DeviceHolders::default()
            };
            look(&mut recording, run.idx, None, holders);
        }
        analyze(&recording, &Rules::default()).findings
    }

    fn level((name, mib, n_storages): (&str, u64, u64)) -> NameLevel {
        NameLevel {
            kind: RootKind::Variable,
            name: name.to_owned(),
            n_bytes: Bytes::mib(mib),
            n_storages,
        }
    }

    /// The names after looks that found these levels changed.
    fn looked_at<'a>(
        recording: &'a Recording,
        looks: impl IntoIterator<Item = (u32, Vec<(&'a str, u64, u64)>)>,
    ) -> OfDevice {
        let mut names = OfDevice::default();
        for (run, levels) in looks {
            let look = DeviceHolders {
                n_bytes: Bytes::mib(1),
                changed: levels.into_iter().map(level).collect(),
                ..DeviceHolders::default()
            };
            names.take_in(recording, RunIdx(run), &look);
        }
        names
    }

    /// The names that grow by more than a limit in MiB.
    fn growing(recording: &Recording, names: OfDevice, least_mib: u64) -> Vec<String> {
        let names = NameHistory {
            of_devices: vec![names],
        };
        let least = (Bytes::mib(1), Bytes::mib(least_mib));
        let growing = names.growing(recording, DeviceIdx(0), least, None);
        let names = growing.into_iter().flat_map(|it| it.names);
        names.map(|((_, name), _)| name).collect()
    }

    /// After each of these runs of one cell, what an object has, and one of its attributes: MiB.
    fn told_of(text: &str, branch: &str, levels_mib: &[(u64, u64)]) -> Vec<String> {
        let runs = vec![run(1); levels_mib.len()];
        let (recording, _) = session(&[(text, &runs)]);
        let looks = (0..).zip(levels_mib).map(|(run, &(whole, part))| {
            let levels = [("trainer", whole), (branch, part)];
            (run, levels.map(|(name, mib)| (name, mib, mib / 8)).to_vec())
        });
        growing(&recording, looked_at(&recording, looks), 1)
    }

    /// Whether a name with few looks, by MiB and storages after each of a cell's runs, is reported.
    #[track_caller]
    fn check_little(looks: &[(u32, u64, u64)], expected: bool) {
        let (recording, _) = session(&[("kept.append(f(x))", &vec![run(1); 12])]);
        let looks = looks
            .iter()
            .map(|&(run, mib, n)| (run, vec![("kept", mib, n)]));
        let found = growing(&recording, looked_at(&recording, looks), 64);
        assert_eq!(!found.is_empty(), expected, "{found:?}");
    }

    #[test]
    fn little_counts_if_each_run_adds_a_storage() {
        check_little(&[(0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 4, 4)], true);
        // Of some runs there is no look.
        check_little(&[(0, 1, 1), (1, 2, 2), (4, 5, 5), (5, 6, 6)], true);
        check_little(&[(0, 1, 1), (1, 2, 2), (4, 3, 3), (5, 4, 4)], false);
        check_little(&[(0, 1, 1), (1, 2, 2), (2, 2, 1), (3, 3, 3)], false);
        check_little(&[(0, 1, 1), (1, 80, 2), (4, 90, 3), (5, 99, 4)], true);
    }

    #[test]
    fn a_branch_that_grows_alone_or_in_a_shrinking_object_is_named() {
        let n = || 0..12_u64;
        let beside_noise: Vec<(u64, u64)> = n().map(|n| (8 * n + 64 * (n % 3), 8 * n)).collect();
        let alone: Vec<(u64, u64)> = n().map(|n| (96 + 8 * n, 8 * n)).collect();
        let moved: Vec<(u64, u64)> = n().map(|n| (96 - n % 2, 8 * n)).collect();
        let history = |levels| told_of("trainer.fit()", "trainer.history", levels);
        assert_eq!(history(&beside_noise), ["trainer.history"]);
        assert_eq!(history(&alone), ["trainer.history"]);
        assert_eq!(history(&moved), [""; 0]);
        // What a library calls its own is its object, but where a cell has written it.
        let own = |text| told_of(text, "trainer._blocks", &alone);
        assert_eq!(own("trainer.fit()"), ["trainer"]);
        assert_eq!(own("trainer._blocks.append(x)"), ["trainer._blocks"]);
    }

    /// After each run of such a cell, the numbered names that changed, with their MiB.
    #[track_caller]
    fn check_one(looks: &[(&str, &[(&str, u64)])], expected: bool) {
        let run = [run(1)];
        let cells: Vec<(&str, &[Play])> = looks.iter().map(|(cell, _)| (*cell, &run[..])).collect();
        let (recording, _) = session(&cells);
        let looks = (0..).zip(looks).map(|(run, (_, levels))| {
            let levels = levels.iter().map(|&(name, mib)| (name, mib, mib / 8));
            (run, levels.collect())
        });
        let names = looked_at(&recording, looks);
        assert_eq!(names.are_one("b…"), expected);
    }

    #[test]
    fn numbered_names_of_one_cell_are_one_unless_one_grows() {
        let (first, second) = (("b1", 16), ("b2", 16));
        check_one(&[("make()", &[first]), ("make()", &[second])], true);
        check_one(&[("make()", &[first]), ("remake()", &[second])], false);
        check_one(&[("make()", &[first])], false);
        let trained = ("train()", &[("b1", 32)][..]);
        check_one(
            &[("make()", &[first]), trained, ("make()", &[second])],
            true,
        );
        check_one(
            &[("make()", &[first]), ("make()", &[("b1", 32), second])],
            false,
        );
        // Two lists that one run fills.
        check_one(&[("make()", &[first, second])], false);
        check_one(&[("make()", &[("b1", 8), ("b2", 8)])], true);
        // A recording from before names were followed one by one.
        check_one(&[("make()", &[("b…", 8)])], true);
    }

    #[test]
    fn the_branches_that_gained_nearly_all_are_what_grows() {
        let check = |gains: &[(&'static str, i64, usize)], of_object: i64, expected: &[&str]| {
            let gain = |(name, gained, n_grown): &(&'static str, i64, usize)| BranchGain {
                name,
                gained: ByteDelta::new(*gained),
                n_grown: *n_grown,
            };
            let gains = gains.iter().map(gain).collect();
            let main = main_branches(gains, ByteDelta::new(of_object));
            assert_eq!(main.iter().map(|it| it.name).collect::<Vec<_>>(), expected);
        };
        check(&[("a.w", 0, 0), ("a.logs", 100, 9)], 100, &["a.logs"]);
        check(
            &[("a.x", 30, 9), ("a.logs", 70, 9)],
            100,
            &["a.logs", "a.x"],
        );
        check(&[("a.x", 4, 9), ("a.logs", 96, 9)], 100, &["a.logs"]);
        // What grew once is no growth, and what no branch has is the object's.
        check(&[("a.x", 90, 1), ("a.logs", 70, 9)], 160, &["a.logs"]);
        check(&[("a.logs", 70, 9)], 100, &[]);
        check(&[("a.w", -60, 0), ("a.logs", 70, 9)], 10, &["a.logs"]);
    }

    fn rounds<'a>(cells: &[(&'a str, Play)], n: usize) -> Vec<(&'a str, Vec<Play>)> {
        let round = |_| cells.iter().map(|(text, play)| (*text, vec![play.clone()]));
        (0..n).flat_map(round).collect()
    }

    #[track_caller]
    fn check(cells: &[(&str, Vec<Play>)], levels_mib: &[u64], expected: &[&str]) {
        let cells: Vec<(&str, &[Play])> = cells.iter().map(|(text, it)| (*text, &**it)).collect();
        let found = followed(&cells, levels_mib);
        let grow = found.iter().filter(|it| it.kind != FindingKind::Settled);
        let shown: Vec<String> = grow.map(crate::testing::facts).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_name_that_grows_in_the_noise_is_found() {
        let noise = [90, -80, 40, 60, -100, 20, -30, 80, -70, 10, 50, -60];
        let kept: Vec<Play> = noise.into_iter().map(run).collect();
        let mut cells = vec![("losses = []", vec![run(1)])];
        cells.extend(
            kept.into_iter()
                .map(|play| ("losses.append(f())", vec![play])),
        );
        let levels: Vec<u64> = (0..13).map(|n| 8 * n).collect();
        check(
            &cells,
            &levels,
            &[
                "growing: losses.append(f()) · 8 MiB a run in 12 of 12, 96 in all · full in 1899 · losses",
            ],
        );
    }

    #[test]
    fn runs_after_which_a_look_was_missed_do_not_lower_the_rate() {
        let check = |last: [i64; 2], expected: &str| {
            let noise = [90, -80, 40, 60, -100, 20, -30, 80, -70, 10];
            let kept = noise.into_iter().chain(last);
            let mut cells = vec![("losses = []", vec![run(1)])];
            cells.extend(kept.map(|mib| ("losses.append(f())", vec![run(mib)])));
            let levels: Vec<u64> = (0..=10).map(|n| 8 * n).collect();
            check(&cells, &levels, &[expected]);
        };
        check(
            [50, -30],
            "growing: losses.append(f()) · 8 MiB a run in 10 of 10, 80 in all · full in 1902 · losses",
        );
        check(
            [50, -60],
            "growing: losses.append(f()) · 8 MiB a run in 10 of 12, 80 in all · full in 1899 · losses",
        );
    }

    #[test]
    fn a_name_that_is_emptied_begins_anew() {
        let fill = ("losses.append(f())", run(200));
        let empty = ("losses = []", run(-1800));
        let mut cells = vec![("import f", vec![run(1)])];
        for _ in 0..2 {
            cells.extend(rounds(std::slice::from_ref(&fill), 9));
            cells.extend(rounds(std::slice::from_ref(&empty), 1));
        }
        cells.extend(rounds(std::slice::from_ref(&fill), 9));
        let round = |_| (1..=9).map(|n| 200 * n).chain([0]);
        let levels: Vec<u64> = std::iter::once(0).chain((0..3).flat_map(round)).collect();
        let of_third =
            "leak: losses.append(f()) · 200 MiB a run in 9 of 9, 1800 in all · full in 67 · losses";
        check(&cells, &levels, &[of_third]);
    }

    #[test]
    fn what_the_cell_empties_itself_has_a_bound() {
        let mut cells = vec![("import f", vec![run(1)])];
        cells.extend(rounds(&[("window.append(f())", run(200))], 10));
        cells.extend(rounds(&[("window.append(f())", run(-1800))], 1));
        cells.extend(rounds(&[("window.append(f())", run(200))], 9));
        let levels: Vec<u64> = (0..=10).chain(1..=10).map(|n| 200 * n).collect();
        check(&cells, &levels, &[]);
    }
}
