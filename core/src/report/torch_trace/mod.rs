//! A trace of PyTorch's profiler as text.

mod conclusion;
mod devices;
mod operators;
mod ranges;

use super::{cut, in_parts, wrapped};
use crate::printable::printable_lines;
use crate::read::chrome_trace::{DeviceLevels, GroupBy, TraceSummary};
use crate::units::{ByteDelta, Bytes};
use crate::wording::count;

/// At most this many workers are listed.
const N_WORKERS: usize = 64;

/// The conclusion, each device's levels with its owners at the peak, steps and ranges, and the operators
/// by own time and by memory; these are rows by name, shapes of inputs or module.
///
/// Lines are at most `width` columns long.
///
/// ```
/// use gpumem_core::read::chrome_trace::{GroupBy, summary};
/// use gpumem_core::report::torch_trace;
///
/// let empty = summary(br#"{"traceEvents": []}"#)?;
/// let text = torch_trace(&empty, GroupBy::Name, 80);
/// assert!(text.starts_with("PyTorch profiler trace · 0 events"));
/// # Ok::<(), gpumem_core::read::json_file::JsonError>(())
/// ```
pub fn torch_trace(summary: &TraceSummary, by: GroupBy, width: usize) -> String {
    let mut lines = vec![title(summary, width)];
    lines.extend(conclusion::lines(summary, width));
    lines.extend(devices::lines(summary, width));
    lines.extend(ranges::lines(summary, width));
    lines.extend(operators::lines(summary, by, width));
    printable_lines(&lines.join("\n"))
}

/// A line for each worker, and the report of the one with the highest peak.
///
/// ```
/// use gpumem_core::read::chrome_trace::{GroupBy, summary};
/// use gpumem_core::report::torch_traces;
///
/// let empty = || summary(br#"{"traceEvents": [], "distributedInfo": {"rank": 1}}"#);
/// let workers = [("w0.json".to_owned(), empty()?), ("w1.json".to_owned(), empty()?)];
/// let text = torch_traces(&workers, GroupBy::Name, 80);
/// assert!(text.starts_with("PyTorch profiler traces · 2 workers"));
/// # Ok::<(), gpumem_core::read::json_file::JsonError>(())
/// ```
pub fn torch_traces(workers: &[(String, TraceSummary)], by: GroupBy, width: usize) -> String {
    if let [(_, summary)] = workers {
        return torch_trace(summary, by, width);
    }
    let title = format!(
        "PyTorch profiler traces · {}",
        count(workers.len(), "worker")
    );
    let mut lines = vec![title];
    for (name, summary) in workers.iter().take(N_WORKERS) {
        let mut parts = vec![format!("  {name}")];
        parts.extend(rank(summary));
        parts.push(match summary.devices.first() {
            Some(device) => format!("{} peak {}", label(device), level(device, device.peak)),
            None => "no memory recorded".to_owned(),
        });
        parts.extend(summary.devices.first().and_then(conclusion::growth_part));
        lines.push(in_parts(&parts, width, "    "));
    }
    if let Some(more) = workers
        .len()
        .checked_sub(N_WORKERS)
        .filter(|more| *more > 0)
    {
        lines.push(format!("  and {more} more"));
    }
    let text = printable_lines(&lines.join("\n"));
    let peak = |summary: &TraceSummary| summary.devices.first().map(|device| device.peak);
    let highest = workers
        .iter()
        .rev()
        .max_by_key(|(_, summary)| peak(summary));
    match highest {
        Some((name, summary)) => {
            let heading = printable_lines(&cut(&format!("highest peak: {name}"), width));
            format!("{text}\n\n{heading}\n{}", torch_trace(summary, by, width))
        }
        None => text,
    }
}

fn title(summary: &TraceSummary, width: usize) -> String {
    let mut parts = vec!["PyTorch profiler trace".to_owned()];
    let n_steps = summary.ranges.iter().filter(|range| range.is_step).count();
    parts.push(count(summary.n_events, "event"));
    parts.push(summary.duration.to_string());
    parts.extend((n_steps > 0).then(|| count(n_steps, "step")));
    parts.extend(rank(summary));
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
fn label(device: &DeviceLevels) -> String {
    let process = device.process.as_ref();
    let process = process.map_or_else(String::new, |process| format!(" of process {process}"));
    format!("{}{process}", device.device)
}

/// A level; with a sign if it is relative to the trace's start.
fn level(device: &DeviceLevels, level: ByteDelta) -> String {
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
