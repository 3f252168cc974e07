//! Sorting that is compiled once.
//!
//! The standard library's stable sort is compiled for each type and each closure, three
//! kilobytes each, and every notebook with a report carries the page's module. Here indices
//! are sorted, whatever they stand for; what is left for each type is to swap two of it.

use std::cmp::Ordering;

/// Puts `items` in the order of their keys; those of equal keys stay as they stood.
///
/// ```
/// let mut words = ["three", "one", "two"];
/// gpumem_core::sort::sort_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["one", "two", "three"]);
/// ```
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Puts `items` in the order that `compare` says; equal ones stay as they stood.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if items.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return;
    }
    let mut order = sorted(items.len(), &|a, b| compare(&items[a], &items[b]));
    put(&mut order, &mut |a, b| items.swap(a, b));
}

/// The indices below `n`, in the order that `compare` says; equal ones in their own.
pub fn sorted(n: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    sort_indices(&mut order, compare);
    order
}

/// Puts indices in the order that `compare` says; equal ones stay as they stood.
pub(crate) fn sort_indices(indices: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    indices.sort_by(|a, b| compare(*a, *b));
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
        fn it_sorts_as_the_standard_library_does(keys in prop::collection::vec(0_u8..20, 0..60)) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut items, |(key, _)| *key);
            prop_assert_eq!(items, expected);
        }
    }
}
