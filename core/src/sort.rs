//! Sorting that is compiled once.
//!
//! The standard library's stable sort is compiled anew for each type and closure, three kilobytes each,
//! and every notebook with a report contains the page's module. Here only indices are sorted, by merging;
//! each type adds just the swap of two of its items.
//!
//! Examples: [`sort_by_key`], [`sort_by()`].

use crate::collect::CollectVec;
use std::cmp::Ordering;

/// Sorts `items` by their keys. Stable: items of equal keys keep their order.
///
/// ```
/// use gpumem_core::sort::sort_by_key;
///
/// let mut words = ["three", "one", "two"];
/// sort_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["one", "two", "three"]);
/// ```
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts `items` with `compare`. Stable: equal items keep their order.
///
/// ```
/// use gpumem_core::sort::sort_by;
///
/// let mut shares = [0.5_f64, 0.25, 1.0];
/// sort_by(&mut shares, |a, b| b.total_cmp(a));
/// assert_eq!(shares, [1.0, 0.5, 0.25]);
/// ```
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted(items.len(), &|a, b| compare(&items[a], &items[b]));
    put(&mut order, &mut |a, b| items.swap(a, b));
}

/// The indices below `n` in the order of `compare`; equal ones in their own order.
pub(crate) fn sorted(n: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect_vec();
    sort_indices(&mut order, compare);
    order
}

/// Sorts indices with `compare`; equal ones keep their order.
///
/// Merges runs of twice the length each time; the standard library's sort is ten times the code.
pub(crate) fn sort_indices(indices: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    if indices.is_sorted_by(|&a, &b| compare(a, b).is_le()) {
        return;
    }
    let mut runs = indices.to_vec();
    let mut length = 1;
    while length < indices.len() {
        for (run, merged) in runs.chunks(2 * length).zip(indices.chunks_mut(2 * length)) {
            let (left, right) = run.split_at(length.min(run.len()));
            merge(left, right, merged, compare);
        }
        runs.copy_from_slice(indices);
        length *= 2;
    }
}

/// Two sorted lists as one, of equal indices those of the left one first.
fn merge<'a>(
    mut left: &'a [usize],
    mut right: &'a [usize],
    merged: &mut [usize],
    compare: &dyn Fn(usize, usize) -> Ordering,
) {
    for place in merged {
        let side = match (left.first(), right.first()) {
            (Some(&a), Some(&b)) if compare(a, b).is_le() => &mut left,
            (_, Some(_)) => &mut right,
            _ => &mut left,
        };
        if let Some((&first, rest)) = side.split_first() {
            *place = first;
            *side = rest;
        }
    }
}

/// Swaps until each item is where `order` wants it: going along each ring of places once.
pub(crate) fn put(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut place = first;
        loop {
            let wanted = std::mem::replace(&mut order[place], place);
            if wanted == first {
                break;
            }
            swap(place, wanted);
            place = wanted;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(keys in prop::collection::vec(0_u8..20, 0..200)) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut items, |(key, _)| *key);
            prop_assert_eq!(items, expected);
        }
    }
}
