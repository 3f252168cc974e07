//! The result of one walk over the live objects: small for any heap.

use super::{HeldBy, Holders, Inventory};

/// The result of one heap search, which travels from the process that searched.
/// Example: [`encode_found`](crate::format::encode_found).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Who holds what, device by device.
    pub holders: Holders,
    /// What was there, for comparison with a later search.
    pub inventory: Inventory,
    /// Every byte once, under the name where a person would look for it first.
    pub held_by: Vec<HeldBy>,
    /// How many objects were visited.
    pub n_objects: u64,
    /// What was skipped, and why; one line each.
    pub notes: Vec<String>,
}
