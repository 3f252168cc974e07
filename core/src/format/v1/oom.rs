//! The out-of-memory error of a run on the wire.

use serde::Serialize;

use crate::format::messagepack::{Outcome, Reader};
use crate::format::record::{Decode, DecodeFields};
use crate::holders::RootKind;
use crate::recording::{Framework, OomHolder, OtherProcess, OutOfMemory};
use crate::units::Bytes;

#[derive(Serialize)]
pub(super) struct WireOutOfMemory {
    at_nanos: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    framework: Option<String>,
    names_accelerator: bool,
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

#[derive(Serialize)]
struct WireOther {
    pid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
}

#[derive(Serialize)]
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
            names_accelerator: oom.names_accelerator,
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

impl DecodeFields for OutOfMemory {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let figures = &mut self.figures;
        match name {
            "at_nanos" => self.at.fill(value),
            "device" => self.device.fill(value),
            "framework" => value.name(Framework::from_name, &mut self.framework),
            "names_accelerator" => self.names_accelerator.fill(value),
            "survived" => self.survived.fill(value),
            "wanted" => figures.wanted.fill(value),
            "free" => figures.free.fill(value),
            "total" => figures.total.fill(value),
            "limit" => figures.limit.fill(value),
            "allocated" => figures.allocated.fill(value),
            "reserved" => figures.reserved.fill(value),
            "unallocated" => figures.unallocated.fill(value),
            "private_pools" => figures.private_pools.fill(value),
            "largest_free" => figures.largest_free.fill(value),
            "this_process" => figures.this_process.fill(value),
            "others" => figures.others.fill(value),
            "holders" => value.list_of(&mut self.holders, FoundHolder::known),
            "message" => self.message.fill(value),
            _ => value.skip(),
        }
    }
}

impl DecodeFields for OtherProcess {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "pid" => self.pid.fill(value),
            "used" => self.used.fill(value),
            _ => value.skip(),
        }
    }
}

/// A name of a kind that this version may not know.
#[derive(Default)]
struct FoundHolder {
    name: String,
    kind: Option<RootKind>,
    used: Bytes,
}

impl FoundHolder {
    fn known(self) -> Option<OomHolder> {
        Some(OomHolder {
            name: self.name,
            kind: self.kind?,
            used: self.used,
        })
    }
}

impl DecodeFields for FoundHolder {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "name" => self.name.fill(value),
            "class" => value.name(RootKind::from_name, &mut self.kind),
            "used" => self.used.fill(value),
            _ => value.skip(),
        }
    }
}
