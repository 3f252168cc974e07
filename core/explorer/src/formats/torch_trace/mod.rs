//! Traces of PyTorch's profiler.

mod conclusion;
mod devices;
mod operators;
mod ranges;

use std::collections::BTreeSet;

use gpumem_model::units::{ByteDelta, Bytes, count};
use gpumem_readers::chrome_trace::{GroupBy, TraceDeviceLevels, TraceSummary, summary};
use gpumem_readers::container::Container;
use gpumem_report::columns::{cut, in_parts, to_text, wrapped};

use super::{Content, FileFigure, PageKind, ReadMethod, RegistryEntry, into_content};
pub use conclusion::torch_trace_conclusion;
pub use devices::torch_trace_owner;

/// The title of its text and of its page.
pub const TRACE_TITLE: &str = "PyTorch profiler trace";

/// At most this many workers are listed.
const N_WORKERS: usize = 64;

/// In the registry.
pub(super) struct TorchTraceFormat;

/// Traces by their files' names; one for a single file.
pub type Workers = Vec<(String, TraceSummary)>;

impl RegistryEntry for TorchTraceFormat {
    const LISTED: Option<&'static str> = Some("traces and memory timelines of PyTorch");
    const MAY_BE_PACKED: bool = true;
    const PAGE: Option<PageKind> = Some(PageKind::Trace);
    const NAMES_CELLS: bool = true;
    const READING: ReadMethod = ReadMethod::Bytes(|file| {
        let summary = summary(file.bytes, file.cells);
        into_content(summary.map(|it| vec![(file.name.to_owned(), it)]))
    });

    fn recognises(container: Container, _head: &[u8]) -> bool {
        container == Container::Json
    }
}

impl Content for Workers {
    fn kind(&self) -> &'static str {
        "a trace of PyTorch's profiler"
    }

    fn text(&self, width: usize) -> String {
        torch_traces(self, GroupBy::Name, width)
    }

    /// Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`. Of several traces
    /// `{"workers": {"NAME": {…}}}`, by the files' names.
    fn json(&self) -> String {
        if let [(_, summary)] = &**self {
            return serde_json::to_string(summary).expect(JSON);
        }
        let workers = self.iter().map(|(name, summary)| {
            let trace = serde_json::to_value(summary);
            (name.clone(), trace.expect(JSON))
        });
        let workers: serde_json::Map<String, serde_json::Value> = workers.collect();
        serde_json::json!({ "workers": workers }).to_string()
    }

    fn measures(&self) -> Option<Vec<FileFigure>> {
        let several = self.len() > 1;
        let mut measures = Vec::new();
        for (file, device) in self
            .iter()
            .flat_map(|(file, it)| it.devices.iter().map(move |device| (file, device)))
        {
            let label = if several {
                format!("{file} · {}", label(device))
            } else {
                label(device)
            };
            for (name, level) in [("peak", device.peak), ("at the end", device.at_end)] {
                let level = Bytes::new(u64::try_from(level.get()).unwrap_or(0));
                measures.push(FileFigure::level(&label, name, level));
            }
            let owners = device.owners_at_peak.iter().flatten();
            measures.extend(owners.map(|owner| {
                FileFigure::owner(
                    &label,
                    format!("at the peak: {}", torch_trace_owner(owner)),
                    owner.bytes,
                )
            }));
        }
        Some(measures)
    }

    fn repr(&self) -> String {
        let names: Vec<_> = self.iter().map(|(name, _)| &**name).collect();
        format!("<TorchTrace {}>", names.join(", "))
    }

    fn page_title(&self) -> Option<&'static str> {
        Some(TRACE_TITLE)
    }
}

/// Why it can be written.
const JSON: &str = "a trace holds strings and numbers only";

/// The conclusion, each device's levels with its owners at the peak, steps and ranges, and the operators
/// by own time and by memory; these are rows by name, shapes of inputs, module or Python
/// function.
///
/// Lines are at most `width` columns long.
pub fn torch_trace(summary: &TraceSummary, by: GroupBy, width: usize) -> String {
    let mut lines = vec![title(summary, width)];
    let conclusion = torch_trace_conclusion(summary);
    lines.extend(conclusion.iter().map(|it| wrapped(&it.ticked(), width)));
    lines.extend(devices::lines(summary, width));
    lines.extend(ranges::lines(summary, width));
    lines.extend(operators::lines(summary, by, width));
    to_text(&lines)
}

