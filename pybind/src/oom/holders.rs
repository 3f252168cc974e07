//! Who holds device memory at the moment of the error: looked at before the frames go.

use std::time::Duration;

use gpumem_core::holders::HeldBy;
use pyo3::prelude::*;

use super::Told;
use crate::walk::{self, Extent, Limits};
use crate::{extension, trouble};

/// A cell has failed: its user can wait for a moment, but not for long.
const PATIENCE: Limits = Limits {
    time: Duration::from_millis(250),
    n_nodes: 5_000_000,
};

impl Told {
    /// The same with the names that hold memory now, where the error still has its frames.
    pub(crate) fn with_holders(self, py: Python<'_>) -> Self {
        if self.survived {
            return self;
        }
        Self {
            holders: holders(py),
            ..self
        }
    }
}

fn holders(py: Python<'_>) -> Vec<HeldBy> {
    match walk::find(py, &extension::shells(py), Extent::Names, PATIENCE) {
        Ok(found) => found.graph.by_preferred_name(),
        Err(error) => {
            let message = format!("who held memory is not known: {error}");
            trouble::log_once(py, &message);
            Vec::new()
        }
    }
}
