//! The integer at a rank, without sorting the others.
//!
//! The standard library's selection is four kilobytes of the page's module; this is a tenth of that, and as
//! fast on numbers in no order.

/// Puts the key of that rank in its place, those that are no higher before it, and those that are no lower
/// behind it; returns it.
///
/// # Panics
///
/// If there are not so many keys.
pub(crate) fn select(keys: &mut [i64], rank: usize) -> i64 {
    let (mut from, mut to) = (0, keys.len());
    // No order of the keys makes all pivots bad ones.
    let mut seed = 1_u64;
    while to - from > 1 {
        let part = &mut keys[from..to];
        let mut any = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            part[(seed >> 33) as usize % part.len()]
        };
        let (a, b, c) = (any(), any(), any());
        let pivot = a.min(b).max(a.max(b).min(c));
        let n_lower = partition(part, |key| key < pivot);
        if rank < from + n_lower {
            to = from + n_lower;
        } else if n_lower > 0 {
            from += n_lower;
        } else {
            from += partition(part, |key| key <= pivot);
            if rank < from {
                break;
            }
        }
    }
    keys[rank]
}

/// Puts the keys of which this is true before the others, and returns how many they are. It has no branch that
/// a processor could foresee wrongly.
fn partition(keys: &mut [i64], is_first: impl Fn(i64) -> bool) -> usize {
    let mut n_first = 0;
    for idx in 0..keys.len() {
        let key = keys[idx];
        keys.swap(n_first, idx);
        n_first += usize::from(is_first(key));
    }
    n_first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_one_that_sorting_puts_there(
            mut keys in prop::collection::vec(-9_i64..9, 1..200),
            rank in any::<prop::sample::Index>(),
        ) {
            let rank = rank.index(keys.len());
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            prop_assert_eq!(select(&mut keys, rank), sorted[rank]);
            prop_assert!(keys[..rank].iter().all(|key| *key <= sorted[rank]));
            prop_assert!(keys[rank..].iter().all(|key| *key >= sorted[rank]));
            keys.sort_unstable();
            prop_assert_eq!(keys, sorted);
        }
    }
}
