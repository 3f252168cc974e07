//! The result of one walk over the live objects: small for any heap.

use super::{BlockNames, HeldBy, HolderLimits, Holders, Inventory, SearchCoverage, StorageName};

/// The result of one heap search, which travels from the process that searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapSearchResult {
    /// Who holds what, device by device.
    pub holders: Holders,
    /// What was there, for comparison with a later search.
    pub inventory: Inventory,
    /// Every byte once, under the name where a person would look for it first.
    pub held_by: Vec<HeldBy>,
    /// Storages one by one, at most [`HolderLimits::n_storages`](super::HolderLimits::n_storages).
    pub storages: Vec<StorageName>,
    /// How many objects were visited.
    pub n_objects: u64,
    /// What was skipped, and why; one line each.
    pub notes: Vec<String>,
}

impl HeapSearchResult {
    /// Names for the blocks of allocators, from a search within `limits`.
    pub fn block_names(self, limits: &HolderLimits) -> BlockNames {
        let is_whole = self.inventory.is_whole && self.storages.len() < limits.n_storages;
        let extent = if is_whole {
            SearchCoverage::Whole
        } else {
            SearchCoverage::Part
        };
        BlockNames::new(self.storages, extent)
    }
}
