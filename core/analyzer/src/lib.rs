//! Verdicts: `analyze(&Recording, &Rules) -> Analysis`, which cannot fail.
//!
//! Nothing here knows how verdicts are shown. `levels` derives one row per (run, device) from the raw
//! readings, `growth` judges one series of levels, and `findings` turns rows and series into findings, one
//! file for each check.
//!
//! ```
//! use gpumem_analyzer::{FindingKind, Rules, GrowthVerdict, analyze};
//! use gpumem_model::units::{ByteDelta, Bytes};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let analysis = analyze(&leaking(), &Rules::default());
//! let leak = &analysis.findings[0];
//! assert_eq!((leak.kind, leak.state), (FindingKind::Leak, Some(GrowthVerdict::Leak)));
//! assert_eq!(leak.growth().expect("a series").bytes_per_run, ByteDelta::new(2 << 20));
//! assert_eq!(leak.cell.as_ref().expect("a cell").label, "losses.append(step(batch))");
//! assert_eq!(analysis.devices[0].allocated, Some(Bytes::mib(24)));
//! assert_eq!(analysis.rows[0].kept, Some(ByteDelta::new(2 << 20)));
//! ```
#![forbid(unsafe_code)]

mod cell;
mod compare;
mod composition;
mod context;
mod device_rows;
mod evidence;
mod filled;
mod findings;
mod gaps;
mod growth;
mod held_since;
mod idle;
mod incremental_analyzer;
pub mod inspection;
pub mod known_leaks;
mod levels;
mod limits;
mod loop_place;
mod loops;
mod name_reads;
mod names;
mod ongoing;
mod overlaps;
mod paths;
mod reason;
mod row;
mod run_analyzer;
mod series;
mod stats_cache;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trend;
mod verdict;

pub use cell::{CellRef, cell_label};
pub use compare::{GrowthChange, GrowthSide, SessionComparison, compare, waiting};
pub use composition::{CompositionPart, PartContent, PartKind};
pub use evidence::{Evidence, Statistic};
pub use findings::{
    Advice, ChildrenDetails, Cure, DoublingDetails, Finding, FindingDetails, FindingKind,
    Fingerprint, FragmentationDetails, FreedVariable, GrowthDetails, HeldByError, OomBreakdown,
    OomCause, OomPart, OomShare, OutlivedDetails, RetentionDetails, SeriesGrowth, Sufficiency,
    TracedRun, Withdrawn,
};
pub use gaps::Gap;
pub use gpumem_model::severity::Severity;
pub use growth::{Growth, GrowthShape, GrowthVerdict, classify_allocator, classify_growth};
pub use held_since::note_since;
pub use idle::{IdleMemory, idle_memory};
pub use incremental_analyzer::IncrementalAnalyzer;
pub use levels::{DeviceSummary, Warning};
pub use limits::{Limit, LimitedBy};
pub use loop_place::{LoopPlace, LoopUnit};
pub use loops::grew_in_a_loop;
pub use name_reads::{LastUse, NameReads};
pub use reason::Reason;
pub use row::{Metric, Overlap, Peak, RunRow, of_points};
pub use rules::Rules;
pub use run_analyzer::RunAnalyzer;
pub use verdict::FindingGroup;

use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::rules;

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
    /// What no cell has read for a while, the most first on each device.
    pub idle: Vec<IdleMemory>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

impl Analysis {
    /// The finding with this [`id`](Finding::id), if it stands.
    pub fn finding(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// The latest levels of a device, if it was read.
    pub fn summary(&self, device: DeviceIdx) -> Option<&DeviceSummary> {
        self.devices.iter().find(|it| it.device == device)
    }

    /// The row of a run on a device.
    pub fn row(&self, run: RunIdx, device: DeviceIdx) -> Option<&RunRow> {
        let mut rows = self.rows.iter();
        rows.rfind(|row| row.run == run && row.device == device)
    }
}

/// Derives levels and findings from a recording.
pub fn analyze(recording: &Recording, rules: &Rules) -> Analysis {
    IncrementalAnalyzer::default().analyze(recording, rules)
}
