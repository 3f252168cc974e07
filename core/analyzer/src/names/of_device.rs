//! The names of one device, and those that are one although they are numbered.

use std::collections::{BTreeMap, BTreeSet};

use gpumem_model::holders::{DeviceHolders, RootKind, variable_of};
use gpumem_model::recording::{CellIdx, Recording, RunIdx};
use gpumem_model::units::Bytes;

use super::branch::{BranchGain, is_attribute, is_branch, is_private, main_branches};
use super::name_series::NameSeries;
use super::{MANY_LOOKS, NameKey};

#[derive(Debug, Default)]
pub(super) struct OfDevice {
    pub(super) looks: Vec<RunIdx>,
    pub(super) names: BTreeMap<NameKey, NameSeries>,
    /// Variables whose names differ by the number at their end, by the name that they may have together.
    pub(super) numbered: BTreeMap<String, NumberedName>,
    /// The names that began anew, by the run after which that was seen; not those that their cell emptied.
    pub(super) begun_anew: Vec<(RunIdx, NameKey)>,
}

impl OfDevice {
    /// The branches to report instead of their objects: those with nearly all of the objects' growth.
    /// Objects may also lose, from look to look, what they replace or drop elsewhere.
    pub(super) fn telling_branches(&self, recording: &Recording, least: Bytes) -> Vec<&NameKey> {
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
    pub(super) fn tells(&self, (kind, name): &NameKey) -> bool {
        match self.numbered.get(name) {
            Some(numbered) => numbered.are_one(),
            None => !numbered(*kind, name).is_some_and(|all| self.are_one(&all)),
        }
    }

    /// So does a recording say that follows them by one name.
    pub(super) fn are_one(&self, all: &str) -> bool {
        let is_followed = || {
            let key = (RootKind::Variable, all.to_owned());
            self.names.contains_key(&key)
        };
        let numbered = self.numbered.get(all);
        numbered.map_or_else(is_followed, NumberedName::are_one)
    }

    /// The branches of a variable, by their names.
    pub(super) fn branches(&self, whole: &str) -> impl Iterator<Item = (&str, &NameSeries)> {
        let names = self.names.range((RootKind::Variable, whole.to_owned())..);
        let names = names.map(|((kind, name), series)| (*kind, &**name, series));
        let alike = names.take_while(move |(kind, name, _)| {
            *kind == RootKind::Variable && name.starts_with(whole)
        });
        let branches = alike
            .filter(move |(_, name, _)| variable_of(name) == whole && name.len() > whole.len());
        branches.map(|(_, name, series)| (name, series))
    }

    pub(super) fn take_in(&mut self, recording: &Recording, run: RunIdx, look: &DeviceHolders) {
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

    pub(super) fn push(
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

/// `model_1`, `model_2`, …: one name if runs of one cell make them, and none grows by itself.
#[derive(Debug, Default)]
pub(super) struct NumberedName {
    names: BTreeSet<String>,
    /// The cells that made them.
    makers: BTreeSet<CellIdx>,
    grow_themselves: bool,
}

impl NumberedName {
    pub(super) fn are_one(&self) -> bool {
        self.names.len() > 1 && self.makers.len() == 1 && !self.grow_themselves
    }
}

/// The name that a numbered variable may have together with others: `model_…` of `model_7`.
pub(super) fn numbered(kind: RootKind, name: &str) -> Option<String> {
    let first = name.split(" … ").next().unwrap_or_default();
    let stem = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = !stem.is_empty() && stem.len() < first.len() && !name.contains(['.', '[']);
    (kind == RootKind::Variable && is_numbered).then(|| format!("{stem}…"))
}
