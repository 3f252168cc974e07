//! A memory snapshot of `PyTorch` as JSON.

use serde::Serialize;

use crate::read::code_line::CodeLine;
use crate::read::torch_snapshot::{
    Change, DeviceChange, DeviceSummary, FailedRequest, Lifetimes, Lived, Owner, SnapshotChange,
    SnapshotHolder, StackTotal, Summary, Timeline,
};
use crate::units::Bytes;

/// A snapshot as JSON. Fields named `*_bytes` are bytes, `*_micros` microseconds; unknown is `null`.
pub fn torch_snapshot_json(summary: &Summary) -> String {
    let settings = summary.settings.iter();
    let json = JsonSnapshot {
        devices: summary
            .devices
            .iter()
            .map(|device| JsonDevice::of(device, &summary.frames))
            .collect(),
        settings: settings
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect(),
        n_annotations: summary.n_annotations,
    };
    serde_json::to_string(&json).expect("a snapshot holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonSnapshot<'a> {
    devices: Vec<JsonDevice<'a>>,
    settings: serde_json::Map<String, serde_json::Value>,
    n_annotations: usize,
}

#[derive(Serialize)]
struct JsonDevice<'a> {
    label: String,
    reserved_bytes: u64,
    allocated_bytes: u64,
    active_bytes: u64,
    requested_bytes: u64,
    inactive_bytes: u64,
    releasable_bytes: u64,
    largest_hole_bytes: u64,
    n_segments: usize,
    n_expandable_segments: usize,
    n_blocks: usize,
    n_allocated_blocks: usize,
    is_inconsistent: bool,
    owners: Vec<JsonOwner<'a>>,
    stacks: Vec<JsonStack<'a>>,
    holders: Vec<JsonHolder<'a>>,
    failed_requests: Vec<JsonFailed<'a>>,
    timeline: Option<JsonTimeline<'a>>,
    lifetimes: Vec<JsonLifetimes<'a>>,
}

#[derive(Serialize)]
struct JsonStack<'a> {
    frames: Vec<JsonLine<'a>>,
    bytes: u64,
    n_blocks: usize,
}

#[derive(Serialize)]
struct JsonLifetimes<'a> {
    line: Option<JsonLine<'a>>,
    n_blocks: usize,
    bytes: u64,
    n_left: usize,
    left_bytes: u64,
    median: JsonLived,
    longest: JsonLived,
    longest_wait: Option<JsonLived>,
}

#[derive(Serialize)]
struct JsonLived {
    n_events: usize,
    micros: Option<u64>,
}

#[derive(Serialize)]
struct JsonOwner<'a> {
    line: Option<JsonLine<'a>>,
    bytes: u64,
    n_blocks: usize,
}

#[derive(Serialize)]
struct JsonHolder<'a> {
    name: &'a str,
    bytes: u64,
    n_blocks: usize,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    file: &'a str,
    line: Option<u32>,
    function: &'a str,
}

#[derive(Serialize)]
struct JsonFailed<'a> {
    wanted_bytes: u64,
    driver_free_bytes: Option<u64>,
    largest_hole_bytes: u64,
    line: Option<JsonLine<'a>>,
    n_later_events: usize,
}

#[derive(Serialize)]
struct JsonTimeline<'a> {
    n_events: usize,
    duration_micros: Option<u64>,
    start_bytes: u64,
    end_bytes: u64,
    peak_bytes: u64,
    peak_event: Option<usize>,
    peak_after_micros: Option<u64>,
    owners: Vec<JsonOwner<'a>>,
    from_before_bytes: u64,
    is_lower_bound: bool,
}

impl<'a> JsonDevice<'a> {
    fn of(device: &'a DeviceSummary, frames: &'a [CodeLine]) -> Self {
        let stacks = device.stacks.iter();
        Self {
            label: device.device.to_string(),
            reserved_bytes: device.reserved.get(),
            allocated_bytes: device.allocated.get(),
            active_bytes: device.active.get(),
            requested_bytes: device.requested.get(),
            inactive_bytes: device.inactive.get(),
            releasable_bytes: device.releasable.get(),
            largest_hole_bytes: device.largest_hole.get(),
            n_segments: device.n_segments,
            n_expandable_segments: device.n_expandable,
            n_blocks: device.n_blocks,
            n_allocated_blocks: device.n_allocated_blocks,
            is_inconsistent: device.is_inconsistent,
            owners: device.owners.iter().map(JsonOwner::of).collect(),
            stacks: stacks.map(|stack| JsonStack::of(stack, frames)).collect(),
            holders: device.holders.iter().map(JsonHolder::of).collect(),
            failed_requests: device.failed.iter().map(JsonFailed::of).collect(),
            timeline: device.timeline.as_ref().map(JsonTimeline::of),
            lifetimes: device.lifetimes.iter().map(JsonLifetimes::of).collect(),
        }
    }
}

