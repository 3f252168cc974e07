//! A trace of PyTorch's profiler as JSON.

use serde::Serialize;

use super::JsonGrowth;
use crate::read::chrome_trace::{
    DeviceLevels, FailedAllocation, Operator, OperatorOwner, PeakPlace, Range, TraceSummary,
};
use crate::units::{ByteDelta, Bytes};

/// A trace as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
pub fn torch_trace_json(summary: &TraceSummary) -> String {
    serde_json::to_string(&JsonTrace::of(summary)).expect("a trace holds strings and numbers only")
}

/// Several workers' traces as JSON: `{"workers": {"NAME": {…}}}`, by the files' names.
pub fn torch_traces_json(workers: &[(String, TraceSummary)]) -> String {
    let workers = workers.iter();
    let workers = workers.map(|(name, summary)| {
        let trace = serde_json::to_value(JsonTrace::of(summary));
        (
            name.clone(),
            trace.expect("a trace holds strings and numbers only"),
        )
    });
    let workers: serde_json::Map<String, serde_json::Value> = workers.collect();
    serde_json::json!({ "workers": workers }).to_string()
}

#[derive(Serialize)]
struct JsonTrace<'a> {
    rank: Option<u64>,
    world_size: Option<u64>,
    backend: Option<&'a str>,
    n_events: usize,
    duration_nanos: u64,
    devices: Vec<JsonDevice<'a>>,
    failed_requests: Vec<JsonFailed>,
    ranges: Vec<JsonRange<'a>>,
    operators: Vec<JsonOperator<'a>>,
    operators_by_shapes: Vec<JsonOperator<'a>>,
    operators_by_module: Vec<JsonOperator<'a>>,
    operators_by_function: Vec<JsonOperator<'a>>,
    kernels: Vec<JsonKernel<'a>>,
}

#[derive(Serialize)]
struct JsonDevice<'a> {
    label: String,
    process: Option<&'a str>,
    model: Option<&'a str>,
    total_bytes: Option<u64>,
    is_relative: bool,
    n_changes: usize,
    start_bytes: i64,
    peak_bytes: i64,
    peak_place: Option<JsonPlace<'a>>,
    owners_at_peak: Option<Vec<JsonOwner<'a>>>,
    owners_at_end: Option<Vec<JsonOwner<'a>>>,
    end_bytes: i64,
    peak_reserved_bytes: Option<u64>,
    after_steps_bytes: Vec<i64>,
    growth: Option<JsonGrowth>,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    after_nanos: u64,
    operator: Option<&'a str>,
    module: Option<&'a str>,
    function: Option<&'a str>,
    range: Option<&'a str>,
    step: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonOwner<'a> {
    operator: Option<&'a str>,
    allocated_by: Option<&'a str>,
    module: Option<&'a str>,
    function: Option<&'a str>,
    bytes: u64,
    n_blocks: usize,
}

#[derive(Serialize)]
struct JsonFailed {
    device: String,
    wanted_bytes: u64,
    allocated_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    after_nanos: u64,
}

#[derive(Serialize)]
struct JsonRange<'a> {
    name: &'a str,
    is_step: bool,
    parent_idx: Option<usize>,
    start_nanos: u64,
    duration_nanos: u64,
    memory: Vec<JsonRangeMemory>,
}

#[derive(Serialize)]
struct JsonRangeMemory {
    device_idx: usize,
    kept_bytes: i64,
    peak_bytes: i64,
}

#[derive(Serialize)]
struct JsonOperator<'a> {
    name: &'a str,
    within: Option<&'a str>,
    is_runtime: bool,
    n_calls: usize,
    total_nanos: u64,
    self_nanos: u64,
    device_nanos: u64,
    memory: Vec<JsonOperatorMemory>,
}

#[derive(Serialize)]
struct JsonOperatorMemory {
    device_idx: usize,
    self_bytes: i64,
    allocated_bytes: u64,
}

#[derive(Serialize)]
struct JsonKernel<'a> {
    name: &'a str,
    n_calls: usize,
    total_nanos: u64,
}

