//! Where a walk stops.

use std::time::Instant;

/// How far a walk goes at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkLimits {
    pub(crate) until: Instant,
    pub(crate) n_nodes: usize,
}
