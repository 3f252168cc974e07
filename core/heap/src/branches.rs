//! What a holder holds: its children in the dominator tree, those alike in one line.

use std::collections::HashMap;

use super::heap_analysis::HeapAnalysis;
use super::node::TensorCategory;
use super::path;
use super::retained_size::{RetainedSize, counted};
use super::{HolderLimits, words};
use gpumem_model::holders::{HolderBranch, Remainder};

/// Branches are nested at most this deep, because listing them is recursive.
pub(super) const MAX_DEPTH: usize = 100;
/// At most this many kinds of children are distinguished.
const MAX_GROUPS: usize = 64;

/// Similar children, in the order found.
struct BranchGroup {
    first: u32,
    last: u32,
    n: u64,
    tally: RetainedSize,
}

impl HeapAnalysis<'_> {
    /// What `number` holds, the largest first, and the rest.
    pub(super) fn branches(
        &self,
        number: u32,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        depth: usize,
    ) -> (Vec<HolderBranch>, Remainder) {
        if depth == 0 {
            return (Vec::new(), Remainder::default());
        }
        let (mut groups, mut more) = self.groups(number, tallies);
        groups.sort_by_key(|group| (std::cmp::Reverse(group.tally.n_bytes), group.first));
        for group in groups.drain(limits.n_branches.min(groups.len())..) {
            more.add(group.n, group.tally.n_bytes);
        }
        let branches = groups
            .iter()
            .map(|group| self.branch(number, group, tallies, limits, depth))
            .collect();
        (branches, more)
    }

    fn branch(
        &self,
        above: u32,
        group: &BranchGroup,
        tallies: &[RetainedSize],
        limits: &HolderLimits,
        depth: usize,
    ) -> HolderBranch {
        let step = |number: u32| {
            let (above, vertex) = (self.vertex(above), self.vertex(number));
            path::text(&self.web, &self.reach, above, vertex)
        };
        let first = step(group.first);
        let (step, (branches, more)) = match group.n {
            1 => {
                let held = self.branches(group.first, tallies, limits, depth - 1);
                (first, held)
            }
            n => {
                let between = if n == 2 { ", " } else { " … " };
                let last = step(group.last);
                let step = format!("{first}{between}{last}");
                (step, (Vec::new(), Remainder::default()))
            }
        };
        HolderBranch {
            step,
            what: self.group_words(group),
            n: group.n,
            n_bytes: gpumem_model::units::Bytes::new(group.tally.n_bytes),
            branches,
            more,
        }
    }

    /// The children of `number` that retain something, similar ones together.
    fn groups(&self, number: u32, tallies: &[RetainedSize]) -> (Vec<BranchGroup>, Remainder) {
        let mut groups: Vec<BranchGroup> = Vec::new();
        let mut known: HashMap<BranchKind<'_>, usize> = HashMap::new();
        let mut more = Remainder::default();
        let mut open: Vec<u32> = self.children.get(number).iter().rev().copied().collect();
        while let Some(child) = open.pop() {
            let n_bytes = tallies[child as usize].n_bytes;
            if n_bytes == 0 {
                continue;
            }
            if self.is_passed_through(child) {
                open.extend(self.children.get(child).iter().rev());
                continue;
            }
            let kind = self.kind(child, tallies);
            let place = match known.get(&kind) {
                Some(place) => *place,
                None if groups.len() == MAX_GROUPS => {
                    more.add(1, n_bytes);
                    continue;
                }
                None => {
                    known.insert(kind, groups.len());
                    groups.push(BranchGroup::new(child));
                    groups.len() - 1
                }
            };
            groups[place].take_in(child, &tallies[child as usize]);
        }
        (groups, more)
    }

    /// A reader does not meet it: an instance's `__dict__`.
    fn is_passed_through(&self, number: u32) -> bool {
        let vertex = self.vertex(number);
        let node = self.web.object(vertex);
        let is_plain = node.is_some_and(|node| node.storage.is_none() && counted(node).is_none());
        is_plain && path::is_within(&self.web, self.reach.link(vertex))
    }

    fn kind(&self, number: u32, tallies: &[RetainedSize]) -> BranchKind<'_> {
        let node = self.web.object(self.vertex(number));
        BranchKind {
            type_name: node.map_or("", |node| &node.type_name),
            category: node.and_then(|node| node.category),
            with_graph: tallies[number as usize].graph > 0,
        }
    }

    fn group_words(&self, group: &BranchGroup) -> String {
        let node = self.web.object(self.vertex(group.first));
        match node.filter(|node| node.storage.is_none()) {
            Some(node) if group.n == 1 => words::object(node, &group.tally),
            Some(node) if counted(node).is_none() => {
                let alike = format!("{} of type {}", group.n, node.type_name);
                match words::held(&group.tally) {
                    Some(held) => format!("{alike}, {held}"),
                    None => alike,
                }
            }
            _ => words::container(None, &group.tally),
        }
    }
}

/// What makes children alike.
#[derive(PartialEq, Eq, Hash)]
struct BranchKind<'a> {
    type_name: &'a str,
    category: Option<TensorCategory>,
    with_graph: bool,
}

impl BranchGroup {
    fn new(first: u32) -> Self {
        Self {
            first,
            last: first,
            n: 0,
            tally: RetainedSize::default(),
        }
    }

    fn take_in(&mut self, number: u32, tally: &RetainedSize) {
        self.last = number;
        self.n += 1;
        self.tally.add(tally);
    }
}
