//! The loops that were counted while a run went on.

use gpumem_model::object;
use gpumem_model::recording::{
    Device, FrameOrigin, Loop, Points, Recording, Run, RunLevels, Sample, Series,
};

pub(super) struct JsonLoop<'a> {
    recording: &'a Recording,
    run: &'a Run,
    counted: &'a Loop,
}

object! { JsonLoop<'_>, it => {
    run: it.counted.run,
    loop: it.counted.idx,
    parent: it.counted.parent,
    kind: it.counted.kind.name(),
    file: (it.counted.origin == FrameOrigin::File).then_some(&it.counted.file),
    execution_count: match it.counted.origin {
        FrameOrigin::Own => it.run.execution_count,
        FrameOrigin::Cell(number) => Some(number),
        FrameOrigin::File => None,
    },
    line: it.counted.line,
    text: Some(&it.counted.text).filter(|text| !text.is_empty()),
    function: it.counted.function,
    is_library: it.counted.is_library,
    n_iterations: it.counted.n_iterations,
    is_estimate: it.counted.is_estimate,
    was_running: it.counted.was_running,
    counted_from_nanos: it.counted.counted_from,
    last_nanos: it.counted.last_at,
    n_marks: it.counted.n_marks,
    levels: it.levels(),
}}

/// What was read of one device where iterations ended.
struct JsonLevels<'a>(&'a Device, &'a Points);

object! { JsonLevels<'_>, it => {
    device: it.0.label,
    n_readings: it.1.len(),
    first: it.1.iter().next().map(JsonReading),
    last: it.1.iter().last().map(JsonReading),
}}

struct JsonReading(Sample);

object! { JsonReading, it => {
    iteration: it.0.ordinal,
    at_nanos: it.0.at,
    allocated_bytes: it.0.allocated,
    process_used_bytes: it.0.process_used,
    device_used_bytes: it.0.device_used,
}}

impl<'a> JsonLoop<'a> {
    pub(super) fn all(recording: &'a Recording) -> Vec<Self> {
        let loops = |run: &'a Run| {
            let of_run = recording.loops(run.idx);
            of_run.map(move |counted| Self {
                recording,
                run,
                counted,
            })
        };
        recording.runs().iter().flat_map(loops).collect()
    }

    fn levels(&self) -> Vec<JsonLevels<'a>> {
        let on_device = |levels: &RunLevels| {
            let series = Series::Loop(self.counted.idx);
            let points = self
                .recording
                .samples(self.counted.run, levels.device, &series);
            (!points.is_empty()).then(|| JsonLevels(self.recording.device(levels.device), points))
        };
        self.run.levels.iter().filter_map(on_device).collect()
    }
}
