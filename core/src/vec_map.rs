//! A small map, in the order of its keys.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::sort;

/// Entries in the order of their keys.
///
/// For what has few entries, or gets them nearly in order: a search tree is six kilobytes of
/// code for each type, in a module that every notebook with a report carries. Here only what
/// touches an entry is compiled for each type.
#[derive(Debug, Clone)]
pub(crate) struct VecMap<K, V> {
    /// As they came, but for those that took the room of what was removed.
    entries: Vec<(K, V)>,
    order: Order,
}

impl<K, V> Default for VecMap<K, V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            order: Order::default(),
        }
    }
}

impl<K: Ord, V> VecMap<K, V> {
    /// The index of an entry, or where it belongs in the order.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, Place>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key)?;
        Ok(*self.order.at(place))
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Place, Place>
    where
        K: Borrow<Q>,
    {
        self.order
            .place(&|idx| self.entries[idx].0.borrow().cmp(key))
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let idx = self.find(key).ok()?;
        Some(&self.entries[idx].1)
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let idx = self.find(key).ok()?;
        Some(&mut self.entries[idx].1)
    }

    /// Puts `value` in the place of what was there, which it returns.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(idx) => Some(std::mem::replace(&mut self.entries[idx].1, value)),
            Err(place) => {
                self.put(place, key, value);
                None
            }
        }
    }

    /// What is there; the default where nothing was.
    pub(crate) fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let idx = match self.find(&key) {
            Ok(idx) => idx,
            Err(place) => self.put(place, key, V::default()),
        };
        &mut self.entries[idx].1
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        let idx = *self.order.at(place);
        // The last entry takes the room of the one that goes.
        let last = self.entries.last()?;
        let of_last = self.place(last.0.borrow()).ok()?;
        *self.order.at_mut(of_last) = idx;
        self.order.remove(place);
        Some(self.entries.swap_remove(idx).1)
    }

    /// Those whose keys are below `key`.
    pub(crate) fn below<'a>(
        &'a self,
        key: &K,
    ) -> impl DoubleEndedIterator<Item = &'a (K, V)> + use<'a, K, V> {
        self.between(Order::START, either(self.place(key)))
    }

    /// Those whose keys are `key` or above.
    pub(crate) fn from<'a>(
        &'a self,
        key: &K,
    ) -> impl DoubleEndedIterator<Item = &'a (K, V)> + use<'a, K, V> {
        self.between(either(self.place(key)), self.order.end())
    }

    /// Those whose keys are `from` or above, and below `to`, which is above `from`.
    pub(crate) fn range<'a>(
        &'a self,
        from: &K,
        to: &K,
    ) -> impl DoubleEndedIterator<Item = &'a (K, V)> + use<'a, K, V> {
        self.between(either(self.place(from)), either(self.place(to)))
    }

    fn put(&mut self, place: Place, key: K, value: V) -> usize {
        let idx = self.entries.len();
        self.order.insert(place, idx);
        self.entries.push((key, value));
        idx
    }
}

impl<K, V> VecMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &(K, V)> {
        self.between(Order::START, self.order.end())
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    fn between(&self, from: Place, to: Place) -> impl DoubleEndedIterator<Item = &(K, V)> {
        let indices = self.order.between(from, to);
        indices.map(|idx| &self.entries[idx])
    }
}

/// Where they are depends on how they came.
impl<K: PartialEq, V: PartialEq> PartialEq for VecMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for VecMap<K, V> {}

impl<K: Ord, V> FromIterator<(K, V)> for VecMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut sorted = Self::default();
        for (key, value) in entries {
            sorted.insert(key, value);
        }
        sorted
    }
}

impl<K, V> IntoIterator for VecMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(mut self) -> Self::IntoIter {
        let mut order: Vec<usize> = self.order.0.concat();
        sort::put(&mut order, &mut |a, b| self.entries.swap(a, b));
        self.entries.into_iter()
    }
}

/// No list is longer: a key that comes late moves no more indices than these.
const MOST: usize = 128;

/// Indices of entries in the order of their keys, in short lists.
///
/// A file may hold keys in the worst order; then so many short lists are filled, not one long
/// one moved each time.
#[derive(Debug, Clone, Default)]
struct Order(Vec<Vec<usize>>);

/// A list, and a place there.
type Place = (usize, usize);

impl Order {
    const START: Place = (0, 0);

