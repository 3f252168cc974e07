//! A small map, in the order of its keys.

/// No list is longer: a key that comes late moves no more entries than these.
const MOST: usize = 128;

/// Entries in the order of their keys, in short lists.
///
/// For what has few entries, or gets them nearly in order: a search tree is six kilobytes of
/// code for each type, in a module that every notebook with a report carries. A file may hold
/// them in the worst order; then so many short lists are filled, not one long one moved each time.
#[derive(Debug, Clone)]
pub(crate) struct Sorted<K, V>(Vec<Vec<(K, V)>>);

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Where an entry is: its list, and its place there.
type Place = (usize, usize);

impl<K: Ord, V> Sorted<K, V> {
    fn place(&self, key: &K) -> Result<Place, Place> {
        let begun = self.0.partition_point(|list| list[0].0 <= *key);
        let list_idx = begun.saturating_sub(1);
        let Some(list) = self.0.get(list_idx) else {
            return Err((0, 0));
        };
        let found = list.binary_search_by(|(it, _)| it.cmp(key));
        found
            .map(|idx| (list_idx, idx))
            .map_err(|idx| (list_idx, idx))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (list_idx, idx) = self.place(key).ok()?;
        Some(&self.0[list_idx][idx].1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        Some(self.at(place))
    }

    /// Puts `value` in the place of what was there, which it returns.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(self.at(place), value)),
            Err(place) => {
                self.put(place, (key, value));
                None
            }
        }
    }

    /// What is there; the default where nothing was.
    pub(crate) fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let place = self.place(&key);
        let place = place.unwrap_or_else(|place| self.put(place, (key, V::default())));
        self.at(place)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (list_idx, idx) = self.place(key).ok()?;
        let (_, value) = self.0[list_idx].remove(idx);
        if self.0[list_idx].is_empty() {
            self.0.remove(list_idx);
        }
        Some(value)
    }

    /// Those whose keys are below `key`.
    pub(crate) fn below<'a>(
        &'a self,
        key: &K,
    ) -> impl DoubleEndedIterator<Item = &'a (K, V)> + use<'a, K, V> {
        let (list_idx, idx) = self.place(key).unwrap_or_else(|place| place);
        let last = self.0.get(list_idx).map_or(&[][..], |list| &list[..idx]);
        self.0[..list_idx].iter().flatten().chain(last)
    }

    /// The same, for their values to be changed.
    pub(crate) fn below_mut<'a>(
        &'a mut self,
        key: &K,
    ) -> impl DoubleEndedIterator<Item = &'a mut (K, V)> + use<'a, K, V> {
        let (list_idx, idx) = self.place(key).unwrap_or_else(|place| place);
        let (before, rest) = self.0.split_at_mut(list_idx);
        let last = rest
            .first_mut()
            .map_or(&mut [][..], |list| &mut list[..idx]);
        before.iter_mut().flatten().chain(last)
    }

    /// Those whose keys are `key` or above.
    pub(crate) fn from<'a>(
        &'a self,
        key: &K,
    ) -> impl DoubleEndedIterator<Item = &'a (K, V)> + use<'a, K, V> {
        let (list_idx, idx) = self.place(key).unwrap_or_else(|place| place);
        let first = self.0.get(list_idx).map_or(&[][..], |list| &list[idx..]);
        let after = self.0.get(list_idx + 1..).unwrap_or_default();
        first.iter().chain(after.iter().flatten())
    }

    /// Those whose keys are `from` or above, and below `to`, which is above `from`.
    pub(crate) fn range<'a>(
        &'a self,
        from: &K,
        to: &K,
    ) -> impl DoubleEndedIterator<Item = &'a (K, V)> + use<'a, K, V> {
        let place = |key: &K| self.place(key).unwrap_or_else(|place| place);
        let ((first, start), (last, end)) = (place(from), place(to));
        let lists = self.0.get(first..=last).unwrap_or_default();
        lists.iter().enumerate().flat_map(move |(idx, list)| {
            let start = if idx == 0 { start } else { 0 };
            let end = if first + idx == last { end } else { list.len() };
            &list[start..end]
        })
    }

    fn at(&mut self, (list_idx, idx): Place) -> &mut V {
        &mut self.0[list_idx][idx].1
    }

    /// Puts an entry where its key belongs, and says where that is now.
    fn put(&mut self, (list_idx, idx): Place, entry: (K, V)) -> Place {
        let Some(list) = self.0.get_mut(list_idx) else {
            self.0.push(vec![entry]);
            return (list_idx, 0);
        };
        if list.len() < MOST {
            list.insert(idx, entry);
            return (list_idx, idx);
        }
        // Keys that come in order fill one list after the other.
        let n_kept = if idx == MOST { MOST } else { MOST / 2 };
        let mut rest = list.split_off(n_kept);
        let place = if idx < n_kept {
            list.insert(idx, entry);
            (list_idx, idx)
        } else {
            rest.insert(idx - n_kept, entry);
            (list_idx + 1, idx - n_kept)
        };
        self.0.insert(list_idx + 1, rest);
        place
    }
}

