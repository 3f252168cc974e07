//! A traced run: exact levels, and bytes by line, module and stack.

use serde::Serialize;

use super::JsonCell;
use crate::analyze::cell_label;
use crate::recording::{Lifetimes, Recording, Tally, Trace};
use crate::source_text;
use crate::units::{Bytes, Nanos};

#[derive(Serialize)]
pub(super) struct JsonTrace<'a> {
    run: u32,
    device: &'a str,
    cell: JsonCell,
    n_events: u64,
    is_cut: bool,
    total: JsonTally,
    peak: JsonPeak,
    lines: Vec<JsonLine<'a>>,
    modules: Vec<JsonModule<'a>>,
    stacks: Vec<JsonStack<'a>>,
    lifetimes: Vec<JsonLifetimes>,
    steps: JsonSteps,
}

#[derive(Serialize)]
struct JsonTally {
    n_allocations: u64,
    allocated_bytes: u64,
    retained_bytes: u64,
    at_peak_bytes: u64,
    long_lived_bytes: u64,
    longest_nanos: u64,
}

#[derive(Serialize)]
struct JsonPeak {
    at_nanos: u64,
    low_bytes: u64,
    high_bytes: u64,
    from_before_bytes: u64,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    line: Option<u32>,
    text: Option<&'a str>,
    #[serde(flatten)]
    tally: JsonTally,
}

#[derive(Serialize)]
struct JsonModule<'a> {
    path: &'a str,
    #[serde(flatten)]
    tally: JsonTally,
}

#[derive(Serialize)]
struct JsonStack<'a> {
    frames: &'a [String],
    #[serde(flatten)]
    tally: JsonTally,
}

#[derive(Serialize)]
struct JsonLifetimes {
    up_to_nanos: Option<u64>,
    n_blocks: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonSteps {
    at_nanos: Vec<u64>,
    allocated_bytes: Vec<Option<u64>>,
    reserved_bytes: Vec<Option<u64>>,
}

impl<'a> JsonTrace<'a> {
    pub(super) fn of(recording: &'a Recording, trace: &'a Trace) -> Self {
        let run = recording.run(trace.run);
        let cell = recording.cell(run.cell);
        let text = recording.text(run);
        let source = |line: u32| source_text::line(text?, line);
        let steps = || trace.steps.iter();
        Self {
            run: trace.run.0,
            device: &recording.device(trace.device).label,
            cell: JsonCell {
                id: cell.id.clone(),
                label: cell_label(recording, run),
                execution_count: run.execution_count,
            },
            n_events: trace.n_events,
            is_cut: trace.is_cut,
            total: (&trace.total).into(),
            peak: JsonPeak {
                at_nanos: trace.peak.at.get(),
                low_bytes: trace.peak.low.get(),
                high_bytes: trace.peak.high.get(),
                from_before_bytes: trace.peak.from_before.get(),
            },
            lines: (trace.lines.iter())
                .map(|line| JsonLine {
                    line: line.line,
                    text: line.line.and_then(source),
                    tally: (&line.tally).into(),
                })
                .collect(),
            modules: (trace.modules.iter())
                .map(|module| JsonModule {
                    path: &module.path,
                    tally: (&module.tally).into(),
                })
                .collect(),
            stacks: (trace.stacks.iter())
                .map(|stack| JsonStack {
                    frames: &stack.frames,
                    tally: (&stack.tally).into(),
                })
                .collect(),
            lifetimes: trace.lifetimes.iter().map(JsonLifetimes::from).collect(),
            steps: JsonSteps {
                at_nanos: steps().map(|step| step.at.get()).collect(),
                allocated_bytes: steps().map(|step| step.allocated.map(Bytes::get)).collect(),
                reserved_bytes: steps().map(|step| step.reserved.map(Bytes::get)).collect(),
            },
        }
    }
}

impl From<&Tally> for JsonTally {
    fn from(tally: &Tally) -> Self {
        Self {
            n_allocations: tally.n_allocations,
            allocated_bytes: tally.allocated.get(),
            retained_bytes: tally.retained.get(),
            at_peak_bytes: tally.at_peak.get(),
            long_lived_bytes: tally.long_lived.get(),
            longest_nanos: tally.longest.get(),
        }
    }
}

impl From<&Lifetimes> for JsonLifetimes {
    fn from(class: &Lifetimes) -> Self {
        Self {
            up_to_nanos: class.up_to.map(Nanos::get),
            n_blocks: class.n_blocks,
            bytes: class.bytes.get(),
        }
    }
}
