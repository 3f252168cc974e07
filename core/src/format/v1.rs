//! Version 1 of the wire: what is written today.
//!
//! Every field has a name and a default; sizes are bytes, times nanoseconds
//! since the recording's start. The module above lists them for other readers.

mod holders;
mod oom;
mod samples;
mod segments;
mod trace;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recording::{
    AllocatorLevels, Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Finish, Frame,
    Header, Level, Reading, Revision, Run, RunIdx, RunKind, RunLevels, Sample, Source, SourceHash,
    SourceState, Status, Unknown,
};
use crate::units::{Bytes, Nanos};
use oom::WireOutOfMemory;

pub(super) use holders::WireHolders;
pub(super) use samples::WireSamples;
pub(super) use segments::WireSegments;
pub(super) use trace::WireTrace;

/// The version that this file reads and writes.
pub(super) const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(super) struct WireHeader {
    pub(super) format: u32,
    #[serde(default)]
    session: String,
    #[serde(default)]
    wall_anchor_nanos: u64,
    #[serde(default)]
    versions: BTreeMap<String, String>,
    #[serde(default)]
    sources: Vec<WireSourceState>,
}

#[derive(Serialize, Deserialize)]
struct WireSourceState {
    source: String,
    #[serde(default)]
    used: bool,
    #[serde(default)]
    reason: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WireDevice {
    idx: u32,
    key: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    name: String,
    class: WireDeviceKind,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireDeviceKind {
    Gpu,
    Simulated,
    Managed,
    Pinned,
    Host,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WireCell {
    idx: u32,
    id: String,
    #[serde(default)]
    revisions: Vec<WireRevision>,
}

#[derive(Serialize, Deserialize)]
struct WireRevision {
    hash: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WireRun {
    idx: u32,
    cell: u32,
    #[serde(default)]
    revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    class: WireRunKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    execution_count: Option<u32>,
    started_nanos: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_nanos: Option<u64>,
    status: WireStatus,
    #[serde(default)]
    levels: Vec<WireRunLevels>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oom: Option<WireOutOfMemory>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireRunKind {
    Cell,
    Block,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireStatus {
    Running,
    Ok,
    Error,
    Interrupted,
    OutOfMemory,
}

#[derive(Serialize, Deserialize)]
struct WireRunLevels {
    device: u32,
    before: WireReading,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<WireReading>,
    #[serde(default)]
    peak_reset: bool,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireReading {
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    device_used: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    process_used: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    capacity: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    container_limit: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    service_limit: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    host_limit: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    children_used: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    driver_reserved: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    pool_used: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    pool_reserved: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    graph_used: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    graph_reserved: WireLevel,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allocators: Vec<WireAllocator>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireAllocator {
    source: String,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    allocated: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    requested: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    active: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    reserved: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    inactive_split: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    largest_free: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    peak_allocated: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    total_allocated: WireLevel,
    #[serde(skip_serializing_if = "WireLevel::is_not_read")]
    limit: WireLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_peak_resets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_retries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_ooms: Option<u64>,
}

/// A number of bytes, or the reason why there is none; absent: nothing reads it.
#[derive(Default, Serialize, Deserialize)]
#[serde(untagged)]
enum WireLevel {
    Known(u64),
    Unknown(String),
    #[default]
    NotRead,
}

impl WireLevel {
    fn is_not_read(&self) -> bool {
        matches!(self, Self::NotRead)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct WireFinish {
    at_nanos: u64,
}

impl From<&Header> for WireHeader {
    fn from(header: &Header) -> Self {
        let state = |state: &SourceState| WireSourceState {
            source: state.source.name().to_owned(),
            used: state.used,
            reason: state.reason.clone(),
        };
        Self {
            format: VERSION,
            session: header.session.clone(),
            wall_anchor_nanos: header.wall_anchor.get(),
            versions: header.versions.clone(),
            sources: header.sources.iter().map(state).collect(),
        }
    }
}

impl From<WireHeader> for Frame {
    fn from(wire: WireHeader) -> Self {
        let state = |state: WireSourceState| {
            Some(SourceState {
                source: Source::from_name(&state.source)?,
                used: state.used,
                reason: state.reason,
            })
        };
        Self::Header(Header {
            session: wire.session,
            wall_anchor: Nanos::new(wire.wall_anchor_nanos),
            versions: wire.versions,
            sources: wire.sources.into_iter().filter_map(state).collect(),
        })
    }
}

impl From<&Device> for WireDevice {
    fn from(device: &Device) -> Self {
        Self {
            idx: device.idx.0,
            key: device.key.clone(),
            label: device.label.clone(),
            name: device.name.clone(),
            class: match device.kind {
                DeviceKind::Gpu => WireDeviceKind::Gpu,
                DeviceKind::Simulated => WireDeviceKind::Simulated,
                DeviceKind::Managed => WireDeviceKind::Managed,
                DeviceKind::Pinned => WireDeviceKind::Pinned,
                DeviceKind::Host => WireDeviceKind::Host,
            },
        }
    }
}

impl From<WireDevice> for Frame {
    fn from(wire: WireDevice) -> Self {
        Self::Device(Device {
            idx: DeviceIdx(wire.idx),
            key: wire.key,
            label: wire.label,
            name: wire.name,
            kind: match wire.class {
                WireDeviceKind::Gpu => DeviceKind::Gpu,
                WireDeviceKind::Simulated => DeviceKind::Simulated,
                WireDeviceKind::Managed => DeviceKind::Managed,
                WireDeviceKind::Pinned => DeviceKind::Pinned,
                WireDeviceKind::Host => DeviceKind::Host,
            },
        })
    }
}

impl From<&Cell> for WireCell {
    fn from(cell: &Cell) -> Self {
        let revision = |revision: &Revision| WireRevision {
            hash: revision.hash.0,
            text: revision.text.clone(),
        };
        Self {
            idx: cell.idx.0,
            id: cell.id.clone(),
            revisions: cell.revisions.iter().map(revision).collect(),
        }
    }
}

impl From<WireCell> for Frame {
    fn from(wire: WireCell) -> Self {
        let revision = |revision: WireRevision| Revision {
            hash: SourceHash(revision.hash),
            text: revision.text,
        };
        Self::Cell(Cell {
            idx: CellIdx(wire.idx),
            id: wire.id,
            revisions: wire.revisions.into_iter().map(revision).collect(),
        })
    }
}

impl From<&Run> for WireRun {
    fn from(run: &Run) -> Self {
        Self {
            idx: run.idx.0,
            cell: run.cell.0,
            revision: run.revision.0,
            parent: run.parent.map(|parent| parent.0),
            class: match run.kind {
                RunKind::Cell => WireRunKind::Cell,
                RunKind::Block => WireRunKind::Block,
            },
            label: run.label.clone(),
            execution_count: run.execution_count,
            started_nanos: run.started.get(),
            ended_nanos: run.ended.map(Nanos::get),
            status: match run.status {
                Status::Running => WireStatus::Running,
                Status::Ok => WireStatus::Ok,
                Status::Error => WireStatus::Error,
                Status::Interrupted => WireStatus::Interrupted,
                Status::OutOfMemory => WireStatus::OutOfMemory,
            },
            levels: run.levels.iter().map(WireRunLevels::from).collect(),
            oom: run.oom.as_deref().map(WireOutOfMemory::from),
        }
    }
}

impl From<WireRun> for Frame {
    fn from(wire: WireRun) -> Self {
        Self::Run(Run {
            idx: RunIdx(wire.idx),
            cell: CellIdx(wire.cell),
            revision: SourceHash(wire.revision),
            parent: wire.parent.map(RunIdx),
            kind: match wire.class {
                WireRunKind::Cell => RunKind::Cell,
                WireRunKind::Block => RunKind::Block,
            },
            label: wire.label,
            execution_count: wire.execution_count,
            started: Nanos::new(wire.started_nanos),
            ended: wire.ended_nanos.map(Nanos::new),
            status: match wire.status {
                WireStatus::Running => Status::Running,
                WireStatus::Ok => Status::Ok,
                WireStatus::Error => Status::Error,
                WireStatus::Interrupted => Status::Interrupted,
                WireStatus::OutOfMemory => Status::OutOfMemory,
            },
            levels: wire.levels.into_iter().map(RunLevels::from).collect(),
            oom: wire.oom.map(|oom| Box::new(oom.into())),
        })
    }
}

impl From<&RunLevels> for WireRunLevels {
    fn from(levels: &RunLevels) -> Self {
        Self {
            device: levels.device.0,
            before: (&levels.before).into(),
            after: levels.after.as_ref().map(WireReading::from),
            peak_reset: levels.peak_reset,
        }
    }
}

impl From<WireRunLevels> for RunLevels {
    fn from(wire: WireRunLevels) -> Self {
        Self {
            device: DeviceIdx(wire.device),
            before: wire.before.into(),
            after: wire.after.map(Reading::from),
            peak_reset: wire.peak_reset,
        }
    }
}

impl From<&Reading> for WireReading {
    fn from(reading: &Reading) -> Self {
        Self {
            device_used: (&reading.driver.device_used).into(),
            process_used: (&reading.driver.process_used).into(),
            capacity: (&reading.driver.capacity).into(),
            container_limit: (&reading.driver.container_limit).into(),
            service_limit: (&reading.driver.service_limit).into(),
            host_limit: (&reading.driver.host_limit).into(),
            children_used: (&reading.driver.children_used).into(),
            driver_reserved: (&reading.driver.driver_reserved).into(),
            pool_used: (&reading.driver.pool_used).into(),
            pool_reserved: (&reading.driver.pool_reserved).into(),
            graph_used: (&reading.driver.graph_used).into(),
            graph_reserved: (&reading.driver.graph_reserved).into(),
            allocators: reading.allocators.iter().map(WireAllocator::from).collect(),
        }
    }
}

impl From<WireReading> for Reading {
    fn from(wire: WireReading) -> Self {
        Self {
            driver: DriverLevels {
                device_used: wire.device_used.into(),
                process_used: wire.process_used.into(),
                capacity: wire.capacity.into(),
                container_limit: wire.container_limit.into(),
                service_limit: wire.service_limit.into(),
                host_limit: wire.host_limit.into(),
                children_used: wire.children_used.into(),
                driver_reserved: wire.driver_reserved.into(),
                pool_used: wire.pool_used.into(),
                pool_reserved: wire.pool_reserved.into(),
                graph_used: wire.graph_used.into(),
                graph_reserved: wire.graph_reserved.into(),
            },
            // An allocator that only a later gpumem knows is skipped, like an unknown field.
            allocators: wire
                .allocators
                .into_iter()
                .filter_map(WireAllocator::levels)
                .collect(),
        }
    }
}

impl From<&AllocatorLevels> for WireAllocator {
    fn from(levels: &AllocatorLevels) -> Self {
        Self {
            source: levels.source.name().to_owned(),
            allocated: (&levels.allocated).into(),
            requested: (&levels.requested).into(),
            active: (&levels.active).into(),
            reserved: (&levels.reserved).into(),
            inactive_split: (&levels.inactive_split).into(),
            largest_free: (&levels.largest_free).into(),
            peak_allocated: (&levels.peak_allocated).into(),
            total_allocated: (&levels.total_allocated).into(),
            limit: (&levels.limit).into(),
            n_blocks: levels.n_blocks,
            n_peak_resets: levels.n_peak_resets,
            n_retries: levels.n_retries,
            n_ooms: levels.n_ooms,
        }
    }
}

impl WireAllocator {
    fn levels(self) -> Option<AllocatorLevels> {
        Some(AllocatorLevels {
            source: Source::from_name(&self.source)?,
            allocated: self.allocated.into(),
            requested: self.requested.into(),
            active: self.active.into(),
            reserved: self.reserved.into(),
            inactive_split: self.inactive_split.into(),
            largest_free: self.largest_free.into(),
            peak_allocated: self.peak_allocated.into(),
            total_allocated: self.total_allocated.into(),
            limit: self.limit.into(),
            n_blocks: self.n_blocks,
            n_peak_resets: self.n_peak_resets,
            n_retries: self.n_retries,
            n_ooms: self.n_ooms,
        })
    }
}

const NOT_REPORTED: &str = "not_reported";
const NOT_PERMITTED: &str = "not_permitted";
const WITHHELD: &str = "withheld: ";
const FAILED: &str = "failed: ";

impl From<&Level> for WireLevel {
    fn from(level: &Level) -> Self {
        match level {
            Level::Known(bytes) => Self::Known(bytes.get()),
            Level::Unknown(Unknown::NotRead) => Self::NotRead,
            Level::Unknown(Unknown::NotReported) => Self::Unknown(NOT_REPORTED.to_owned()),
            Level::Unknown(Unknown::NotPermitted) => Self::Unknown(NOT_PERMITTED.to_owned()),
            Level::Unknown(Unknown::Withheld(words)) => Self::Unknown(format!("{WITHHELD}{words}")),
            Level::Unknown(Unknown::Failed(words)) => Self::Unknown(format!("{FAILED}{words}")),
        }
    }
}

impl From<WireLevel> for Level {
    fn from(wire: WireLevel) -> Self {
        match wire {
            WireLevel::Known(n) => Self::Known(Bytes::new(n)),
            WireLevel::NotRead => Self::Unknown(Unknown::NotRead),
            WireLevel::Unknown(reason) => Self::Unknown(match reason.as_str() {
                NOT_REPORTED => Unknown::NotReported,
                NOT_PERMITTED => Unknown::NotPermitted,
                other => match other.strip_prefix(WITHHELD) {
                    Some(words) => Unknown::Withheld(words.to_owned()),
                    None => Unknown::Failed(other.strip_prefix(FAILED).unwrap_or(other).to_owned()),
                },
            }),
        }
    }
}

impl From<&Finish> for WireFinish {
    fn from(finish: &Finish) -> Self {
        Self {
            at_nanos: finish.at.get(),
        }
    }
}

impl From<WireFinish> for Frame {
    fn from(wire: WireFinish) -> Self {
        Self::Finish(Finish {
            at: Nanos::new(wire.at_nanos),
        })
    }
}

fn steps(points: &[Sample], of: impl Fn(&Sample) -> u64) -> Vec<u64> {
    let mut last = 0;
    let mut step = |value: u64| {
        let step = value.saturating_sub(last);
        last = value;
        step
    };
    points.iter().map(|point| step(of(point))).collect()
}

fn column(points: &[Sample], of: impl Fn(&Sample) -> Option<Bytes>) -> Vec<Option<u64>> {
    if points.iter().all(|point| of(point).is_none()) {
        return Vec::new();
    }
    points
        .iter()
        .map(|point| of(point).map(Bytes::get))
        .collect()
}

fn cell_of(column: &[Option<u64>], idx: usize) -> Option<Bytes> {
    column.get(idx).copied().flatten().map(Bytes::new)
}
