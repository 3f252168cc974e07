//! A small map, in the order of its keys.

use std::slice::{Iter, IterMut};

/// Entries in the order of their keys, in one list.
///
/// For what has few entries, or gets them nearly in order: a search tree is six kilobytes of
/// code for each type, in a module that every notebook with a report carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sorted<K, V>(Vec<(K, V)>);

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> Sorted<K, V> {
    fn place(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(it, _)| it.cmp(key))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.place(key).ok().map(|idx| &self.0[idx].1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.place(key).ok().map(|idx| &mut self.0[idx].1)
    }

    /// Puts `value` in the place of what was there, which it returns.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(idx) => Some(std::mem::replace(&mut self.0[idx].1, value)),
            Err(idx) => {
                self.0.insert(idx, (key, value));
                None
            }
        }
    }

    /// What is there; the default where nothing was.
    pub(crate) fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let idx = self.place(&key).unwrap_or_else(|idx| {
            self.0.insert(idx, (key, V::default()));
            idx
        });
        &mut self.0[idx].1
    }

    /// Those whose keys are below `key`.
    pub(crate) fn below(&self, key: &K) -> &[(K, V)] {
        &self.0[..self.0.partition_point(|(it, _)| it < key)]
    }

    /// The same, for their values to be changed.
    pub(crate) fn below_mut<'a>(&'a mut self, key: &K) -> IterMut<'a, (K, V)> {
        let n_below = self.below(key).len();
        self.0[..n_below].iter_mut()
    }

    /// Those whose keys are `key` or above.
    pub(crate) fn from(&self, key: &K) -> &[(K, V)] {
        &self.0[self.below(key).len()..]
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.0.retain(|(key, _)| is_kept(key));
    }

    pub(crate) fn iter(&self) -> Iter<'_, (K, V)> {
        self.0.iter()
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_iter().map(|(_, value)| value)
    }
}

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
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_map_that_a_tree_would_be(entries in prop::collection::vec((0_u8..20, any::<u8>()), 0..60)) {
            let mut sorted = Sorted::default();
            let mut tree = BTreeMap::new();
            for (key, value) in entries {
                prop_assert_eq!(sorted.insert(key, value), tree.insert(key, value));
                *sorted.entry(value % 20) ^= key;
                *tree.entry(value % 20).or_default() ^= key;
                prop_assert_eq!(sorted.get(&key), tree.get(&key));
                prop_assert_eq!(sorted.get_mut(&value), tree.get_mut(&value));
            }
            for key in 0..21 {
                let is_same = |(sorted, tree): (&(u8, u8), (&u8, &u8))| (&sorted.0, &sorted.1) == tree;
                prop_assert_eq!(sorted.below(&key).len(), tree.range(..key).count());
                prop_assert!(sorted.below(&key).iter().zip(tree.range(..key)).all(is_same));
                prop_assert!(sorted.from(&key).iter().zip(tree.range(key..)).all(is_same));
            }
            sorted.retain(|key| key % 3 > 0);
            tree.retain(|key, _| key % 3 > 0);
            prop_assert_eq!(&tree.clone().into_iter().collect::<Sorted<_, _>>(), &sorted);
            prop_assert!(sorted.into_iter().eq(tree));
        }
    }
}
