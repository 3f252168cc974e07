//! The out-of-memory error of a run on the wire.

use serde::{Deserialize, Serialize};

use crate::holders::RootKind;
use crate::recording::{DeviceIdx, Framework, OomFigures, OomHolder, OtherProcess, OutOfMemory};
use crate::units::{Bytes, Nanos};

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WireOutOfMemory {
    at_nanos: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    framework: Option<String>,
    survived: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unallocated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    private_pools: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    this_process: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<WireOther>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holders: Vec<WireHolder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireOther {
    pid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireHolder {
    name: String,
    class: String,
    used: u64,
}

impl From<&OutOfMemory> for WireOutOfMemory {
    fn from(oom: &OutOfMemory) -> Self {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        let figures = &oom.figures;
        let other = |other: &OtherProcess| WireOther {
            pid: other.pid,
            used: bytes(other.used),
        };
        let holder = |holder: &OomHolder| WireHolder {
            name: holder.name.clone(),
            class: holder.kind.name().to_owned(),
            used: holder.used.get(),
        };
        Self {
            at_nanos: oom.at.get(),
            device: oom.device.map(|device| device.0),
            framework: oom.framework.map(|it| it.name().to_owned()),
            survived: oom.survived,
            wanted: bytes(figures.wanted),
            free: bytes(figures.free),
            total: bytes(figures.total),
            limit: bytes(figures.limit),
            allocated: bytes(figures.allocated),
            reserved: bytes(figures.reserved),
            unallocated: bytes(figures.unallocated),
            private_pools: bytes(figures.private_pools),
            largest_free: bytes(figures.largest_free),
            this_process: bytes(figures.this_process),
            others: figures.others.iter().map(other).collect(),
            holders: oom.holders.iter().map(holder).collect(),
            message: oom.message.clone(),
        }
    }
}

impl From<WireOutOfMemory> for OutOfMemory {
    fn from(wire: WireOutOfMemory) -> Self {
        let bytes = |bytes: Option<u64>| bytes.map(Bytes::new);
        let other = |other: WireOther| OtherProcess {
            pid: other.pid,
            used: bytes(other.used),
        };
        // A kind that only a later gpumem knows is skipped.
        let holder = |holder: WireHolder| {
            Some(OomHolder {
                kind: RootKind::from_name(&holder.class)?,
                name: holder.name,
                used: Bytes::new(holder.used),
            })
        };
        Self {
            at: Nanos::new(wire.at_nanos),
            device: wire.device.map(DeviceIdx),
            // One that only a later gpumem knows is unknown here.
            framework: wire.framework.as_deref().and_then(Framework::from_name),
            survived: wire.survived,
            figures: OomFigures {
                wanted: bytes(wire.wanted),
                free: bytes(wire.free),
                total: bytes(wire.total),
                limit: bytes(wire.limit),
                allocated: bytes(wire.allocated),
                reserved: bytes(wire.reserved),
                unallocated: bytes(wire.unallocated),
                private_pools: bytes(wire.private_pools),
                largest_free: bytes(wire.largest_free),
                this_process: bytes(wire.this_process),
                others: wire.others.into_iter().map(other).collect(),
            },
            holders: wire.holders.into_iter().filter_map(holder).collect(),
            message: wire.message,
        }
    }
}
