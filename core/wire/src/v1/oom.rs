//! The out-of-memory error of a run on the wire.

use crate::record::{decoded_lists, wire};
use crate::values::KnownKind;
use gpumem_model::recording::{OomHolder, OtherProcess, OutOfMemory};
use gpumem_model::units::Bytes;

wire! { OutOfMemory {
    "at_nanos" => at,
    sparse "device" => device,
    sparse "framework" => framework,
    "names_accelerator" => names_accelerator,
    "survived" => survived,
    sparse "wanted" => figures.wanted,
    sparse "free" => figures.free,
    sparse "total" => figures.total,
    sparse "limit" => figures.limit,
    sparse "allocated" => figures.allocated,
    sparse "reserved" => figures.reserved,
    sparse "unallocated" => figures.unallocated,
    sparse "private_pools" => figures.private_pools,
    sparse "largest_free" => figures.largest_free,
    sparse "this_process" => figures.this_process,
    sparse "others" => figures.others,
    sparse "holders" => holders,
    sparse "message" => message,
}}

wire! { OtherProcess {
    "pid" => pid,
    sparse "used" => used,
}}

/// A name of a kind that this version may not know.
#[derive(Default)]
struct WireHolder {
    name: String,
    kind: KnownKind,
    used: Bytes,
    n_storages: u64,
}

wire! { OomHolder => WireHolder {
    "name" => name,
    "class" => kind,
    "used" => used,
    sparse "n_storages" => n_storages,
}}

impl WireHolder {
    fn known(self) -> Option<OomHolder> {
        Some(OomHolder {
            name: self.name,
            kind: self.kind.0?,
            used: self.used,
            n_storages: self.n_storages,
        })
    }
}

decoded_lists! { OomHolder: WireHolder::known; }
