//! The rules of gpu-memory-profiler, with the same results to the last digit, so that code and dashboards
//! written for it still work.
//!
//! They judge single calls, not series: a function that allocates in its forward and frees in its
//! backward call looks like a leak to them. gpumem shows the verdicts of `analyze`;
//! these rules answer behind their own names.
//!
//! Sizes are bytes and times seconds, both as floats, as in the original. Lists keep the order in which
//! functions were first seen. Rules skip figures that are not usable numbers, and leave out what cannot
//! be computed (no time passed); both are reported in [`Report::left_out`].
//!
//! ```
//! use gpumem_classic::{Call, Calls, ClassicThresholds, report};
//!
//! let mut calls = Calls::default();
//! let function = calls.function("train_step");
//! for n in 0..10 {
//!     let began_at = f64::from(n);
//!     let mib = f64::from(1 << 20);
//!     calls.push(Call {
//!         function,
//!         seconds: 0.5,
//!         began_at,
//!         ended_at: began_at + 0.5,
//!         diff: 50.0 * mib,
//!         rise: 60.0 * mib,
//!         after: 50.0 * mib * (began_at + 1.0),
//!         reserved: 50.0 * mib * (began_at + 1.0),
//!         allocated: 60.0 * mib,
//!     });
//! }
//! let report = report(&calls, &ClassicThresholds::default());
//! assert_eq!((report.patterns[0].kind, report.summary.n_calls), ("memory_leak", 10));
//! assert!(report.score.score < 100);
//! ```
#![forbid(unsafe_code)]

mod calls;
mod gaps;
mod insights;
mod patterns;
mod report;
mod statistics;

pub use calls::{Call, Calls};
pub use gaps::{GapKind, GapSample, HiddenGap, hidden_gaps};
pub use gpumem_model::severity::Severity;
pub use insights::{Impact, Insight, insights};
pub use patterns::{Pattern, patterns};
pub use report::{CallSummary, Recommendation, Report, Score, report, report_on};

/// Thresholds of the classic rules, under their original names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassicThresholds {
    /// Share of calls that must grow for a leak.
    pub memory_leak_ratio: f64,
    /// Functions with fewer calls are not judged.
    pub min_calls_for_analysis: f64,
    /// (reserved − allocated) / reserved above which memory is fragmented.
    pub fragmentation_ratio: f64,
    /// Share of what was allocated that the peak must reach.
    pub inefficient_allocation_ratio: f64,
    /// Quantile of the mean times above which a function is slow.
    pub slow_function_percentile: f64,
    /// Quantile of bytes per second above which a call is memory-intensive.
    pub high_memory_percentile: f64,
    /// Share of the device that a gap must reach to be analyzed.
    pub gap_ratio_threshold: f64,
    /// z above which a gap is a spike.
    pub gap_spike_zscore: f64,
    /// R² from which a gap drifts.
    pub gap_drift_r_squared: f64,
    /// Mean (reserved − allocated) / reserved from which a gap looks like fragmentation.
    pub gap_fragmentation_ratio: f64,
}

impl ClassicThresholds {
    /// Each threshold by its name, to be read or set.
    pub fn entries(&mut self) -> [(&'static str, &mut f64); 10] {
        [
            ("memory_leak_ratio", &mut self.memory_leak_ratio),
            ("min_calls_for_analysis", &mut self.min_calls_for_analysis),
            ("fragmentation_ratio", &mut self.fragmentation_ratio),
            (
                "inefficient_allocation_ratio",
                &mut self.inefficient_allocation_ratio,
            ),
            (
                "slow_function_percentile",
                &mut self.slow_function_percentile,
            ),
            ("high_memory_percentile", &mut self.high_memory_percentile),
            ("gap_ratio_threshold", &mut self.gap_ratio_threshold),
            ("gap_spike_zscore", &mut self.gap_spike_zscore),
            ("gap_drift_r_squared", &mut self.gap_drift_r_squared),
            ("gap_fragmentation_ratio", &mut self.gap_fragmentation_ratio),
        ]
    }
}

impl Default for ClassicThresholds {
    fn default() -> Self {
        Self {
            memory_leak_ratio: 0.1,
            min_calls_for_analysis: 3.0,
            fragmentation_ratio: 0.3,
            inefficient_allocation_ratio: 0.5,
            slow_function_percentile: 0.9,
            high_memory_percentile: 0.9,
            gap_ratio_threshold: 0.05,
            gap_spike_zscore: 2.0,
            gap_drift_r_squared: 0.6,
            gap_fragmentation_ratio: 0.3,
        }
    }
}

/// The classic megabyte: 2^20 bytes.
const MB: f64 = 1_048_576.0;

/// A figure or a list of names behind a pattern or an insight: a value of [`Figures`].
#[derive(Debug, Clone, PartialEq)]
pub enum ClassicFigure {
    /// Counted, or whole bytes.
    Whole(f64),
    /// Measured.
    Real(f64),
    /// One function.
    Name(String),
    /// Functions.
    Names(Vec<String>),
    /// A function with its figure.
    Named(String, f64),
}

/// Figures by name, in the order in which they are shown.
pub type Figures = Vec<(&'static str, ClassicFigure)>;
