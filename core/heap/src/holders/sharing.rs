//! What several names hold together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use gpumem_model::holders::{Holder, Remainder, SharedMemory, Traits};
use gpumem_model::units::{ByteDelta, Bytes};

use super::{Top, filler, most};
use crate::csr_graph::SESSION;
use crate::heap_analysis::HeapAnalysis;
use crate::inventory::Grown;
use crate::retained_size::{RetainedSize, SizedStorage};
use crate::shared::Sharers;
use crate::{HolderLimits, path, words};

impl HeapAnalysis<'_> {
    pub(super) fn shared(
        &self,
        tallies: &[RetainedSize],
        tops: &HashMap<u32, Top>,
        limits: &HolderLimits,
    ) -> (Vec<SharedMemory>, Remainder) {
        let mut groups: BTreeMap<&Sharers, Vec<u32>> = BTreeMap::new();
        for (number, sharers) in &self.sharers {
            if tallies[*number as usize].n_bytes > 0 {
                groups.entry(sharers).or_default().push(*number);
            }
        }
        let mut groups: Vec<(&Sharers, Vec<u32>, RetainedSize)> = groups
            .into_iter()
            .map(|(sharers, numbers)| {
                let mut sum = RetainedSize::default();
                for number in &numbers {
                    sum.add(&tallies[*number as usize]);
                }
                (sharers, numbers, sum)
            })
            .collect();
        groups.sort_by_key(|(_, _, sum)| Reverse(sum.n_bytes));
        let mut more = Remainder::default();
        for (_, _, sum) in groups.drain(limits.n_shared.min(groups.len())..) {
            more.add(1, sum.n_bytes);
        }
        let shared = groups.iter().map(|(sharers, numbers, sum)| {
            let tops = || numbers.iter().filter_map(|number| tops.get(number));
            let stored = tops().map(|top| &top.largest);
            let stored = stored.max_by_key(|it| (it.n_bytes, Reverse(it.number)));
            let vertex = stored.map_or(SESSION, |it| self.vertex(it.number));
            let names = sharers.roots.iter();
            let names = names.filter_map(|root| Some(self.web.name_of(*root)?.name.to_owned()));
            SharedMemory {
                names: names.collect(),
                and_others: sharers.and_others,
                n_bytes: Bytes::new(sum.n_bytes),
                path: path::text(&self.web, &self.reach, SESSION, vertex),
                what: self.numbers_words(numbers, sum),
                part: most(tops()),
            }
        });
        (shared.collect(), more)
    }

    /// The names that have more than before, and keep none of it alone: each with what is found
    /// through it first.
    pub(super) fn sharing(
        &self,
        device: u16,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        grown: Option<&Grown<'_>>,
    ) -> Vec<Holder> {
        let keeps_nothing = |root: u32| tallies[self.dominators.number(root) as usize].n_bytes == 0;
        let stored = self.storages_on(device);
        let stored = stored.filter(|it| keeps_nothing(it.root));
        let mut by_root: BTreeMap<u32, Vec<&SizedStorage>> = BTreeMap::new();
        for stored in stored {
            by_root.entry(stored.root).or_default().push(stored);
        }
        let mut sharing: Vec<Holder> = by_root
            .into_iter()
            .filter_map(|(root, stored)| {
                let name = self.web.name_of(root)?;
                let more = grown?.growth(name.kind, name.name)?;
                (more > ByteDelta::ZERO).then(|| {
                    let holder = self.sharer(root, &stored, tallies);
                    Holder {
                        grown: Some(more),
                        fresh: grown.and_then(|grown| grown.fresh_of(name.kind, name.name)),
                        ..holder
                    }
                })
            })
            .collect();
        sharing.sort_by_key(|holder| Reverse(holder.grown));
        sharing.truncate(limits.n_shared);
        sharing
    }

    /// A name with these storages, each of which has other names, too.
    fn sharer(&self, root: u32, stored: &[&SizedStorage], tallies: &[RetainedSize]) -> Holder {
        let name = &self.web.names[root as usize - 1];
        let largest = stored
            .iter()
            .max_by_key(|it| (it.n_bytes, Reverse(it.number)));
        let largest = largest.map_or(0, |it| it.number);
        let tops: BTreeSet<u32> = stored
            .iter()
            .map(|it| self.tops[it.number as usize])
            .collect();
        let mut tally = RetainedSize::default();
        for top in tops {
            tally.add(&tallies[top as usize]);
        }
        let target = self.target(root);
        let what = match target {
            Some(idx) => words::object(self.web.graph.node(idx), &tally),
            None => words::container(None, &tally),
        };
        let vertex = self.vertex(largest);
        let others = self.others(root, self.tops[largest as usize]);
        Holder {
            path: path::text(&self.web, &self.reach, SESSION, vertex),
            what: format!("{what}, shared with {others}"),
            traits: Traits {
                is_shared: true,
                filled_by: filler(name),
                ..self.traits(target, &tally, vertex, None)
            },
            ..Holder::new(
                name.kind,
                name.name,
                stored.iter().map(|it| Bytes::new(it.n_bytes)).sum(),
            )
        }
    }

    /// The other names of a top.
    fn others(&self, root: u32, top: u32) -> String {
        let sharers = self.sharers.iter().find(|(number, _)| *number == top);
        let Some((_, sharers)) = sharers else {
            return "others".to_owned();
        };
        let others = sharers.roots.iter().filter(|other| **other != root);
        let others = others.filter_map(|other| Some(self.web.name_of(*other)?.name));
        let others = others.chain(sharers.and_others.then_some("others"));
        others.collect::<Vec<_>>().join(", ")
    }

    /// What several things are: one as itself, more by what they hold.
    fn numbers_words(&self, numbers: &[u32], sum: &RetainedSize) -> String {
        let one = match numbers {
            [number] => self.web.object(self.vertex(*number)),
            _ => None,
        };
        match one.filter(|node| node.storage.is_none()) {
            Some(node) => words::object(node, sum),
            None => words::container(None, sum),
        }
    }
}
