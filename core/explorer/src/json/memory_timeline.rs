//! A memory timeline of `PyTorch` as JSON.

use gpumem_readers::memory_timeline::MemoryTimeline;

/// A timeline as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn memory_timeline_json(timeline: &MemoryTimeline) -> String {
    serde_json::to_string(timeline).expect("a timeline holds names and numbers only")
}
