//! Readings on the wire.

use serde::Serializer;

use crate::messagepack::Token;
use crate::record::{Encode, decoded_as, decoded_lists, encoded_as, wire};
use gpumem_model::recording::{
    AllocatorLevels, ChildGroup, ChildHandle, Level, Reading, Source, Unknown,
};
use gpumem_model::units::Bytes;

wire! { Reading {
    sparse "device_used" => driver.device_used,
    sparse "process_used" => driver.process_used,
    sparse "capacity" => driver.capacity,
    sparse "container_limit" => driver.container_limit,
    sparse "service_limit" => driver.service_limit,
    sparse "host_limit" => driver.host_limit,
    sparse "children_used" => driver.children_used,
    sparse "children" => driver.children,
    sparse "driver_reserved" => driver.driver_reserved,
    sparse "pool_used" => driver.pool_used,
    sparse "pool_reserved" => driver.pool_reserved,
    sparse "graph_used" => driver.graph_used,
    sparse "graph_reserved" => driver.graph_reserved,
    sparse "allocators" => allocators,
}}

wire! { ChildGroup {
    sparse "began_in" => began_in,
    sparse "handle" => handle,
    required "n" => n,
    "bytes" => n_bytes,
    "pid" => pid,
    "name" => name,
    "age_nanos" => age,
}}

/// An allocator, which this version may not know.
struct WireAllocator<L> {
    source: Option<Source>,
    levels: L,
}

wire! { WireAllocator<&AllocatorLevels> => WireAllocator<AllocatorLevels> {
    "source" => source,
    sparse "allocated" => levels.allocated,
    sparse "requested" => levels.requested,
    sparse "active" => levels.active,
    sparse "reserved" => levels.reserved,
    sparse "inactive_split" => levels.inactive_split,
    sparse "largest_free" => levels.largest_free,
    sparse "peak_allocated" => levels.peak_allocated,
    sparse "total_allocated" => levels.total_allocated,
    sparse "limit" => levels.limit,
    sparse "n_blocks" => levels.n_blocks,
    sparse "n_peak_resets" => levels.n_peak_resets,
    sparse "n_retries" => levels.n_retries,
    sparse "n_ooms" => levels.n_ooms,
}}

encoded_as! {
    AllocatorLevels: levels => WireAllocator { source: Some(levels.source), levels };
}

impl Default for WireAllocator<AllocatorLevels> {
    fn default() -> Self {
        Self {
            source: None,
            levels: AllocatorLevels::unread(Source::Sim),
        }
    }
}

impl WireAllocator<AllocatorLevels> {
    fn known(self) -> Option<AllocatorLevels> {
        let source = self.source?;
        Some(AllocatorLevels {
            source,
            ..self.levels
        })
    }
}

decoded_lists! { AllocatorLevels: WireAllocator::known; }

const NOT_REPORTED: &str = "not_reported";
const NOT_PERMITTED: &str = "not_permitted";
const WITHHELD: &str = "withheld: ";
const FAILED: &str = "failed: ";

/// A number of bytes, or the reason why there is none.
impl Encode for Level {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(bytes) => bytes.encode(serializer),
            Self::Unknown(Unknown::NotRead) => serializer.serialize_unit(),
            Self::Unknown(Unknown::NotReported) => serializer.serialize_str(NOT_REPORTED),
            Self::Unknown(Unknown::NotPermitted) => serializer.serialize_str(NOT_PERMITTED),
            Self::Unknown(Unknown::Withheld(words)) => {
                serializer.serialize_str(&format!("{WITHHELD}{words}"))
            }
            Self::Unknown(Unknown::Failed(words)) => {
                serializer.serialize_str(&format!("{FAILED}{words}"))
            }
        }
    }
}

decoded_as! {
    Level: reader => match reader.opening()? {
        Token::Nil => Self::Unknown(Unknown::NotRead),
        Token::Whole(n) => Self::Known(Bytes::new(n)),
        Token::Text(reason) => Self::Unknown(unknown(reason)),
        other => return Err(other.instead_of("a number of bytes or a reason")),
    };
    /// A later gpumem may know other handles.
    ChildHandle: reader => reader.name(Self::from_name)?.unwrap_or_default();
}

fn unknown(reason: &str) -> Unknown {
    if let Some(why) = reason.strip_prefix(WITHHELD) {
        return Unknown::Withheld(why.into());
    }
    match reason {
        NOT_REPORTED => Unknown::NotReported,
        NOT_PERMITTED => Unknown::NotPermitted,
        _ => Unknown::Failed(reason.strip_prefix(FAILED).unwrap_or(reason).into()),
    }
}
