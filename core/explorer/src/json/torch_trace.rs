//! A trace of PyTorch's profiler as JSON.

use gpumem_readers::chrome_trace::TraceSummary;

/// A trace as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn torch_trace_json(summary: &TraceSummary) -> String {
    serde_json::to_string(summary).expect("a trace holds strings and numbers only")
}

/// Several workers' traces as JSON: `{"workers": {"NAME": {…}}}`, by the files' names.
pub fn torch_traces_json(workers: &[(String, TraceSummary)]) -> String {
    let workers = workers.iter();
    let workers = workers.map(|(name, summary)| {
        let trace = serde_json::to_value(summary);
        (
            name.clone(),
            trace.expect("a trace holds strings and numbers only"),
        )
    });
    let workers: serde_json::Map<String, serde_json::Value> = workers.collect();
    serde_json::json!({ "workers": workers }).to_string()
}
