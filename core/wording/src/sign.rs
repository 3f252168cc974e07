//! How much something matters, in one letter.

use std::fmt;

use gpumem_analyzer::{Finding, GrowthChange, GrowthVerdict, Severity};

/// Stands in front of a finding, because colour alone must not show its severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sign {
    /// A leak, or memory that ran out.
    Alert,
    /// Something to look at.
    Watch,
    /// Good to know.
    #[default]
    Note,
    /// Nothing is wrong.
    Fine,
}

impl Sign {
    /// `▲`.
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Alert => "▲",
            Self::Watch => "◆",
            Self::Note => "○",
            Self::Fine => "✓",
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.glyph())
    }
}

impl From<Severity> for Sign {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Alert,
            Severity::Warning => Self::Watch,
            Severity::Info => Self::Note,
        }
    }
}

impl From<&Finding> for Sign {
    fn from(finding: &Finding) -> Self {
        match Self::from(finding.severity) {
            Self::Watch if finding.state == Some(GrowthVerdict::Leak) => Self::Alert,
            sign => sign,
        }
    }
}

impl From<GrowthChange> for Sign {
    fn from(change: GrowthChange) -> Self {
        match change {
            GrowthChange::Worse | GrowthChange::New => Self::Alert,
            GrowthChange::Same => Self::Watch,
            GrowthChange::Better => Self::Note,
            GrowthChange::Fixed => Self::Fine,
        }
    }
}
