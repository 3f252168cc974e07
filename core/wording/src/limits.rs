//! How much each output has room for.

/// What an output shows at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Findings in a line each, after the one that is open to its fix; more are only counted.
    pub n_rows: usize,
    /// Lines of code on each side of a fix.
    pub n_code_lines: usize,
    /// Cells in the table of what each kept.
    pub n_cells: usize,
}

impl OutputLimits {
    /// A report in a terminal: nobody reads on, and JSON has all.
    pub const TEXT: Self = Self {
        n_rows: 99,
        n_cells: 8,
        ..Self::ALL
    };
    /// An issue.
    pub const MARKDOWN: Self = Self {
        n_cells: 20,
        ..Self::ALL
    };
    /// A picture.
    pub const PICTURE: Self = Self {
        n_rows: 2,
        n_code_lines: 4,
        n_cells: 8,
    };
    /// The first screen of the page, whose tally lists the rest.
    pub const PAGE: Self = Self {
        n_rows: 2,
        ..Self::ALL
    };

    const ALL: Self = Self {
        n_rows: usize::MAX,
        n_code_lines: usize::MAX,
        n_cells: usize::MAX,
    };
}

/// Names in one sentence; the rest is summed up.
pub(super) const N_NAMES: usize = 3;

/// Letters of code in a line that is not the code's own.
pub(super) const SHORT_CODE: usize = 32;
