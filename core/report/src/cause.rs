//! One cause that is seen in several processes, in words.

use gpumem_analyzer::Severity;

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
        format!("{} {}", sign(self.severity), self.words)
    }
}

/// The sign of a severity where processes are compared.
pub const fn sign(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "▲",
        Severity::Warning => "◆",
        Severity::Info => "○",
    }
}
