//! Why a look has no answer.

use std::fmt;

use gpumem_base::gil;

/// Why a look has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// This build of Python has no GIL.
    NoGil,
    /// One look at a time.
    Busy,
    /// Its copy of the process needed memory that was left out. The next copy has it.
    LacksMemory,
    /// Copying the process would stop it for too long for an automatic look.
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
            Self::NoGil => gil::NONE,
            Self::Busy => "the look before it is still under way",
            Self::LacksMemory => "its process needed memory that was left out",
            Self::ManyMappings => {
                "copying this process would stop it for more than 50 ms, because it has very many memory \
                 mappings; `%gpumem why NAME` looks anyway"
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
