//! Which names have more or less than at the last search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use gpumem_model::holders::{Holder, NameLevel, RootKind};
use gpumem_model::units::Bytes;

use crate::HolderLimits;
use crate::heap_analysis::HeapAnalysis;
use crate::inventory::{Grown, SeriesName};
use crate::retained_size::RetainedSize;

impl HeapAnalysis<'_> {
    /// The names that have more or less than before, those that changed most first; and which of their branches
    /// have something new.
    pub(super) fn changed(
        &self,
        device: u16,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> (Vec<NameLevel>, Vec<Holder>) {
        let mut levels: BTreeMap<SeriesName<'_>, (u64, u64)> = BTreeMap::new();
        let before = grown.map(Grown::names_before).unwrap_or_default();
        // A walk that stopped early does not know what is gone.
        if !self.web.graph.is_cut {
            levels.extend(before.keys().map(|name| (name.clone(), (0, 0))));
        }
        for stored in self.storages_on(device) {
            if let Some(name) = self.web.name_of(stored.root) {
                let key = (name.kind, name.kind.series_name(name.name));
                let (n_bytes, n_storages) = levels.entry(key).or_default();
                *n_bytes += stored.n_bytes;
                *n_storages += 1;
            }
        }
        let mut changed: Vec<(u64, NameLevel)> = levels
            .into_iter()
            .filter(|((kind, _), _)| grown.is_none_or(|grown| grown.knows(*kind)))
            .filter_map(|((kind, name), (n_bytes, n_storages))| {
                let key = (kind, name);
                let before = before.get(&key).map_or(0, |it| it.get());
                let level = NameLevel {
                    kind,
                    name: key.1.into_owned(),
                    n_bytes: Bytes::new(n_bytes),
                    n_storages,
                };
                (n_bytes != before).then(|| (n_bytes.abs_diff(before), level))
            })
            .collect();
        changed.sort_by_key(|(by, _)| Reverse(*by));
        changed.truncate(limits.n_changed);
        let mut changed: Vec<NameLevel> = changed.into_iter().map(|(_, level)| level).collect();
        let variables = changed.iter().filter(|it| it.kind == RootKind::Variable);
        let names: BTreeSet<&str> = variables.map(|it| &*it.name).collect();
        let (levels, growing) = self.main_branches(device, &names, tallies, limits, grown);
        changed.extend(levels);
        (changed, growing)
    }
}
