//! An export of Nsight Systems as JSON.

use serde::Serialize;

use super::level_log::JsonLog;
use crate::read::nsight::{Failure, NsightExport, RangeTally};
use crate::units::Bytes;

/// An export as JSON: a log of levels with `failed_calls` and `ranges`. Fields named `*_bytes` are bytes,
/// `*_nanos` nanoseconds since the capture's start; unknown is `null`.
pub fn nsight_json(export: &NsightExport) -> String {
    let json = JsonExport {
        log: JsonLog::of(&export.log),
        has_memory: export.has_memory,
        version: export.version.as_deref(),
        failed_calls: export.failed.iter().map(JsonFailure::of).collect(),
        n_ranges: export.n_ranges,
        ranges: export.ranges.iter().map(JsonRange::of).collect(),
    };
    serde_json::to_string(&json).expect("an export holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonExport<'a> {
    #[serde(flatten)]
    log: JsonLog<'a>,
    has_memory: bool,
    version: Option<&'a str>,
    failed_calls: Vec<JsonFailure<'a>>,
    n_ranges: usize,
    ranges: Vec<JsonRange<'a>>,
}

#[derive(Serialize)]
struct JsonFailure<'a> {
    at_nanos: u64,
    pid: u64,
    function: &'a str,
    code: i64,
    allocated_bytes: Option<u64>,
    ranges: &'a [String],
}

#[derive(Serialize)]
struct JsonRange<'a> {
    name: &'a str,
    n_runs: usize,
    n_grew: usize,
    kept_bytes: i64,
    most_kept_bytes: i64,
    peak_bytes: u64,
    duration_nanos: u64,
}

impl<'a> JsonFailure<'a> {
    fn of(failure: &'a Failure) -> Self {
        Self {
            at_nanos: failure.after.get(),
            pid: failure.pid,
            function: &failure.function,
            code: failure.code,
            allocated_bytes: failure.allocated.map(Bytes::get),
            ranges: &failure.ranges,
        }
    }
}

impl<'a> JsonRange<'a> {
    fn of(tally: &'a RangeTally) -> Self {
        Self {
            name: &tally.name,
            n_runs: tally.n,
            n_grew: tally.n_grew,
            kept_bytes: tally.kept.get(),
            most_kept_bytes: tally.most_kept.get(),
            peak_bytes: tally.peak.get(),
            duration_nanos: tally.duration.get(),
        }
    }
}
