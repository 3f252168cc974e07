//! Exports of Nsight Systems (`nsys export --type sqlite`): rows of the database → levels, failed calls,
//! and NVTX ranges as runs.
//!
//! The caller opens the database and hands over its rows. Tables and columns differ between versions, so a row
//! may lack some.
//!
//! ```
//! use gpumem_readers::nsight::{Capture, MemoryEvent, NvtxRange};
//! use gpumem_model::units::{ByteDelta, Bytes};
//!
//! let mut capture = Capture { has_memory: true, ..Capture::default() };
//! let pid = 4211 << 24;
//! let event = |at_nanos, address, is_free| MemoryEvent {
//!     at_nanos, global_pid: pid, device: 0, address, bytes: 1 << 20, kind: 2, is_free,
//! };
//! capture.events = vec![event(10, 1, false), event(20, 2, false), event(30, 1, true)];
//! capture.ranges = vec![NvtxRange { start_nanos: 5, end_nanos: Some(40), global_tid: pid, name: "step".into() }];
//! let export = capture.summed_up();
//! assert_eq!(export.log.devices[0].levels[0].series.peak, Bytes::mib(2));
//! assert_eq!(export.ranges[0].kept, ByteDelta::new(1 << 20));
//! ```

mod levels;
mod ranges;
use std::collections::HashMap;

use serde::Serialize;

use super::level_log::{LevelLog, WallTime};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// The name of such a file in a report.
pub const TITLE: &str = "Nsight Systems export";

/// The first bytes of a `.nsys-rep` or `.qdrep`, which has to be exported first.
pub const REPORT_BEGINS: &[u8] = b"NVIDIA Tegra Profiler Report";

/// The rows of an export that concern memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// Whether memory was recorded: the table exists.
    pub has_memory: bool,
    /// Nanoseconds since 1970 at which its time begins.
    pub epoch_nanos: Option<i64>,
    /// Length of the capture.
    pub duration: Option<Nanos>,
    /// `2026.1.1.204`.
    pub version: Option<String>,
    /// `CUDA_GPU_MEMORY_USAGE_EVENTS`, in any order.
    pub events: Vec<MemoryEvent>,
    /// Whether the results of calls were recorded: without them no call is known to have succeeded.
    pub has_results: bool,
    /// Calls that returned an error, in any order.
    pub failed: Vec<FailedCall>,
    /// Calls that allocate or free, in any order; `None` if calls were not recorded.
    pub calls: Option<Vec<CallTally>>,
    /// `NVTX_EVENTS` with a start and a name, in any order.
    pub ranges: Vec<NvtxRange>,
    /// CUDA's number of each device → its name and capacity.
    pub devices: HashMap<u64, (Option<String>, Option<Bytes>)>,
    /// Numbers of processes → their names.
    pub processes: HashMap<u64, String>,
}

/// An allocation or a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEvent {
    /// Since the capture's start.
    pub at_nanos: i64,
    /// The process, as Nsight encodes it.
    pub global_pid: u64,
    /// CUDA's number of the device.
    pub device: u64,
    /// The first byte; 0 if not recorded.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// `memKind`: 2 device, 1 pinned, 4 managed and others.
    pub kind: u8,
    /// Whether it was freed.
    pub is_free: bool,
}

/// A call that CUDA refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    /// Since the capture's start.
    pub at_nanos: i64,
    /// Process and thread, as Nsight encodes them.
    pub global_tid: u64,
    /// `cudaMalloc_v3020`.
    pub function: String,
    /// CUDA's code: 2 is out of memory.
    pub code: i64,
}

/// All calls of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallTally {
    /// `cudaMalloc`.
    pub function: String,
    /// Number of calls.
    pub n_calls: u64,
    /// The sum of their durations.
    #[serde(rename = "total_nanos")]
    pub total: Nanos,
    /// The longest of them.
    #[serde(rename = "longest_nanos")]
    pub longest: Nanos,
}

impl CallTally {
    /// No call yet of a function, as the export names it: `cudaMalloc_v3020`.
    pub fn new(function: &str) -> Self {
        Self {
            function: plain_name(function).to_owned(),
            n_calls: 0,
            total: Nanos::ZERO,
            longest: Nanos::ZERO,
        }
    }

    /// Counts a call.
    pub fn add(&mut self, duration: Nanos) {
        self.n_calls += 1;
        self.total += duration;
        self.longest = self.longest.max(duration);
    }
}

