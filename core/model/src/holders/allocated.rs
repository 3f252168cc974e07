//! What allocators have handed out.

use crate::units::Bytes;

/// Blocks are multiples of this size.
const GRANULE: Bytes = Bytes::new(512);

/// What the allocators of a device have handed out and not got back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocated {
    /// How much that is.
    pub n_bytes: Bytes,
    /// Counted in whole blocks, not as requested.
    pub is_rounded: bool,
}

impl Allocated {
    /// The sum of both; rounded if one of them is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            n_bytes: self.n_bytes + other.n_bytes,
            is_rounded: self.is_rounded || other.is_rounded,
        }
    }

    /// What certainly exceeds `n_storages` storages of together `n_bytes`.
    #[must_use]
    pub fn beyond(self, n_bytes: Bytes, n_storages: u64) -> Bytes {
        let rounding = if self.is_rounded {
            Bytes::new(GRANULE.get().saturating_mul(n_storages))
        } else {
            Bytes::ZERO
        };
        self.n_bytes.saturating_sub(n_bytes + rounding)
    }
}
