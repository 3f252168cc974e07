//! A memory timeline of `PyTorch` as JSON.

use serde::Serialize;

use crate::read::memory_timeline::{CategoryLevels, MemoryTimeline};
use crate::units::Nanos;

/// A timeline as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn memory_timeline_json(timeline: &MemoryTimeline) -> String {
    let json = JsonTimeline {
        n_rows: timeline.n_rows,
        duration_nanos: timeline.duration.get(),
        start_bytes: timeline.at_start.get(),
        peak_bytes: timeline.peak.get(),
        peak_after_nanos: timeline.peak_after.map(Nanos::get),
        end_bytes: timeline.at_end.get(),
        categories: timeline.categories.iter().map(JsonCategory::of).collect(),
    };
    serde_json::to_string(&json).expect("a timeline holds names and numbers only")
}

#[derive(Serialize)]
struct JsonTimeline {
    n_rows: usize,
    duration_nanos: u64,
    start_bytes: i64,
    peak_bytes: i64,
    peak_after_nanos: Option<u64>,
    end_bytes: i64,
    categories: Vec<JsonCategory>,
}

#[derive(Serialize)]
struct JsonCategory {
    name: &'static str,
    start_bytes: i64,
    at_peak_bytes: i64,
    peak_bytes: i64,
    end_bytes: i64,
}

impl JsonCategory {
    fn of(category: &CategoryLevels) -> Self {
        Self {
            name: category.name,
            start_bytes: category.at_start.get(),
            at_peak_bytes: category.at_peak.get(),
            peak_bytes: category.peak.get(),
            end_bytes: category.at_end.get(),
        }
    }
}