/// Whether a function takes memory.
pub fn allocates(function: &str) -> bool {
    ["Alloc", "alloc", "MemCreate"]
        .iter()
        .any(|part| function.contains(part))
}

/// Whether a function gives memory back.
pub fn frees(function: &str) -> bool {
    ["Free", "MemRelease"]
        .iter()
        .any(|part| function.contains(part))
}

/// An NVTX range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvtxRange {
    /// Since the capture's start.
    pub start_nanos: i64,
    /// Absent if it was open at the capture's end.
    pub end_nanos: Option<i64>,
    /// Process and thread, as Nsight encodes them.
    pub global_tid: u64,
    /// Its text.
    pub name: std::sync::Arc<str>,
}

/// An export summed up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NsightExport {
    /// Whether memory was recorded: if not, there are no levels.
    pub has_memory: bool,
    /// The version of Nsight Systems that exported it.
    pub version: Option<String>,
    /// Levels by device and process.
    #[serde(skip)]
    pub log: LevelLog,
    /// Whether the results of calls were recorded: without them no call is known to have succeeded.
    pub has_results: bool,
    /// Calls that allocate or free, those that took longest first; `None` if calls were not recorded.
    #[serde(rename = "memory_calls")]
    pub calls: Option<Vec<CallTally>>,
    /// Calls that ran out of memory, oldest first.
    #[serde(rename = "failed_calls")]
    pub failed: Vec<NsightFailure>,
    /// Number of ranges.
    pub n_ranges: usize,
    /// Ranges by name; what kept most is first.
    pub ranges: Vec<RangeTally>,
}

/// A call that failed, and what was allocated then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NsightFailure {
    /// When.
    #[serde(skip)]
    pub at: WallTime,
    /// Since the capture's start.
    #[serde(rename = "at_nanos")]
    pub after: Nanos,
    /// The process that called.
    pub pid: u64,
    /// `cudaMalloc`.
    pub function: String,
    /// CUDA's code: 2 is out of memory.
    pub code: i64,
    /// What the process had allocated on all devices; `None` if memory was not recorded.
    #[serde(rename = "allocated_bytes")]
    pub allocated: Option<Bytes>,
    /// The names of the ranges it was in, outermost first.
    pub ranges: Vec<String>,
}

/// All ranges of one name as runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RangeTally {
    /// Their text.
    pub name: String,
    /// Number of calls.
    #[serde(rename = "n_runs")]
    pub n: usize,
    /// Of these, how many ended with more than they began with.
    pub n_grew: usize,
    /// The sum of what each kept: the level of its process at its end less that at its start.
    #[serde(rename = "kept_bytes")]
    pub kept: ByteDelta,
    /// The most that one kept.
    #[serde(rename = "most_kept_bytes")]
    pub most_kept: ByteDelta,
    /// The highest level of its process in any of them.
    #[serde(rename = "peak_bytes")]
    pub peak: Bytes,
    /// The sum of their durations.
    #[serde(rename = "duration_nanos")]
    pub duration: Nanos,
}

impl Capture {
    /// Levels, failures and ranges.
    pub fn summed_up(mut self) -> NsightExport {
        self.events.sort_by_key(|event| event.at_nanos);
        self.failed.sort_by_key(|failed| failed.at_nanos);
        let changes = levels::EventChanges::new(&self.events);
        let of_processes = levels::by_process(&self.events, &changes);
        let n_ranges = self.ranges.len();
        if let Some(calls) = &mut self.calls {
            calls.sort_by(|a, b| {
                b.total
                    .cmp(&a.total)
                    .then_with(|| a.function.cmp(&b.function))
            });
        }
        NsightExport {
            has_memory: self.has_memory,
            has_results: self.has_results,
            calls: self.calls.take(),
            failed: ranges::failures(&self, &of_processes),
            ranges: ranges::tallies(&self, &of_processes),
            n_ranges,
            log: levels::log(&self, &changes),
            version: self.version,
        }
    }

    fn wall(&self, at_nanos: i64) -> WallTime {
        WallTime::unix_nanos(self.epoch_nanos.unwrap_or(0).saturating_add(at_nanos))
    }
}

/// `cudaMalloc_v3020` → `cudaMalloc`.
fn plain_name(function: &str) -> &str {
    match function.rsplit_once("_v") {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => function,
    }
}

/// The number of a process in what Nsight encodes: [NVIDIA documents
/// it](https://docs.nvidia.com/nsight-systems/UserGuide/index.html) for its SQLite schema.
const fn pid(global: u64) -> u64 {
    (global >> 24) & 0xff_ffff
}
