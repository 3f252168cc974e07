//! Verdicts: `analyze(&Recording, &Rules) -> Analysis`, which cannot fail.
//!
//! It knows nothing of how it is shown. `levels` derives one row per (run,
//! device) from the raw readings, `growth` decides on one series of levels,
//! `leak` and `fragmentation` turn rows and series into findings.

mod cell;
mod compare;
mod composition;
mod context;
mod details;
mod device_rows;
mod doubling;
mod evidence;
mod facts;
mod finding;
mod fragmentation;
mod gaps;
mod growth;
mod held;
mod incremental_analyzer;
mod leak;
mod levels;
mod limits;
mod long_lived;
mod ongoing;
mod oom;
mod paths;
mod peaks;
mod reserve;
mod retention;
mod row;
mod run_analyzer;
mod series;
mod stats_cache;
mod suggest;
mod traced;
mod trend;
mod unattributed_growth;

pub use crate::severity::Severity;
pub use cell::{CellRef, cell_label};
pub use compare::{Change, Compared, GrowthSide, compare};
pub use composition::{Part, PartContent, PartKind};
pub use details::{
    Advice, DecidedBy, Details, DoublingDetails, FragmentationDetails, GrowthDetails,
    RetentionDetails, SeriesGrowth, TracedRun,
};
pub use evidence::Evidence;
pub use finding::{Finding, FindingKind, Withdrawn};
pub use fragmentation::is_in_pieces;
pub use gaps::Gap;
pub use growth::{Growth, Shape, State, classify_allocator, classify_growth};
pub use incremental_analyzer::IncrementalAnalyzer;
pub use levels::{DeviceSummary, Warning};
pub use limits::{Limit, LimitedBy};
pub use oom::{Cause, HeldByError, OomBreakdown, OomPart};
pub(crate) use row::of_points;
pub use row::{Metric, Peak, RunRow};
pub use rules::Rules;
pub use run_analyzer::RunAnalyzer;

use crate::recording::Recording;
use crate::rules;

#[cfg(test)]
mod tests;

/// Everything that is derived from a recording under one set of rules.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Analysis {
    /// The latest levels of each device, in the recording's order.
    pub devices: Vec<DeviceSummary>,
    /// One row per (run, device), in the order of the runs.
    pub rows: Vec<RunRow>,
    /// Worst first.
    pub findings: Vec<Finding>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

/// Derives levels and findings from a recording.
pub fn analyze(recording: &Recording, rules: &Rules) -> Analysis {
    IncrementalAnalyzer::default().analyze(recording, rules)
}
