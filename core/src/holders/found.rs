//! What a walk over the live objects comes to: small, whatever the heap's size.

use super::{HeldBy, Holders, Inventory};

/// The answer of one look at the heap. It travels from the process that looked
/// ([`crate::format::encode_found`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Who holds what, device by device.
    pub holders: Holders,
    /// What is there, to be compared with at a later look.
    pub inventory: Inventory,
    /// Every byte once, under the name by which a person would look for it first.
    pub held_by: Vec<HeldBy>,
    /// How many objects were looked at.
    pub n_objects: u64,
    /// What was passed over or left out, and why: one line each.
    pub notes: Vec<String>,
}