impl<K, V> Sorted<K, V> {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &(K, V)> {
        self.0.iter().flatten()
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_iter().flatten().map(|(_, value)| value)
    }
}

/// Which lists the entries are in depends on how they came.
impl<K: PartialEq, V: PartialEq> PartialEq for Sorted<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for Sorted<K, V> {}

impl<K: Ord, V> FromIterator<(K, V)> for Sorted<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut sorted = Self::default();
        for (key, value) in entries {
            sorted.insert(key, value);
        }
        sorted
    }
}

impl<K, V> IntoIterator for Sorted<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<(K, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_map_that_a_tree_would_be(entries in prop::collection::vec((0_u16..2000, any::<u16>()), 0..600)) {
            let mut sorted = Sorted::default();
            let mut tree = BTreeMap::new();
            for (key, value) in &entries {
                prop_assert_eq!(sorted.insert(*key, *value), tree.insert(*key, *value));
                *sorted.entry(value % 2000) ^= key;
                *tree.entry(value % 2000).or_default() ^= key;
                prop_assert_eq!(sorted.get(key), tree.get(key));
                prop_assert_eq!(sorted.get_mut(value), tree.get_mut(value));
            }
            for (key, _) in &entries {
                let same = |(sorted, tree): (&(u16, u16), (&u16, &u16))| (&sorted.0, &sorted.1) == tree;
                prop_assert_eq!(sorted.below(key).count(), tree.range(..key).count());
                prop_assert!(sorted.below(key).zip(tree.range(..key)).all(same));
                prop_assert_eq!(sorted.from(key).count(), tree.range(key..).count());
                prop_assert!(sorted.from(key).zip(tree.range(key..)).all(same));
                let to = key + 700;
                prop_assert!(sorted.range(key, &to).map(|it| it.0).eq(tree.range(key..&to).map(|it| *it.0)));
                prop_assert!(sorted.below_mut(key).rev().map(|it| it.0).eq(tree.range(..key).rev().map(|it| *it.0)));
            }
            for (key, value) in entries.into_iter().filter(|(key, _)| key % 3 > 0) {
                prop_assert_eq!(sorted.remove(&key), tree.remove(&key));
                prop_assert_eq!(sorted.remove(&value), tree.remove(&value));
            }
            prop_assert_eq!(&tree.clone().into_iter().collect::<Sorted<_, _>>(), &sorted);
            prop_assert!(sorted.into_iter().eq(tree));
        }
    }

    #[test]
    fn no_order_of_keys_moves_many_entries() {
        let forth: Vec<u32> = (0..10_000).collect();
        let back: Vec<u32> = forth.iter().rev().copied().collect();
        let inwards: Vec<u32> = (0..5000).flat_map(|key| [key, 9999 - key]).collect();
        for keys in [forth, back, inwards] {
            let sorted: Sorted<u32, ()> = keys.into_iter().map(|key| (key, ())).collect();
            assert!(sorted.0.iter().all(|list| (1..=MOST).contains(&list.len())));
            assert!(
                sorted.0.len() <= 2 * 10_000 / MOST + 1,
                "{} lists",
                sorted.0.len()
            );
        }
    }
}
