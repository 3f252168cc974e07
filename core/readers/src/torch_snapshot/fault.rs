//! Why a snapshot was not read, and where.

use thiserror::Error;

use crate::pickle::{self, PickleError, PickleKind};
use crate::read_error::ReadError;

/// A snapshot that was not read.
pub type SnapshotError = ReadError<SnapshotFault>;

/// What is wrong: [`SnapshotError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SnapshotFault {
    /// The pickle itself is damaged, or would run something.
    #[error(transparent)]
    Pickle(pickle::PickleFault),
    /// A pickle of something else.
    #[error("not a memory snapshot of PyTorch: a pickled {0}")]
    OtherPickle(String),
    /// A value of another type than expected.
    #[error("`{field}` is a {found}, not a {expected}")]
    Type {
        /// The field's name.
        field: &'static str,
        /// The type expected.
        expected: PickleKind,
        /// The type found.
        found: PickleKind,
    },
    /// A number that cannot be a size, an address or an index.
    #[error("`{field}` is {found}, not a number from 0 to 2^64-1")]
    Number {
        /// The field's name.
        field: &'static str,
        /// The number.
        found: i128,
    },
    /// A record with too many fields.
    #[error("a record of `{field}` with {n} fields")]
    ManyFields {
        /// The field that holds the record.
        field: &'static str,
        /// How many it has.
        n: usize,
    },
    /// Shared lists that would be read too many times.
    #[error("its lists are shared so often that they would not end")]
    Endless,
}

impl From<PickleError> for SnapshotError {
    fn from(error: PickleError) -> Self {
        Self {
            offset: error.offset,
            what: SnapshotFault::Pickle(error.what),
        }
    }
}
