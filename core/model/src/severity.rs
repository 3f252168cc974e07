//! How much something matters, on the same scale for every verdict.

use crate::named;

named! {
    /// How much a finding or a pattern matters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// Good to know.
        Info = "info",
        /// Should be looked at.
        Warning = "warning",
        /// Must be looked at: leads to an out-of-memory error if it continues.
        Critical = "critical",
    }
}
