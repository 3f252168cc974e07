//! What each name has of a device's memory, look by look, and which of them have more and more.
//!
//! What runs of one cell keep is judged elsewhere. Here a name is followed, whichever cell adds to it and
//! however often that is edited. A name that is emptied begins anew: it is its **episode** that grows.

mod branch;
mod growing_names;
mod name_series;
mod of_device;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use gpumem_model::holders::{DeviceHolders, Holder, RootKind, variable_of};
use gpumem_model::recording::{CellIdx, DeviceIdx, Recording, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes};

use branch::WORTH_NAMING;
pub(super) use branch::{BranchGain, is_attribute, is_branch, is_private, main_branches};
pub(super) use growing_names::GrowingNames;
use name_series::{EMPTIED, NamePoint, NameSeries};
use of_device::{OfDevice, numbered};

/// A name that grew at this many looks, whichever cell did that, grows by itself.
const MANY_LOOKS: usize = 3;

/// A name as it is followed: [`NameHistory::key`].
pub(super) type NameKey = (RootKind, String);

/// What the looks of a recording say of each name.
#[derive(Debug, Default)]
pub(super) struct NameHistory {
    of_devices: Vec<OfDevice>,
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