impl<'a> JsonStack<'a> {
    fn of(stack: &StackTotal, frames: &'a [CodeLine]) -> Self {
        let of_stack = stack.frames.iter();
        let of_stack = of_stack.filter_map(|&frame| frames.get(frame as usize));
        Self {
            frames: of_stack.map(JsonLine::of).collect(),
            bytes: stack.bytes.get(),
            n_blocks: stack.n_blocks,
        }
    }
}

impl<'a> JsonLifetimes<'a> {
    fn of(lived: &'a Lifetimes) -> Self {
        Self {
            line: lived.line.as_ref().map(JsonLine::of),
            n_blocks: lived.n_blocks,
            bytes: lived.bytes.get(),
            n_left: lived.n_left,
            left_bytes: lived.left.get(),
            median: lived.median.into(),
            longest: lived.longest.into(),
            longest_wait: lived.longest_wait.map(Into::into),
        }
    }
}

impl From<Lived> for JsonLived {
    fn from(lived: Lived) -> Self {
        Self {
            n_events: lived.n_events,
            micros: lived.micros,
        }
    }
}

impl<'a> JsonOwner<'a> {
    fn of(owner: &'a Owner) -> Self {
        Self {
            line: owner.line.as_ref().map(JsonLine::of),
            bytes: owner.bytes.get(),
            n_blocks: owner.n_blocks,
        }
    }
}

impl<'a> JsonHolder<'a> {
    fn of(holder: &'a SnapshotHolder) -> Self {
        Self {
            name: &holder.name,
            bytes: holder.bytes.get(),
            n_blocks: holder.n_blocks,
        }
    }
}

impl<'a> JsonLine<'a> {
    fn of(line: &'a CodeLine) -> Self {
        Self {
            file: &line.file,
            line: line.line,
            function: &line.function,
        }
    }
}

impl<'a> JsonFailed<'a> {
    fn of(failed: &'a FailedRequest) -> Self {
        Self {
            wanted_bytes: failed.wanted.get(),
            driver_free_bytes: failed.driver_free.map(Bytes::get),
            largest_hole_bytes: failed.largest_hole.get(),
            line: failed.line.as_ref().map(JsonLine::of),
            n_later_events: failed.n_later,
        }
    }
}

impl<'a> JsonTimeline<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        Self {
            n_events: timeline.n_events,
            duration_micros: timeline.duration_micros,
            start_bytes: timeline.at_start.get(),
            end_bytes: timeline.at_end.get(),
            peak_bytes: timeline.peak.get(),
            peak_event: timeline.peak_event,
            peak_after_micros: timeline.peak_after_micros,
            owners: timeline.owners.iter().map(JsonOwner::of).collect(),
            from_before_bytes: timeline.n_bytes_from_before.get(),
            is_lower_bound: timeline.is_lower_bound,
        }
    }
}

/// A comparison of two snapshots as JSON. Fields named `*_bytes` are bytes: in the earlier snapshot, and in the
/// later one.
pub fn torch_change_json(change: &SnapshotChange) -> String {
    let json = JsonChange {
        devices: change.devices.iter().map(JsonDeviceChange::of).collect(),
    };
    serde_json::to_string(&json).expect("a comparison holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonChange<'a> {
    devices: Vec<JsonDeviceChange<'a>>,
}

#[derive(Serialize)]
struct JsonDeviceChange<'a> {
    label: String,
    reserved_bytes: [u64; 2],
    allocated_bytes: [u64; 2],
    largest_hole_bytes: [u64; 2],
    stacks: Vec<JsonStackChange<'a>>,
    holders: Vec<JsonHolderChange<'a>>,
}

#[derive(Serialize)]
struct JsonStackChange<'a> {
    frames: Vec<JsonLine<'a>>,
    bytes: [u64; 2],
    n_blocks: [usize; 2],
}

#[derive(Serialize)]
struct JsonHolderChange<'a> {
    name: &'a str,
    bytes: [u64; 2],
    n_blocks: [usize; 2],
}

impl<'a> JsonDeviceChange<'a> {
    fn of(device: &'a DeviceChange) -> Self {
        let stack = |it: &'a Change<Vec<CodeLine>>| JsonStackChange {
            frames: it.whose.iter().map(JsonLine::of).collect(),
            bytes: pair(it.bytes),
            n_blocks: it.n_blocks.into(),
        };
        let holder = |it: &'a Change<String>| JsonHolderChange {
            name: &it.whose,
            bytes: pair(it.bytes),
            n_blocks: it.n_blocks.into(),
        };
        Self {
            label: device.device.to_string(),
            reserved_bytes: pair(device.reserved),
            allocated_bytes: pair(device.allocated),
            largest_hole_bytes: pair(device.largest_hole),
            stacks: device.stacks.iter().map(stack).collect(),
            holders: device.holders.iter().map(holder).collect(),
        }
    }
}

fn pair((before, after): (Bytes, Bytes)) -> [u64; 2] {
    [before.get(), after.get()]
}
