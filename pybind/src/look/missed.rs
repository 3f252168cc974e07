//! Why a look has no answer.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missed {
    /// One look at a time.
    Busy,
    /// Its copy of the process needed memory that was left out. The next copy has it.
    LacksMemory,
    /// Anything else, in words.
    Failed(String),
}

impl Missed {
    pub(super) fn given_up() -> Self {
        Self::Failed("it was given up".to_owned())
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Busy => "the look before it is still under way",
            Self::LacksMemory => "its process needed memory that was left out",
            Self::Failed(words) => words,
        })
    }
}

impl From<String> for Missed {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}
