//! A traced run: exact levels, and bytes by line, module and stack.

use serde::Serialize;

use gpumem_analyzer::CellRef;
use gpumem_model::recording::{LineTally, Recording, Trace};
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, Nanos};

#[derive(Serialize)]
pub(super) struct JsonTrace<'a> {
    device: &'a str,
    cell: CellRef,
    #[serde(flatten)]
    trace: &'a Trace,
    lines: Vec<JsonLine<'a>>,
    steps: JsonSteps,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    text: Option<&'a str>,
    #[serde(flatten)]
    tally: &'a LineTally,
}

#[derive(Serialize)]
struct JsonSteps {
    at_nanos: Vec<Nanos>,
    allocated_bytes: Vec<Option<Bytes>>,
    reserved_bytes: Vec<Option<Bytes>>,
}

impl<'a> JsonTrace<'a> {
    pub(super) fn new(recording: &'a Recording, trace: &'a Trace) -> Self {
        let run = recording.run(trace.run);
        let text = recording.text(run);
        let source = |line: u32| source_text::line(text?, line);
        let lines = trace.lines.iter().map(|tally| JsonLine {
            text: tally.line.and_then(source),
            tally,
        });
        let steps = || trace.steps.iter();
        Self {
            device: &recording.device(trace.device).label,
            cell: CellRef::at(recording, run),
            trace,
            lines: lines.collect(),
            steps: JsonSteps {
                at_nanos: steps().map(|step| step.at).collect(),
                allocated_bytes: steps().map(|step| step.allocated).collect(),
                reserved_bytes: steps().map(|step| step.reserved).collect(),
            },
        }
    }
}
