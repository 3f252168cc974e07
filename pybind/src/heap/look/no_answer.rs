//! Why a look has no answer.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// One look at a time.
    Busy,
    /// Its copy of the process needed memory that was left out. The next copy has it.
    LacksMemory,
    /// A copy of the process would stop it for too long, and nobody asked for the look.
    ManyMappings,
    /// The process of its copy crashed or hung, in words: another thread may have been in the middle of
    /// changing what it met.
    Ended(String),
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
            Self::ManyMappings => {
                "the process has so many mappings of memory that a copy would stop it for more than 50 ms; \
                 a look that is asked for, as by `%gpumem why NAME`, takes that time"
            }
            Self::Ended(words) | Self::Failed(words) => words,
        })
    }
}

impl From<String> for NoAnswer {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}
