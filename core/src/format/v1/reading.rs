//! Readings on the wire.

use serde::Serialize;

use crate::format::messagepack::{Outcome, Reader, Token};
use crate::format::record::{Decode, DecodeFields};
use crate::recording::{AllocatorLevels, Level, Reading, Source, Unknown};
use crate::units::Bytes;

#[derive(Serialize)]
pub(super) struct WireReading {
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

#[derive(Serialize)]
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
#[derive(Serialize)]
#[serde(untagged)]
enum WireLevel {
    Known(u64),
    Unknown(String),
    NotRead,
}

impl WireLevel {
    fn is_not_read(&self) -> bool {
        matches!(self, Self::NotRead)
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

impl DecodeFields for Reading {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let driver = &mut self.driver;
        match name {
            "device_used" => driver.device_used.fill(value),
            "process_used" => driver.process_used.fill(value),
            "capacity" => driver.capacity.fill(value),
            "container_limit" => driver.container_limit.fill(value),
            "service_limit" => driver.service_limit.fill(value),
            "host_limit" => driver.host_limit.fill(value),
            "children_used" => driver.children_used.fill(value),
            "driver_reserved" => driver.driver_reserved.fill(value),
            "pool_used" => driver.pool_used.fill(value),
            "pool_reserved" => driver.pool_reserved.fill(value),
            "graph_used" => driver.graph_used.fill(value),
            "graph_reserved" => driver.graph_reserved.fill(value),
            "allocators" => value.list_of(&mut self.allocators, FoundAllocator::known),
            _ => value.skip(),
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

/// An allocator, which this version may not know.
struct FoundAllocator {
    source: Option<Source>,
    levels: AllocatorLevels,
}

impl Default for FoundAllocator {
    fn default() -> Self {
        Self {
            source: None,
            levels: AllocatorLevels::unread(Source::Sim),
        }
    }
}

impl FoundAllocator {
    fn known(self) -> Option<AllocatorLevels> {
        let source = self.source?;
        Some(AllocatorLevels {
            source,
            ..self.levels
        })
    }
}

impl DecodeFields for FoundAllocator {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let levels = &mut self.levels;
        match name {
            "source" => value.name(Source::from_name, &mut self.source),
            "allocated" => levels.allocated.fill(value),
            "requested" => levels.requested.fill(value),
            "active" => levels.active.fill(value),
            "reserved" => levels.reserved.fill(value),
            "inactive_split" => levels.inactive_split.fill(value),
            "largest_free" => levels.largest_free.fill(value),
            "peak_allocated" => levels.peak_allocated.fill(value),
            "total_allocated" => levels.total_allocated.fill(value),
            "limit" => levels.limit.fill(value),
            "n_blocks" => levels.n_blocks.fill(value),
            "n_peak_resets" => levels.n_peak_resets.fill(value),
            "n_retries" => levels.n_retries.fill(value),
            "n_ooms" => levels.n_ooms.fill(value),
            _ => value.skip(),
        }
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

impl Decode for Level {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = match reader.opening()? {
            Token::Nil => Self::Unknown(Unknown::NotRead),
            Token::Whole(n) => Self::Known(Bytes::new(n)),
            Token::Text(reason) => Self::Unknown(unknown(reason)),
            other => return Err(other.instead_of("a number of bytes or a reason")),
        };
        Ok(())
    }
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
