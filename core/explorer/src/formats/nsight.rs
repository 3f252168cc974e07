//! Exports of Nsight Systems, and its reports, which have to be exported first.

use std::sync::Arc;

use gpumem_model::units::{ByteDelta, count};
use gpumem_readers::container::Container;
use gpumem_readers::nsight::{
    CallTally, NsightExport, NsightFailure, REPORT_BEGINS, RangeTally, TITLE,
};
use gpumem_report::columns::{cut, in_parts, to_text, wrapped};
use serde::Serialize;

use super::level_log::JsonLog;
use super::{Content, FileFigure, ReadMethod, RegistryEntry};

/// At most this many failed calls are listed, the first.
const N_FAILED: usize = 5;

/// At most this many functions are listed, those that took longest.
const N_CALLS: usize = 10;

/// At most this many names of ranges are listed, those that kept most.
const N_RANGES: usize = 15;

/// An `SQLite` database.
pub(super) struct NsightSystems;

/// A `.nsys-rep` or `.qdrep`.
pub(super) struct NsightReport;

impl RegistryEntry for NsightSystems {
    const LISTED: Option<&'static str> = Some("SQLite exports of Nsight Systems");
    const READING: ReadMethod = ReadMethod::Rows(|capture| Arc::new(capture.summed_up()));

    fn recognises(container: Container, _head: &[u8]) -> bool {
        container == Container::Sqlite
    }
}

impl RegistryEntry for NsightReport {
    const NAME: Option<&'static str> = Some("a report of Nsight Systems");
    const READING: ReadMethod = ReadMethod::Elsewhere(|name| {
        format!(
            "a report of Nsight Systems, which only its own tools read\nhint: `nsys export --type sqlite {name}` makes \
             what gpumem reads"
        )
    });

    fn recognises(_container: Container, head: &[u8]) -> bool {
        head.starts_with(REPORT_BEGINS)
    }
}

impl Content for NsightExport {
    fn kind(&self) -> &'static str {
        "an export of Nsight Systems"
    }

    /// What failed, what rose, and what each NVTX range kept.
    fn text(&self, width: usize) -> String {
        text(self, width)
    }

    /// A log of levels with `failed_calls` and `ranges`. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds
    /// since the capture's start; unknown is `null`.
    fn json(&self) -> String {
        let json = JsonExport {
            log: JsonLog(&self.log),
            export: self,
        };
        serde_json::to_string(&json).expect("an export holds strings and numbers only")
    }

    fn measures(&self) -> Option<Vec<FileFigure>> {
        self.log.measures()
    }

    fn repr(&self) -> String {
        let failed = count(self.failed.len(), "failed call");
        let ranges = count(self.n_ranges, "range");
        format!("<NsightExport: {failed}, {ranges}>")
    }
}

#[derive(Serialize)]
struct JsonExport<'a> {
    #[serde(flatten)]
    log: JsonLog<'a>,
    #[serde(flatten)]
    export: &'a NsightExport,
}

fn text(export: &NsightExport, width: usize) -> String {
    let mut lines = Vec::new();
    if export.has_memory {
        let log = export.log.text(width);
        let (title, rest) = log.split_once('\n').unwrap_or((&log, ""));
        lines.push(title.to_owned());
        lines.extend(failed_lines(&export.failed, width));
        lines.extend((!rest.is_empty()).then(|| rest.to_owned()));
        lines.push(String::new());
        let words = "Levels are what CUDA allocated during the capture, without contexts and code.";
        lines.push(wrapped(words, width));
    } else {
        lines.push(wrapped(&format!("{TITLE} · no memory was recorded"), width));
        let words = "  Levels take `nsys profile --cuda-memory-usage=true`. Calls and ranges are there without it.";
        lines.push(wrapped(words, width));
        lines.extend(failed_lines(&export.failed, width));
        if export.failed.is_empty() {
            let words = if export.has_results {
                "no allocation failed"
            } else {
                "whether an allocation failed was not recorded: this takes `nsys profile --trace=cuda`"
            };
            lines.push(wrapped(words, width));
        }
        lines.extend(call_lines(
            export.calls.as_deref().unwrap_or_default(),
            width,
        ));
    }
    lines.extend(range_lines(export, width));
    to_text(&lines)
}

