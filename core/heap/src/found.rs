//! The result of one walk over the live objects: small for any heap.

use super::{BlockNames, Extent, HeldBy, Holders, Inventory, Limits, StorageName};

/// The result of one heap search, which travels from the process that searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Who holds what, device by device.
    pub holders: Holders,
    /// What was there, for comparison with a later search.
    pub inventory: Inventory,
    /// Every byte once, under the name where a person would look for it first.
    pub held_by: Vec<HeldBy>,
    /// Storages one by one, as many as [`Limits::n_storages`](super::Limits::n_storages) asked for.
    pub storages: Vec<StorageName>,
    /// How many objects were visited.
    pub n_objects: u64,
    /// What was skipped, and why; one line each.
    pub notes: Vec<String>,
}

impl Found {
    /// Names for the blocks of allocators, from a search within `limits`.
    pub fn block_names(self, limits: &Limits) -> BlockNames {
        let is_whole = self.inventory.is_whole && self.storages.len() < limits.n_storages;
        let extent = if is_whole {
            Extent::Whole
        } else {
            Extent::Part
        };
        BlockNames::new(self.storages, extent)
    }
}
