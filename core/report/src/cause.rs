//! One cause that is seen in several processes, in words.

use gpumem_analyzer::Severity;
use gpumem_wording::Sign;

/// One cause: how much it matters, what happens, and in which rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseLine {
    /// How much it matters.
    pub severity: Severity,
    /// One sentence, without a sign.
    pub words: String,
    /// The rows in which it is seen, the first or the worst one first.
    pub rows: Vec<usize>,
}

impl CauseLine {
    /// The sentence with its sign, because colour alone must not show its severity.
    pub(super) fn signed(&self) -> String {
        format!("{} {}", Sign::from(self.severity), self.words)
    }
}
