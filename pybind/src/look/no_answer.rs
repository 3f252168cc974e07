//! Why a look has no answer.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// One look at a time.
    Busy,
    /// Its copy of the process needed memory that was left out. The next copy has it.
    LacksMemory,
    /// Anything else, in words.
    Failed(String),
}

impl NoAnswer {
    pub(super) fn given_up() -> Self {
        Self::Failed("it was given up".to_owned())
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Busy => "the look before it is still under way",
            Self::LacksMemory => "its process needed memory that was left out",
            Self::Failed(words) => words,
        })
    }
}

impl From<String> for NoAnswer {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}
