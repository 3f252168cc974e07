//! Lists of items by number, one after the other in memory.

/// A list of items for each number.
pub(super) struct NumberLists<T = u32> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Default> NumberLists<T> {
    /// From pairs (whose list, item), which are gone through twice.
    pub(super) fn new<I: Iterator<Item = (u32, T)>>(n: usize, pairs: impl Fn() -> I) -> Self {
        let mut starts = vec![0_u32; n + 1];
        for (of, _) in pairs() {
            starts[of as usize + 1] += 1;
        }
        for v in 1..=n {
            starts[v] += starts[v - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![T::default(); starts[n] as usize];
        for (of, item) in pairs() {
            items[next[of as usize] as usize] = item;
            next[of as usize] += 1;
        }
        Self { starts, items }
    }

    pub(super) fn get(&self, number: u32) -> &[T] {
        let (from, to) = (number as usize, number as usize + 1);
        &self.items[self.starts[from] as usize..self.starts[to] as usize]
    }
}