impl<'a> JsonTrace<'a> {
    fn of(summary: &'a TraceSummary) -> Self {
        let operators = |rows: &'a [Operator]| rows.iter().map(JsonOperator::of).collect();
        Self {
            rank: summary.worker.rank,
            world_size: summary.worker.world_size,
            backend: summary.worker.backend.as_deref(),
            n_events: summary.n_events,
            duration_nanos: summary.duration.get(),
            devices: summary.devices.iter().map(JsonDevice::of).collect(),
            failed_requests: summary.failed.iter().map(JsonFailed::of).collect(),
            ranges: summary.ranges.iter().map(JsonRange::of).collect(),
            operators: operators(&summary.operators),
            operators_by_shapes: operators(&summary.by_shapes),
            operators_by_module: operators(&summary.by_module),
            operators_by_function: operators(&summary.by_function),
            kernels: summary.kernels.iter().map(JsonKernel::of).collect(),
        }
    }
}

impl<'a> JsonDevice<'a> {
    fn of(device: &'a DeviceLevels) -> Self {
        let owners = |owners: &'a Option<Vec<OperatorOwner>>| {
            let owners = owners.as_ref()?.iter();
            Some(owners.map(JsonOwner::of).collect())
        };
        Self {
            label: device.device.to_string(),
            process: device.process.as_deref(),
            model: device.model.as_deref(),
            total_bytes: device.total.map(Bytes::get),
            is_relative: !device.is_absolute,
            n_changes: device.n_changes,
            start_bytes: device.at_start.get(),
            peak_bytes: device.peak.get(),
            peak_place: device.peak_place.as_ref().map(JsonPlace::of),
            owners_at_peak: owners(&device.owners_at_peak),
            owners_at_end: owners(&device.owners_at_end),
            end_bytes: device.at_end.get(),
            peak_reserved_bytes: device.peak_reserved.map(Bytes::get),
            after_steps_bytes: device
                .after_steps
                .iter()
                .copied()
                .map(ByteDelta::get)
                .collect(),
            growth: device.growth.as_ref().map(JsonGrowth::of),
        }
    }
}

impl<'a> JsonPlace<'a> {
    fn of(place: &'a PeakPlace) -> Self {
        Self {
            after_nanos: place.after.get(),
            operator: place.operator.as_deref(),
            module: place.module.as_deref(),
            function: place.function.as_deref(),
            range: place.range.as_deref(),
            step: place.step.as_deref(),
        }
    }
}

impl<'a> JsonOwner<'a> {
    fn of(owner: &'a OperatorOwner) -> Self {
        Self {
            operator: owner.operator.as_deref(),
            allocated_by: owner.allocated_by.as_deref(),
            module: owner.module.as_deref(),
            function: owner.function.as_deref(),
            bytes: owner.bytes.get(),
            n_blocks: owner.n_blocks,
        }
    }
}

impl JsonFailed {
    fn of(failed: &FailedAllocation) -> Self {
        Self {
            device: failed.device.to_string(),
            wanted_bytes: failed.wanted.get(),
            allocated_bytes: failed.allocated.map(Bytes::get),
            reserved_bytes: failed.reserved.map(Bytes::get),
            after_nanos: failed.after.get(),
        }
    }
}

impl<'a> JsonRange<'a> {
    fn of(range: &'a Range) -> Self {
        let memory = range.memory.iter().map(|memory| JsonRangeMemory {
            device_idx: memory.device_idx,
            kept_bytes: memory.kept.get(),
            peak_bytes: memory.peak.get(),
        });
        Self {
            name: &range.name,
            is_step: range.is_step,
            parent_idx: range.parent_idx,
            start_nanos: range.start.get(),
            duration_nanos: range.duration.get(),
            memory: memory.collect(),
        }
    }
}

impl<'a> JsonOperator<'a> {
    fn of(operator: &'a Operator) -> Self {
        let memory = operator.memory.iter().map(|memory| JsonOperatorMemory {
            device_idx: memory.device_idx,
            self_bytes: memory.kept.get(),
            allocated_bytes: memory.allocated.get(),
        });
        Self {
            name: &operator.name,
            within: operator.within.as_deref(),
            is_runtime: operator.is_runtime,
            n_calls: operator.n_calls,
            total_nanos: operator.total.get(),
            self_nanos: operator.own.get(),
            device_nanos: operator.on_device.get(),
            memory: memory.collect(),
        }
    }
}

impl<'a> JsonKernel<'a> {
    fn of(kernel: &'a Operator) -> Self {
        Self {
            name: &kernel.name,
            n_calls: kernel.n_calls,
            total_nanos: kernel.total.get(),
        }
    }
}