    fn end(&self) -> Place {
        (self.0.len(), 0)
    }

    /// Where the index is whose key is equal, as `compare` says of each, or where it belongs.
    fn place(&self, compare: &dyn Fn(usize) -> Ordering) -> Result<Place, Place> {
        let begun = self.0.partition_point(|list| compare(list[0]).is_le());
        let list_idx = begun.saturating_sub(1);
        let Some(list) = self.0.get(list_idx) else {
            return Err(Self::START);
        };
        let found = list.binary_search_by(|idx| compare(*idx));
        found
            .map(|idx| (list_idx, idx))
            .map_err(|idx| (list_idx, idx))
    }

    fn at(&self, (list_idx, idx): Place) -> &usize {
        &self.0[list_idx][idx]
    }

    fn at_mut(&mut self, (list_idx, idx): Place) -> &mut usize {
        &mut self.0[list_idx][idx]
    }

    fn insert(&mut self, (list_idx, idx): Place, index: usize) {
        let Some(list) = self.0.get_mut(list_idx) else {
            self.0.push(vec![index]);
            return;
        };
        if list.len() < MOST {
            list.insert(idx, index);
            return;
        }
        // Keys that come in order fill one list after the other.
        let n_kept = if idx == MOST { MOST } else { MOST / 2 };
        let mut rest = list.split_off(n_kept);
        if idx < n_kept {
            list.insert(idx, index);
        } else {
            rest.insert(idx - n_kept, index);
        }
        self.0.insert(list_idx + 1, rest);
    }

    fn remove(&mut self, (list_idx, idx): Place) {
        self.0[list_idx].remove(idx);
        if self.0[list_idx].is_empty() {
            self.0.remove(list_idx);
        }
    }

    fn between(&self, from: Place, to: Place) -> Between<'_> {
        Between {
            lists: &self.0,
            from,
            to,
        }
    }
}

fn either(place: Result<Place, Place>) -> Place {
    place.unwrap_or_else(|place| place)
}

struct Between<'a> {
    lists: &'a [Vec<usize>],
    from: Place,
    to: Place,
}

impl Iterator for Between<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.from < self.to {
            let (list_idx, idx) = self.from;
            if let Some(index) = self.lists[list_idx].get(idx) {
                self.from = (list_idx, idx + 1);
                return Some(*index);
            }
            self.from = (list_idx + 1, 0);
        }
        None
    }
}

impl DoubleEndedIterator for Between<'_> {
    fn next_back(&mut self) -> Option<usize> {
        while self.from < self.to {
            let (list_idx, idx) = self.to;
            if let Some(before) = idx.checked_sub(1) {
                self.to = (list_idx, before);
                return Some(self.lists[list_idx][before]);
            }
            self.to = (list_idx - 1, self.lists[list_idx - 1].len());
        }
        None
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
            let mut sorted = VecMap::default();
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
                prop_assert!(sorted.below(key).rev().map(|it| it.0).eq(tree.range(..key).rev().map(|it| *it.0)));
                prop_assert!(sorted.range(key, &to).rev().map(|it| it.0).eq(tree.range(key..&to).rev().map(|it| *it.0)));
            }
            for (key, value) in entries.into_iter().filter(|(key, _)| key % 3 > 0) {
                prop_assert_eq!(sorted.remove(&key), tree.remove(&key));
                prop_assert_eq!(sorted.remove(&value), tree.remove(&value));
                prop_assert_eq!(sorted.len(), tree.len());
            }
            prop_assert_eq!(&tree.clone().into_iter().collect::<VecMap<_, _>>(), &sorted);
            prop_assert!(sorted.into_iter().eq(tree));
        }
    }

    #[test]
    fn no_order_of_keys_moves_many_entries() {
        let forth: Vec<u32> = (0..10_000).collect();
        let back: Vec<u32> = forth.iter().rev().copied().collect();
        let inwards: Vec<u32> = (0..5000).flat_map(|key| [key, 9999 - key]).collect();
        for keys in [forth, back, inwards] {
            let sorted: VecMap<u32, ()> = keys.into_iter().map(|key| (key, ())).collect();
            let lists = &sorted.order.0;
            assert!(lists.iter().all(|list| (1..=MOST).contains(&list.len())));
            assert!(
                lists.len() <= 2 * 10_000 / MOST + 1,
                "{} lists",
                lists.len()
            );
        }
    }
}