fn failed_lines(failed: &[NsightFailure], width: usize) -> Vec<String> {
    let shown = failed.iter().take(N_FAILED);
    let line = |failure: &NsightFailure| in_parts(&failure_parts(failure), width, "    ");
    let mut lines: Vec<String> = shown.map(line).collect();
    let n_more = failed.len().saturating_sub(N_FAILED);
    if n_more > 0 {
        lines.push(format!("  … and {}", count(n_more, "later failed call")));
    }
    lines
}

/// How often memory was taken and given back, and how long this took.
fn call_lines(calls: &[CallTally], width: usize) -> Vec<String> {
    if calls.is_empty() {
        return Vec::new();
    }
    let row = |[n, total, longest, name]: [&str; 4]| {
        cut(&format!("{n:>8} {total:>10} {longest:>10}  {name}"), width)
    };
    let mut lines = vec![String::new(), row(["calls", "time", "longest", "call"])];
    for call in calls.iter().take(N_CALLS) {
        let [total, longest] = [call.total, call.longest].map(|time| time.to_string());
        lines.push(row([
            &call.n_calls.to_string(),
            &total,
            &longest,
            &call.function,
        ]));
    }
    let n_more = calls.len().saturating_sub(N_CALLS);
    if n_more > 0 {
        lines.push(format!("… and {}", count(n_more, "more call")));
    }
    lines
}

fn failure_parts(failure: &NsightFailure) -> Vec<String> {
    let what = match failure.code {
        2 => "out of memory".to_owned(),
        code => format!("CUDA error {code}"),
    };
    let mut parts = vec![format!(
        "▲ {what}: {} of process {} failed {} after the start",
        failure.function, failure.pid, failure.after
    )];
    parts.extend(failure.allocated.map(|bytes| format!("it had {bytes}")));
    if !failure.ranges.is_empty() {
        parts.push(format!("in {}", failure.ranges.join(" › ")));
    }
    parts
}

fn range_lines(export: &NsightExport, width: usize) -> Vec<String> {
    if export.ranges.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    if !export.has_memory {
        let names = count(export.ranges.len(), "name");
        let ranges = count(export.n_ranges, "NVTX range");
        lines.push(format!(
            "{ranges} of {names}: without memory, what they kept is unknown"
        ));
        return lines;
    }
    let [runs, grew, kept, most, peak] = ["runs", "grew", "kept", "most", "peak"];
    let head = format!("{runs:>6} {grew:>6} {kept:>10} {most:>10} {peak:>9}  NVTX range");
    lines.push(cut(&head, width));
    let kept_or_peaked = |it: &&RangeTally| it.kept != ByteDelta::ZERO || it.peak.get() > 0;
    let shown = export.ranges.iter().filter(kept_or_peaked).take(N_RANGES);
    let row = |it: &RangeTally| {
        let (n, n_grew) = (it.n, it.n_grew);
        let [kept, most] = [it.kept, it.most_kept].map(|delta| delta.to_string());
        let peak = it.peak.to_string();
        let line = format!(
            "{n:>6} {n_grew:>6} {kept:>10} {most:>10} {peak:>9}  {}",
            it.name
        );
        cut(&line, width)
    };
    let rows: Vec<String> = shown.map(row).collect();
    let n_more = export.ranges.len() - rows.len();
    lines.extend(rows);
    if n_more > 0 {
        lines.push(format!("… and {}", count(n_more, "more name")));
    }
    let words = "kept: the process's level at the range's end, less that at its start. Growth in every \
                 run of a range may be a leak: `%gpumem on` names what holds it.";
    lines.push(wrapped(words, width));
    lines
}
