//! Steps and labelled ranges: what each kept, and its peak.

use crate::formats::torch_trace::{change, count, cut, label, level};
use gpumem_model::units::{ByteDelta, Nanos};
use gpumem_readers::chrome_trace::{RangeMemory, TraceRange, TraceSummary};

/// Steps that are listed, the latest.
const N_STEPS: usize = 12;

/// Labels that are listed, those with the longest time.
const N_LABELS: usize = 10;

pub(super) fn lines(summary: &TraceSummary, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let device = summary
        .devices
        .first()
        .map_or_else(String::new, |device| format!(" on {}", label(device)));
    let steps: Vec<&TraceRange> = summary
        .ranges
        .iter()
        .filter(|range| range.is_step)
        .collect();
    if !steps.is_empty() {
        lines.extend([String::new(), cut(&format!("steps{device}"), width)]);
        lines.push(row(["time", "kept", "peak", ""], "step", width));
        let n_earlier = steps.len().saturating_sub(N_STEPS);
        if n_earlier > 0 {
            lines.push(row(
                ["", "", "", ""],
                &format!("… {n_earlier} before these"),
                width,
            ));
        }
        for step in steps.iter().skip(n_earlier) {
            let (kept, peak) = figures(summary, memory(step));
            let time = step.duration.to_string();
            lines.push(row([&time, &kept, &peak, ""], &step.name, width));
        }
    }
    let labels = by_label(&summary.ranges);
    if !labels.is_empty() {
        lines.extend([
            String::new(),
            cut(&format!("labelled ranges{device}"), width),
        ]);
        lines.push(row(["time", "kept", "peak", "calls"], "label", width));
        for found in labels.iter().take(N_LABELS) {
            let (kept, peak) = figures(summary, found.memory);
            let (time, calls) = (found.time.to_string(), found.n_calls.to_string());
            lines.push(row([&time, &kept, &peak, &calls], found.name, width));
        }
        let n_more = labels.len().saturating_sub(N_LABELS);
        if n_more > 0 {
            let words = format!("and {}", count(n_more, "more label"));
            lines.push(row(["", "", "", ""], &words, width));
        }
    }
    lines
}

fn row(figures: [&str; 4], name: &str, width: usize) -> String {
    let [time, kept, peak, calls] = figures;
    let row = format!("  {time:>9} {kept:>10} {peak:>10} {calls:>6}  {name}");
    cut(row.trim_end(), width)
}

/// On the first device.
fn memory(range: &TraceRange) -> Option<RangeMemory> {
    let mut memory = range.memory.iter();
    memory.find(|memory| memory.device_idx == 0).copied()
}

fn figures(summary: &TraceSummary, memory: Option<RangeMemory>) -> (String, String) {
    match (memory, summary.devices.first()) {
        (Some(memory), Some(device)) => (change(memory.kept), level(device, memory.peak)),
        _ => Default::default(),
    }
}

struct RangeLabel<'a> {
    name: &'a str,
    n_calls: usize,
    time: Nanos,
    /// The sum of what was kept, and the highest peak.
    memory: Option<RangeMemory>,
}

fn by_label(ranges: &[TraceRange]) -> Vec<RangeLabel<'_>> {
    let mut sorted: Vec<&TraceRange> = ranges.iter().filter(|range| !range.is_step).collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let groups = sorted.chunk_by(|a, b| a.name == b.name);
    let mut labels: Vec<RangeLabel<'_>> = groups.filter_map(of_label).collect();
    labels.sort_by_key(|label| std::cmp::Reverse(label.time));
    labels
}

fn of_label<'a>(ranges: &[&'a TraceRange]) -> Option<RangeLabel<'a>> {
    let all = || ranges.iter().filter_map(|range| memory(range));
    let kept = all().fold(ByteDelta::new(0), |kept, memory| kept + memory.kept);
    let peak = all().map(|memory| memory.peak).max();
    Some(RangeLabel {
        name: &ranges.first()?.name,
        n_calls: ranges.len(),
        time: ranges
            .iter()
            .fold(Nanos::new(0), |time, range| time + range.duration),
        memory: peak.map(|peak| RangeMemory {
            device_idx: 0,
            kept,
            peak,
        }),
    })
}
