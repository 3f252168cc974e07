//! Which names together retain what none of them retains alone.

use super::csr_graph::CsrGraph;
use super::dominators::Dominators;
use super::number_lists::NumberLists;

/// How many of the names are listed.
const N_NAMES: usize = 3;

/// The first few roots, by their vertices, that reach the same thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sharers {
    pub(super) roots: Vec<u32>,
    pub(super) and_others: bool,
}

/// For each number right below the session that is no root: who shares it.
///
/// Such a vertex is entered from under several others of its kind; an edge to
/// any other vertex stays under one of them. So only edges to these count, and
/// each root is led on along them until what is reached knows it, or enough.
pub(super) fn sharers(
    web: &CsrGraph<'_>,
    dominators: &Dominators,
    tops: &[u32],
) -> Vec<(u32, Sharers)> {
    let n = tops.len() as u32;
    let is_root = |number: u32| web.name_of(dominators.vertices[number as usize]).is_some();
    let shared: Vec<u32> = (1..n)
        .filter(|number| dominators.above[*number as usize] == 0 && !is_root(*number))
        .collect();
    if shared.is_empty() {
        return Vec::new();
    }
    let entries = || {
        shared.iter().flat_map(|number| {
            let holders = dominators.holders(*number).iter();
            holders.map(|holder| (tops[*holder as usize], *number))
        })
    };
    let below = NumberLists::new(tops.len(), entries);
    let mut sharers: Vec<(u32, Sharers)> = shared
        .iter()
        .map(|number| (*number, Sharers::default()))
        .collect();
    for root in 1..=web.unnamed() {
        let mut open = below.get(dominators.number(root)).to_vec();
        while let Some(number) = open.pop() {
            let place = shared.binary_search(&number).expect("it was listed");
            if sharers[place].1.takes_in(root) {
                open.extend(below.get(number));
            }
        }
    }
    sharers
}

impl Sharers {
    /// Whether that says something new.
    fn takes_in(&mut self, root: u32) -> bool {
        if self.roots.last() == Some(&root) || self.and_others {
            return false;
        }
        if self.roots.len() < N_NAMES {
            self.roots.push(root);
        } else {
            self.and_others = true;
        }
        true
    }
}
