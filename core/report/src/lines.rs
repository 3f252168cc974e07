//! What the lines of a traced cell allocated, next to their source.

use super::cut;
use gpumem_analyzer::cell_label;
use gpumem_model::recording::{LineTally, Recording, Trace};
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, count_of};

/// At most this many traced runs, the latest.
const N_RUNS: usize = 3;

/// At most this many lines of each, the heaviest.
const N_LINES: usize = 10;

/// At most this many classes of modules.
const N_MODULES: usize = 6;

/// A table for each cell that was traced, of its latest traced run.
pub(super) fn traced(recording: &Recording, width: usize) -> Vec<String> {
    let mut latest: Vec<&Trace> = Vec::new();
    for trace in recording.traces().rev() {
        let run = recording.run(trace.run);
        let is_same = |other: &&Trace| {
            let of_other = recording.run(other.run);
            (of_other.revision, other.device) == (run.revision, trace.device)
        };
        if run.parent.is_none() && latest.len() < N_RUNS && !latest.iter().any(is_same) {
            latest.push(trace);
        }
    }
    let tables = latest.into_iter().rev();
    tables
        .flat_map(|trace| table(recording, trace))
        .map(|line| cut(&line, width))
        .collect()
}

fn table(recording: &Recording, trace: &Trace) -> Vec<String> {
    let run = recording.run(trace.run);
    let text = recording.text(run);
    let number = run.execution_count.map(|n| format!("In [{n}]"));
    let title = [
        Some(format!("Traced · {}", cell_label(recording, run))),
        number,
        Some(recording.device(trace.device).label.clone()),
    ];
    let details = [
        Some(count_of(trace.total.n_allocations, "allocation")),
        Some(peak_words(trace)),
        trace
            .is_cut
            .then(|| "only its end is known: its history was too long".to_owned()),
    ];
    let mut lines = vec![joined(title), format!("  {}", joined(details))];
    if !trace.lines.is_empty() {
        lines.push(columns("kept", "at peak", "line", ""));
    }
    let mut heaviest: Vec<&LineTally> = trace.lines.iter().take(N_LINES).collect();
    heaviest.sort_by_key(|line| (line.line.is_none(), line.line));
    lines.extend(heaviest.into_iter().map(|line| line_row(line, text)));
    let n_more = trace.lines.len().saturating_sub(N_LINES);
    if n_more > 0 {
        lines.push(columns("", "", "…", &format!("and {n_more} more")));
    }
    for module in trace.modules.iter().take(N_MODULES) {
        let tally = &module.tally;
        let (kept, at_peak) = (size(tally.retained), size(tally.at_peak));
        lines.push(columns(&kept, &at_peak, "in", &module.path));
    }
    lines.push(String::new());
    lines
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn line_row(line: &LineTally, text: Option<&str>) -> String {
    let (kept, at_peak) = (size(line.tally.retained), size(line.tally.at_peak));
    let Some(number) = line.line else {
        let words = "no line of this cell: a backward pass, or another thread";
        return columns(&kept, &at_peak, "–", words);
    };
    let source = text.and_then(|text| source_text::line(text, number));
    let source = source.unwrap_or_default().trim_end();
    columns(&kept, &at_peak, &number.to_string(), source)
}

fn columns(kept: &str, at_peak: &str, line: &str, source: &str) -> String {
    let row = format!("  {kept:>10} {at_peak:>10} {line:>5}  {source}");
    row.trim_end().to_owned()
}

fn size(bytes: Bytes) -> String {
    if bytes == Bytes::ZERO {
        "–".to_owned()
    } else {
        bytes.to_string()
    }
}

fn peak_words(trace: &Trace) -> String {
    let (low, high) = (trace.peak.low.to_string(), trace.peak.high.to_string());
    let before = trace.peak.from_before;
    let peak = if low == high {
        low
    } else {
        format!("{low} to {high}")
    };
    if before == Bytes::ZERO {
        return format!("peak {peak}");
    }
    format!("peak {peak}, {before} of it from before")
}
