//! Why a file was not read, and where.

use std::fmt::Display;

use thiserror::Error;

/// A file that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct ReadError<F: Display> {
    /// Offset at which reading stopped; in a gzip file, of its unpacked content.
    pub offset: usize,
    /// What is wrong there. The message is for users.
    pub what: F,
}
