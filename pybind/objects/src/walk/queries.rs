//! Queries that a walk cannot answer itself: to the user's adapters and to allocators.

use gpumem_model::units::Bytes;
use pyo3::prelude::*;

use super::PoolId;
use crate::adapters::pools;
use crate::adapters::registered::{self, Registered, ReportedBytes};

/// Answers queries after a walk, when nothing is borrowed any more.
pub trait QueryBackend {
    /// Queries objects, each with the user's adapter that handles it, and pools. Unknown entries at
    /// the end may be missing.
    fn ask(
        &mut self,
        py: Python<'_>,
        objects: &[(Bound<'_, PyAny>, u8)],
        pools: &[PoolId],
    ) -> Answers;
}

/// One entry for each question.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answers {
    pub(crate) objects: Vec<Vec<ReportedBytes>>,
    /// What is free in each pool, by device.
    pub(crate) pools: Vec<Vec<(String, Bytes)>>,
}

/// Queries within this process.
pub struct LocalBackend<'r, 'py> {
    /// The adapters that users have registered.
    pub registered: &'r [Registered<'py>],
}

impl QueryBackend for LocalBackend<'_, '_> {
    fn ask(
        &mut self,
        py: Python<'_>,
        objects: &[(Bound<'_, PyAny>, u8)],
        pools: &[PoolId],
    ) -> Answers {
        let query = |(object, adapter): &(Bound<'_, PyAny>, u8)| {
            let (_, function) = &self.registered[usize::from(*adapter)];
            registered::ask(function, object)
        };
        Answers {
            objects: objects.iter().map(query).collect(),
            pools: pools.iter().map(|pool| pools::free(py, *pool)).collect(),
        }
    }
}