/// A line for each worker, and the report of the one with the highest peak.
pub fn torch_traces(workers: &[(String, TraceSummary)], by: GroupBy, width: usize) -> String {
    if let [(_, summary)] = workers {
        return torch_trace(summary, by, width);
    }
    let noun = if are_workers(workers) {
        "worker"
    } else {
        "trace"
    };
    let title = format!("{TRACE_TITLE}s · {}", count(workers.len(), noun));
    let mut lines = vec![title];
    for (name, summary) in workers.iter().take(N_WORKERS) {
        let mut parts = vec![format!("  {name}")];
        parts.extend(torch_trace_worker(summary));
        lines.push(in_parts(&parts, width, "    "));
    }
    if let Some(more) = workers
        .len()
        .checked_sub(N_WORKERS)
        .filter(|more| *more > 0)
    {
        lines.push(format!("  and {more} more"));
    }
    let text = to_text(&lines);
    let peak = |summary: &TraceSummary| summary.devices.first().map(|device| device.peak);
    let highest = workers
        .iter()
        .rev()
        .max_by_key(|(_, summary)| peak(summary));
    match highest {
        Some((name, summary)) => {
            let heading = cut(&format!("highest peak: {name}"), width);
            format!("{text}\n\n{heading}\n{}", torch_trace(summary, by, width))
        }
        None => text,
    }
}

/// Whether each trace is that of another rank: a program that is run again writes into the same folder.
fn are_workers(traces: &[(String, TraceSummary)]) -> bool {
    let ranks = traces.iter().map(|(_, summary)| summary.worker.rank);
    let ranks: Option<BTreeSet<u64>> = ranks.collect();
    ranks.is_some_and(|ranks| ranks.len() == traces.len())
}

/// A worker among several: its rank, highest peak, and whether it grows.
pub fn torch_trace_worker(summary: &TraceSummary) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(rank(summary));
    parts.push(match summary.devices.first() {
        Some(device) => format!("{} peak {}", label(device), level(device, device.peak)),
        None => "no memory recorded".to_owned(),
    });
    parts.extend(summary.devices.first().and_then(conclusion::growth_part));
    parts
}

/// What a trace is: its events, time, steps and rank.
pub fn torch_trace_parts(summary: &TraceSummary) -> Vec<String> {
    let n_steps = summary.ranges.iter().filter(|range| range.is_step).count();
    let mut parts = vec![
        count(summary.n_events, "event"),
        summary.duration.to_string(),
    ];
    parts.extend((n_steps > 0).then(|| count(n_steps, "step")));
    parts.extend(rank(summary));
    parts
}

fn title(summary: &TraceSummary, width: usize) -> String {
    let mut parts = vec![TRACE_TITLE.to_owned()];
    parts.extend(torch_trace_parts(summary));
    in_parts(&parts, width, "  ")
}

fn rank(summary: &TraceSummary) -> Option<String> {
    let rank = summary.worker.rank?;
    let of = summary
        .worker
        .world_size
        .map(|n| format!(" of {n}"))
        .unwrap_or_default();
    Some(format!("rank {rank}{of}"))
}

/// `cuda:0`, and its process if there are several.
pub fn label(device: &TraceDeviceLevels) -> String {
    let process = device.process.as_ref();
    let process = process.map_or_else(String::new, |process| format!(" of process {process}"));
    format!("{}{process}", device.device)
}

/// A level; with a sign if it is relative to the trace's start.
pub fn level(device: &TraceDeviceLevels, level: ByteDelta) -> String {
    match u64::try_from(level.get()) {
        Ok(bytes) if device.is_absolute => Bytes::new(bytes).to_string(),
        _ => level.to_string(),
    }
}

/// A change; nothing is a dash.
fn change(change: ByteDelta) -> String {
    match change.get() {
        0 => "–".to_owned(),
        _ => change.to_string(),
    }
}
