//! One event, of any version of the schema.

use crate::json_file::expecting;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::figure::StormlogValue;

/// An unknown figure. `Option` would take more memory, and there are many events.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The fields of an event that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StormlogEvent {
    pub(super) at_nanos: i64,
    pub(super) host: usize,
    pub(super) device: i64,
    /// Negative if unknown.
    pub(super) pid: i64,
    pub(super) allocated: u64,
    pub(super) reserved: u64,
    pub(super) used: u64,
    pub(super) total: u64,
}

/// An event's values as they are in the file.
#[derive(Debug, Default)]
pub(super) struct RawEvent {
    timestamp_ns: StormlogValue,
    timestamp: StormlogValue,
    event_type: StormlogValue,
    collector: StormlogValue,
    pid: StormlogValue,
    pub(super) host: StormlogValue,
    device_id: StormlogValue,
    allocated: StormlogValue,
    reserved: StormlogValue,
    used: StormlogValue,
    total: StormlogValue,
}

impl RawEvent {
    pub(super) fn set(&mut self, key: &str, figure: StormlogValue) {
        let place = match key {
            "timestamp_ns" => &mut self.timestamp_ns,
            "timestamp" => &mut self.timestamp,
            "event_type" | "type" => &mut self.event_type,
            "collector" => &mut self.collector,
            "pid" => &mut self.pid,
            "host" => &mut self.host,
            "device_id" | "device" => &mut self.device_id,
            "allocator_allocated_bytes" | "memory_allocated" => &mut self.allocated,
            "allocator_reserved_bytes" | "memory_reserved" => &mut self.reserved,
            "device_used_bytes" | "device_used" => &mut self.used,
            "device_total_bytes" | "device_total" | "total_memory" => &mut self.total,
            _ => return,
        };
        *place = figure;
    }

    pub(super) fn has_time(&self) -> bool {
        self.at_nanos().is_some()
    }

    pub(super) fn is_alert(&self) -> bool {
        let alerts = ["warning", "critical", "error", "oom"];
        self.event_type
            .text()
            .is_some_and(|kind| alerts.contains(&kind))
    }

    /// Whether its levels are the process's resident memory, the only level of the CPU tracker.
    pub(super) fn is_resident(&self) -> bool {
        let tracker = self.collector.text();
        tracker.is_some_and(|name| name.ends_with("cpu_tracker"))
    }

    fn at_nanos(&self) -> Option<i64> {
        let seconds = self
            .timestamp
            .seconds()
            .filter(|seconds| seconds.is_finite());
        self.timestamp_ns
            .whole()
            .or_else(|| seconds.map(|seconds| (seconds * 1e9) as i64))
    }

    /// The event; `None` if it has no time.
    pub(super) fn event(&self, host: usize) -> Option<StormlogEvent> {
        let number = |text: &str| {
            text.rsplit(':')
                .next()
                .and_then(|number| number.parse().ok())
        };
        let device = self
            .device_id
            .whole()
            .or_else(|| self.device_id.text().and_then(number));
        let figure = |figure: &StormlogValue| figure.bytes().unwrap_or(UNKNOWN);
        Some(StormlogEvent {
            at_nanos: self.at_nanos()?,
            host,
            device: device.unwrap_or(0),
            pid: self.pid.whole().unwrap_or(-1),
            allocated: figure(&self.allocated),
            reserved: figure(&self.reserved),
            used: figure(&self.used),
            total: figure(&self.total),
        })
    }
}

impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = RawEvent;

    expecting!("an event");

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawEvent, A::Error> {
        let mut event = RawEvent::default();
        while let Some(key) = entries.next_key::<String>()? {
            let figure = entries.next_value()?;
            event.set(&key, figure);
        }
        Ok(event)
    }
}
