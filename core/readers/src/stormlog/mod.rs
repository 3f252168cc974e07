//! Exports of stormlog and of gpu-memory-profiler, its former name: `export_events` as JSON or CSV, and
//! telemetry as JSON lines.
//!
//! [The schema](https://github.com/Silas-Asamoah/stormlog/blob/main/docs/telemetry_schema.md) is public.
//! Version 1 has `timestamp`, `memory_allocated` and `memory_reserved`; later ones have `timestamp_ns`,
//! `allocator_*_bytes` and `device_*_bytes`. Other fields are ignored.
//!
//! ```
//! use gpumem_readers::stormlog;
//!
//! let file = br#"[{"timestamp_ns": 1700000000000000000, "pid": 7, "device_id": 0,
//!     "allocator_allocated_bytes": 100, "device_used_bytes": 300}]"#;
//! let log = stormlog::read(file)?;
//! let device = &log.devices[0];
//! assert_eq!((device.levels[0].kind.name(), device.levels[0].series.peak.get()), ("used", 300));
//! # Ok::<(), stormlog::StormlogError>(())
//! ```

mod csv;
mod event;
mod figure;
use std::collections::{BTreeSet, HashMap};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use thiserror::Error;

use super::container::BYTE_ORDER_MARK;
use super::json_file::{expecting, own_seed};
use super::level_log::{HOST, Ids, LevelKind, LevelLog, LevelLogBuilder, WallTime};
use super::read_error::ReadError;
use event::{RawEvent, StormlogEvent};
use gpumem_model::units::Bytes;

/// The name of such a file in a report.
pub const TITLE: &str = "stormlog export";

/// If a file has more machines, their events count for the first.
const N_HOSTS: usize = 256;

/// An export that was not read.
pub type StormlogError = ReadError<StormlogFault>;

/// What is wrong: [`StormlogError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StormlogFault {
    /// It is neither JSON nor CSV, or only its beginning is.
    #[error("the export of stormlog is damaged: {0}")]
    Damaged(String),
    /// It has no event with a level.
    #[error("an export of stormlog without a level of memory")]
    NoLevel,
}

/// Whether the beginning of a file looks like an export.
pub fn is_export(head: &[u8]) -> bool {
    let has = |name: &[u8]| head.windows(name.len()).any(|at| at == name);
    let is_new = has(b"allocator_allocated_bytes") && has(b"timestamp_ns");
    is_new || has(b"memory_allocated") && has(b"event_type") && has(b"timestamp")
}

/// Events as they were read; texts that repeat are kept once.
#[derive(Default)]
struct Events {
    all: Vec<StormlogEvent>,
    hosts: Vec<String>,
    n_alerts: usize,
    n_resident: usize,
    n_without_time: usize,
}

impl Events {
    fn take(&mut self, raw: &RawEvent) {
        self.n_alerts += usize::from(raw.is_alert());
        self.n_resident += usize::from(raw.is_resident());
        let host = raw.host.text().unwrap_or_default();
        let known = self.hosts.iter().rposition(|known| known == host);
        let is_full = self.hosts.len() == N_HOSTS;
        let host = known.or(is_full.then_some(0)).unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.hosts.len() - 1
        });
        match raw.event(host) {
            Some(event) => self.all.push(event),
            None => self.n_without_time += 1,
        }
    }
}

/// Reads an export.
///
/// # Errors
///
/// [`StormlogError`] with the offset if no event can be read. A truncated file is read up to its end.
pub fn read(bytes: &[u8]) -> Result<LevelLog, StormlogError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut events = Events::default();
    let begins = bytes.trim_ascii_start().first();
    let end = match begins {
        Some(b'[' | b'{') => json(bytes, &mut events),
        _ => csv::read(bytes, &mut events),
    };
    if events.all.is_empty() {
        end?;
        let (offset, what) = (bytes.len(), StormlogFault::NoLevel);
        return Err(StormlogError { offset, what });
    }
    let mut log = log(&events);
    if let Err(error) = end {
        log.notes.push(format!("reading stopped at {error}"));
    }
    Ok(log)
}

/// One array of events, an object with such an array, or one event on each line.
fn json(bytes: &[u8], events: &mut Events) -> Result<(), StormlogError> {
    let mut values = serde_json::Deserializer::from_slice(bytes);
    loop {
        AnyEvents(events)
            .deserialize(&mut values)
            .map_err(|error| StormlogError {
                offset: offset_of(bytes, error.line(), error.column()),
                what: StormlogFault::Damaged(error.to_string()),
            })?;
        if values.end().is_ok() {
            return Ok(());
        }
    }
}

