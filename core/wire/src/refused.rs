//! Why bytes are no value of the wire.

use std::fmt::Display;

/// Why a value was refused, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DecodeError(pub(super) String);

impl DecodeError {
    pub(super) fn because(words: impl Display) -> Self {
        Self(words.to_string())
    }

    pub(super) fn in_field(self, name: &str) -> Self {
        Self(format!("{name}: {}", self.0))
    }
}

pub(super) type ReadResult<T> = Result<T, DecodeError>;
