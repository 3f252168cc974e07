//! Collecting that compiles to one loop.
//!
//! The standard library's `collect` becomes three functions for each iterator, one of which reserves the
//! room beforehand. Every notebook with a report contains the page's module, where this way takes a third
//! of the bytes. What collects samples by the million stays with the standard library.
//!
//! Example: [`CollectVec::collect_vec`].

/// Collects items into a `Vec`, in few instructions rather than in the shortest time.
pub trait CollectVec: Iterator + Sized {
    /// All items, in their order.
    ///
    /// ```
    /// use gpumem_core::collect::CollectVec;
    ///
    /// assert_eq!((1..4).map(|n| n * n).collect_vec(), [1, 4, 9]);
    /// ```
    fn collect_vec(self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        self.for_each(|item| items.push(item));
        items
    }
}

impl<I: Iterator> CollectVec for I {}
