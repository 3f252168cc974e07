//! Why a log was not read, and where.

use thiserror::Error;

use crate::read_error::ReadError;

/// A log that was not read.
pub type NvidiaSmiError = ReadError<NvidiaSmiFault>;

/// What is wrong: [`NvidiaSmiError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NvidiaSmiFault {
    /// A header without a column of memory.
    #[error(
        "a log of nvidia-smi without memory: its columns are {columns}\nhint: log with `{command}`"
    )]
    NoMemory {
        /// The columns that are there.
        columns: String,
        /// The command that logs memory in the same form.
        command: &'static str,
    },
    /// Numbers without a header, none of which is certainly a level.
    #[error(
        "numbers without a header: {}\nhint: a log of nvidia-smi is read with its header (without `noheader`), or with \
         units (without `nounits`); or put a line with the names of its columns above it, such as `timestamp, index, \
         memory.used [MiB]`",
        which(*.n_columns)
    )]
    Unnamed {
        /// How many columns there are.
        n_columns: usize,
    },
    /// A column without a unit, and it is not in MiB.
    #[error(
        "{value} MiB of memory is more than any device has\nhint: name the unit in the header, such as \
         `memory.used [B]`"
    )]
    TooLarge {
        /// The number in the file.
        value: String,
    },
    /// Another output of `nvidia-smi`, without a level.
    #[error(
        "{0} of nvidia-smi, without memory\nhint: log with `nvidia-smi \
         --query-gpu=timestamp,index,name,memory.used,memory.total --format=csv -l 1`"
    )]
    NoLevel(&'static str),
    /// A header, and nothing below it.
    #[error("a log of nvidia-smi without a reading")]
    NoReading,
    /// No log at all.
    #[error("not a log of nvidia-smi: no line is a header or a reading")]
    NotALog,
}

fn which(n_columns: usize) -> String {
    match n_columns {
        1 => "are they memory?".to_owned(),
        n => format!("which of its {n} columns is memory?"),
    }
}