fn offset_of(bytes: &[u8], line: usize, column: usize) -> usize {
    let mut starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let start = match line.checked_sub(2) {
        Some(nth) => starts.nth(nth).map_or(bytes.len(), |(at, _)| at + 1),
        None => 0,
    };
    (start + column).min(bytes.len())
}

/// Takes events one at a time, wherever they are in the file.
struct AnyEvents<'e>(&'e mut Events);

own_seed!(AnyEvents<'_>, deserialize_any);

impl<'de> Visitor<'de> for AnyEvents<'_> {
    type Value = ();

    expecting!("events");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(event) = items.next_element::<RawEvent>()? {
            self.0.take(&event);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut raw = RawEvent::default();
        while let Some(key) = entries.next_key::<String>()? {
            if key == "events" {
                entries.next_value_seed(AnyEvents(self.0))?;
            } else {
                let figure = entries.next_value()?;
                raw.set(&key, figure);
            }
        }
        if raw.has_time() {
            self.0.take(&raw);
        }
        Ok(())
    }
}

fn log(events: &Events) -> LevelLog {
    let mut numbers: HashMap<i64, String> = HashMap::new();
    let mut pids: HashMap<(usize, i64), BTreeSet<u64>> = HashMap::new();
    for event in &events.all {
        let number = || match event.device {
            0.. => event.device.to_string(),
            _ => HOST.to_owned(),
        };
        numbers.entry(event.device).or_insert_with(number);
        pids.entry((event.host, event.device))
            .or_default()
            .extend(event.pid());
    }
    let mut ordered: Vec<&StormlogEvent> = events.all.iter().collect();
    ordered.sort_by_key(|event| event.at_nanos);
    let mut builder = LevelLogBuilder::default();
    for event in ordered {
        let host = events.hosts.get(event.host).map(String::as_str);
        let ids = Ids {
            number: numbers.get(&event.device).map(String::as_str),
            host: host.filter(|host| !host.is_empty()),
            ..Ids::default()
        };
        let Some(device) = builder.device(ids) else {
            continue;
        };
        let at = Some(WallTime::unix_nanos(event.at_nanos));
        builder.at(at);
        if let Some(total) = known(event.total) {
            builder.capacity(device, total);
        }
        if let Some(used) = known(event.used) {
            builder.level(device, LevelKind::Used, Ok(used), at);
        }
        let of_process = [
            (LevelKind::Allocated, known(event.allocated)),
            (LevelKind::Reserved, known(event.reserved)),
        ];
        let of_process = of_process
            .into_iter()
            .filter_map(|(kind, level)| Some((kind, level?)));
        // A single process's level is the device's level.
        let n_pids = pids
            .get(&(event.host, event.device))
            .map_or(0, BTreeSet::len);
        match event.pid().filter(|_| n_pids > 1) {
            Some(pid) => {
                if let Some(process) = builder.process(device, pid, None) {
                    for (kind, level) in of_process {
                        builder.process_level(process, kind, Ok(level), at);
                    }
                }
            }
            None => {
                for (kind, level) in of_process {
                    builder.level(device, kind, Ok(level), at);
                }
            }
        }
    }
    if events.n_resident > 0 {
        let words = format!(
            "levels of {HOST} are the process's resident memory (RSS), which the tracker of the CPU reads"
        );
        builder.notes.push(words);
    }
    match events.n_alerts {
        0 => (),
        1 => builder
            .notes
            .push("1 warning or error is in the export".to_owned()),
        n => builder
            .notes
            .push(format!("{n} warnings or errors are in the export")),
    }
    match events.n_without_time {
        0 => (),
        1 => builder
            .notes
            .push("1 event has no time, and was left out".to_owned()),
        n => builder
            .notes
            .push(format!("{n} events have no time, and were left out")),
    }
    builder.finish(TITLE)
}

/// A figure, if the event has it.
fn known(bytes: u64) -> Option<Bytes> {
    (bytes != event::UNKNOWN).then_some(Bytes::new(bytes))
}

impl StormlogEvent {
    fn pid(&self) -> Option<u64> {
        u64::try_from(self.pid).ok()
    }
}
