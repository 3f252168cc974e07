//! What only one kind of finding has, as JSON: an object whose `type` names its fields.

use serde::Serialize;

use super::Number;
use crate::analyze::{
    DecidedBy, Details, GrowthDetails, LoopPlace, OomBreakdown, RetentionDetails, SeriesGrowth,
    Shape,
};
use crate::recording::{Recording, RunIdx};
use crate::units::Bytes;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum JsonDetails<'a> {
    Growth(JsonGrowthDetails),
    UnattributedGrowth(JsonSeries),
    Fragmentation {
        inactive_split_bytes: u64,
        reserved_bytes: u64,
        largest_free_bytes: Option<u64>,
        reclaimable_bytes: u64,
    },
    ReservedGrowth(JsonSeries),
    Pressure {
        n_flushes: u64,
    },
    Spike {
        excess_bytes: u64,
        usual_bytes: u64,
    },
    RepeatedAllocation {
        n_all_runs: usize,
    },
    InefficientAllocation {
        used_share: Number,
    },
    RerunDoubling {
        old_bytes: u64,
        new_bytes: u64,
        rose_bytes: u64,
        n_reruns: usize,
    },
    GrowingGap(JsonSeries),
    LongLivedIntermediates {
        line: u32,
        held_bytes: u64,
        peak_bytes: u64,
    },
    OutOfMemory(JsonOom<'a>),
    Retention(JsonRetention<'a>),
}

/// How a series grows.
#[derive(Serialize)]
pub(super) struct JsonSeries {
    shape: &'static str,
    /// The confidence interval of 95 % of the finding's `bytes_per_run`.
    interval: [i64; 2],
    total_bytes: i64,
    sparkline: Vec<Number>,
}

#[derive(Serialize)]
pub(super) struct JsonGrowthDetails {
    #[serde(flatten)]
    series: JsonSeries,
    by: Option<String>,
    steps: bool,
    r#loop: Option<String>,
    n_grown: usize,
    n_known: usize,
    n_missing: usize,
    headroom_bytes: Option<u64>,
    runs_to_oom: Option<u64>,
    decided_by: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct JsonOom<'a> {
    wanted_bytes: Option<u64>,
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
    largest_free_bytes: Option<u64>,
    missing_bytes: Option<u64>,
    survived: bool,
    parts: Vec<JsonPart>,
    holders: Vec<JsonOomHolder<'a>>,
}

#[derive(Serialize)]
struct JsonPart {
    name: &'static str,
    n_bytes: u64,
}

#[derive(Serialize)]
struct JsonOomHolder<'a> {
    name: &'a str,
    kind: &'static str,
    used_bytes: u64,
}

/// What a place of IPython's or Python's keeps.
#[derive(Serialize)]
pub(super) struct JsonRetention<'a> {
    place: &'static str,
    n_bytes: u64,
    name: &'a str,
    path: &'a str,
    what: &'a str,
    /// What to type so that it lets go.
    release: Option<&'static str>,
    since_run: u32,
    since_execution_count: Option<u32>,
}

impl<'a> JsonDetails<'a> {
    pub(super) fn of(recording: &Recording, details: &'a Details) -> Self {
        match details {
            Details::Growth(details) => Self::Growth(growth(details)),
            Details::UnattributedGrowth(series) => Self::UnattributedGrowth(of_series(series)),
            Details::Fragmentation(it) => Self::Fragmentation {
                inactive_split_bytes: it.inactive_split.get(),
                reserved_bytes: it.reserved.get(),
                largest_free_bytes: it.largest_free.map(Bytes::get),
                reclaimable_bytes: it.reclaimable.get(),
            },
            Details::ReservedGrowth { growth, .. } => Self::ReservedGrowth(of_series(growth)),
            Details::Pressure { n_flushes } => Self::Pressure {
                n_flushes: *n_flushes,
            },
            Details::Spike { excess, usual } => Self::Spike {
                excess_bytes: excess.get(),
                usual_bytes: usual.get(),
            },
            Details::Repeated { n_all } => Self::RepeatedAllocation { n_all_runs: *n_all },
            Details::Inefficient { used_share } => Self::InefficientAllocation {
                used_share: Number(*used_share),
            },
            Details::Doubling(it) => Self::RerunDoubling {
                old_bytes: it.old.get(),
                new_bytes: it.new.get(),
                rose_bytes: it.rose.get(),
                n_reruns: it.n_reruns,
            },
            Details::Gap(series) => Self::GrowingGap(of_series(series)),
            Details::LongLived { line, held, peak } => Self::LongLivedIntermediates {
                line: *line,
                held_bytes: held.get(),
                peak_bytes: peak.get(),
            },
            Details::OutOfMemory(breakdown) => Self::OutOfMemory(oom(breakdown)),
            Details::Retention(it) => Self::Retention(retention(recording, it)),
        }
    }
}

fn of_series(series: &SeriesGrowth) -> JsonSeries {
    let (low, high) = series.interval;
    JsonSeries {
        shape: Shape::name(series.shape),
        interval: [low.get(), high.get()],
        total_bytes: series.total.get(),
        sparkline: series.sparkline.iter().copied().map(Number).collect(),
    }
}

fn growth(details: &GrowthDetails) -> JsonGrowthDetails {
    let decided_by = details.decided_by.map(|decided| match decided {
        DecidedBy::AllocationsGrew { .. } => "allocations_grew",
        DecidedBy::AllocationsStayed { .. } => "allocations_stayed",
        DecidedBy::OneTensor => "one_tensor",
        DecidedBy::Fills { .. } => "fills",
        DecidedBy::MayBeMeant => "may_be_meant",
        DecidedBy::FirstWrites => "first_writes",
        DecidedBy::WaitsForCollector => "waits_for_collector",
    });
    JsonGrowthDetails {
        series: of_series(&details.series),
        by: details.by.clone(),
        steps: details.steps,
        r#loop: details.in_loop.as_ref().map(LoopPlace::name),
        n_grown: details.n_grown,
        n_known: details.n_known,
        n_missing: details.n_missing,
        headroom_bytes: details.headroom.map(Bytes::get),
        runs_to_oom: details.runs_to_oom,
        decided_by,
    }
}

fn oom(breakdown: &OomBreakdown) -> JsonOom<'_> {
    let parts = breakdown.parts.iter().map(|(part, size)| JsonPart {
        name: part.name(),
        n_bytes: size.get(),
    });
    let holders = breakdown.holders.iter().map(|holder| JsonOomHolder {
        name: &holder.name,
        kind: holder.kind.name(),
        used_bytes: holder.used.get(),
    });
    JsonOom {
        wanted_bytes: breakdown.wanted.map(Bytes::get),
        free_bytes: breakdown.free.map(Bytes::get),
        total_bytes: breakdown.total.map(Bytes::get),
        largest_free_bytes: breakdown.largest_free.map(Bytes::get),
        missing_bytes: breakdown.missing.map(Bytes::get),
        survived: breakdown.survived,
        parts: parts.collect(),
        holders: holders.collect(),
    }
}

fn retention<'a>(recording: &Recording, details: &'a RetentionDetails) -> JsonRetention<'a> {
    let RunIdx(since_run) = details.since;
    JsonRetention {
        place: details.place.name(),
        n_bytes: details.kept.get(),
        name: &details.name,
        path: &details.path,
        what: &details.what,
        release: details.place.release(),
        since_run,
        since_execution_count: recording.run(details.since).execution_count,
    }
}
