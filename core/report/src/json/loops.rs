//! The loops that were counted while a run went on.

use serde::Serialize;

use gpumem_model::recording::FrameOrigin;
use gpumem_model::recording::{DeviceIdx, Loop, Points, Recording, Series};
use gpumem_model::units::Bytes;

#[derive(Serialize)]
pub(super) struct JsonLoop<'a> {
    run: u32,
    #[serde(rename = "loop")]
    number: u32,
    parent: Option<u32>,
    kind: &'static str,
    file: Option<&'a str>,
    execution_count: Option<u32>,
    line: u32,
    text: Option<&'a str>,
    function: &'a str,
    is_library: bool,
    n_iterations: u64,
    is_estimate: bool,
    was_running: bool,
    counted_from_nanos: u64,
    last_nanos: u64,
    n_marks: u64,
    levels: Vec<JsonLevels<'a>>,
}

/// What was read of one device where iterations ended.
#[derive(Serialize)]
struct JsonLevels<'a> {
    device: &'a str,
    n_readings: usize,
    first: Option<JsonReading>,
    last: Option<JsonReading>,
}

#[derive(Serialize)]
struct JsonReading {
    iteration: u64,
    at_nanos: u64,
    allocated_bytes: Option<u64>,
    process_used_bytes: Option<u64>,
    device_used_bytes: Option<u64>,
}

impl<'a> JsonLoop<'a> {
    pub(super) fn all(recording: &'a Recording) -> Vec<Self> {
        let runs = recording.runs().iter();
        runs.flat_map(|run| recording.loops(run.idx))
            .map(|counted| Self::new(recording, counted))
            .collect()
    }

    fn new(recording: &'a Recording, counted: &'a Loop) -> Self {
        let run = recording.run(counted.run);
        let devices = run.levels.iter().map(|levels| levels.device);
        let (file, execution_count) = match counted.origin {
            FrameOrigin::Own => (None, run.execution_count),
            FrameOrigin::Cell(number) => (None, Some(number)),
            FrameOrigin::File => (Some(counted.file.as_str()), None),
        };
        Self {
            run: counted.run.0,
            number: counted.idx.0,
            parent: counted.parent.map(|parent| parent.0),
            kind: counted.kind.name(),
            file,
            execution_count,
            line: counted.line,
            text: Some(&*counted.text).filter(|text| !text.is_empty()),
            function: &counted.function,
            is_library: counted.is_library,
            n_iterations: counted.n_iterations,
            is_estimate: counted.is_estimate,
            was_running: counted.was_running,
            counted_from_nanos: counted.counted_from.get(),
            last_nanos: counted.last_at.get(),
            n_marks: counted.n_marks,
            levels: devices
                .filter_map(|device| JsonLevels::new(recording, counted, device))
                .collect(),
        }
    }
}

impl<'a> JsonLevels<'a> {
    fn new(recording: &'a Recording, counted: &Loop, device: DeviceIdx) -> Option<Self> {
        let points = recording.samples(counted.run, device, &Series::Loop(counted.idx));
        (!points.is_empty()).then(|| Self {
            device: &recording.device(device).label,
            n_readings: points.len(),
            first: JsonReading::new(points, 0),
            last: JsonReading::new(points, points.len() - 1),
        })
    }
}

impl JsonReading {
    fn new(points: &Points, idx: usize) -> Option<Self> {
        let point = points.iter().nth(idx)?;
        Some(Self {
            iteration: point.ordinal,
            at_nanos: point.at.get(),
            allocated_bytes: point.allocated.map(Bytes::get),
            process_used_bytes: point.process_used.map(Bytes::get),
            device_used_bytes: point.device_used.map(Bytes::get),
        })
    }
}
