//! What a walk cannot find out itself: code of the user's and allocators tell it.

use gpumem_model::units::Bytes;
use pyo3::prelude::*;

use super::PoolId;
use crate::heap::adapters::own::{self, Held, Registered};
use crate::heap::adapters::pools;

/// Called when a walk is over and nothing is borrowed any more.
pub(crate) trait Asker {
    /// About objects, each with the adapter of the user's that knows it, and about pools. What is
    /// not known is left out at the end.
    fn ask(&mut self, py: Python<'_>, objects: &[(Bound<'_, PyAny>, u8)], pools: &[PoolId])
    -> Told;
}

/// One entry for each question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) objects: Vec<Vec<Held>>,
    /// What is free in each pool, by device.
    pub(crate) pools: Vec<Vec<(String, Bytes)>>,
}

/// Asks in this process.
pub(crate) struct Here<'r, 'py> {
    pub(crate) registered: &'r [Registered<'py>],
}

impl Asker for Here<'_, '_> {
    fn ask(
        &mut self,
        py: Python<'_>,
        objects: &[(Bound<'_, PyAny>, u8)],
        pools: &[PoolId],
    ) -> Told {
        let held = |(object, adapter): &(Bound<'_, PyAny>, u8)| {
            let (_, function) = &self.registered[usize::from(*adapter)];
            own::ask(function, object)
        };
        Told {
            objects: objects.iter().map(held).collect(),
            pools: pools.iter().map(|pool| pools::free(py, *pool)).collect(),
        }
    }
}
