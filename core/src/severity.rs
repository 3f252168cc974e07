//! How much something matters, on the same scale for every verdict.

/// How much a finding or a pattern matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Should be looked at.
    Warning,
    /// Must be looked at: leads to an out-of-memory error if it continues.
    Critical,
}

impl Severity {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}
