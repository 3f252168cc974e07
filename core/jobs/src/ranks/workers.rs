//! The workers of a cluster: ranks that have names, come and go.

use std::collections::BTreeSet;

use super::{Rank, RankRow};

/// How many workers there are, each counted once; `None` of a job that has none.
pub(super) fn count(job: &[Rank]) -> Option<usize> {
    let names = job.iter().filter_map(Rank::worker);
    let names: BTreeSet<&str> = names.collect();
    (!names.is_empty()).then_some(names.len())
}

/// Of each rank that is a worker, its place in the order of names, and what it is called. Of one that was
/// started anew the later starts are counted: `3 (2)`.
fn names(job: &[Rank]) -> Vec<Option<(u32, String)>> {
    let mut order: Vec<usize> = (0..job.len()).collect();
    let key = |idx: &usize| {
        let name = job[*idx].worker()?;
        Some((
            name.parse::<u64>().ok().is_none(),
            name.len(),
            name,
            job[*idx].span().0,
        ))
    };
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut names = vec![None; job.len()];
    let (mut last, mut n_starts) = (None, 0);
    for (number, idx) in (0..).zip(order) {
        let Some(name) = job[idx].worker() else {
            continue;
        };
        n_starts = if last == Some(name) { n_starts + 1 } else { 1 };
        last = Some(name);
        // Without a name of its own a worker is called by its address.
        let short = name.split_once("://").map_or(name, |(_, address)| address);
        let called = match n_starts {
            1 => short.to_owned(),
            n => format!("{short} ({n})"),
        };
        names[idx] = Some((number, called));
    }
    names
}

/// Numbers workers by their names.
pub(super) fn name(rows: &mut [RankRow], job: &[Rank]) {
    let names = names(job);
    for row in rows {
        if let Some((number, name)) = &names[row.rank] {
            row.number = *number;
            row.name = Some(name.clone());
        }
    }
}
