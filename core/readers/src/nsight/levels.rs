//! Allocations and frees → levels.

use std::collections::HashMap;

use super::{Capture, MemoryEvent, TITLE, pid};
use crate::level_log::{Ids, LevelKind, LevelLog, LevelLogBuilder};
use gpumem_model::units::Bytes;

/// The device and kind of memory.
fn level_kind(kind: u8) -> LevelKind {
    match kind {
        0 | 1 => LevelKind::Pinned,
        4 | 6 => LevelKind::Managed,
        _ => LevelKind::Device,
    }
}

/// The changes of the events, and the levels before them.
pub(super) struct EventChanges {
    /// By event, in bytes: a block that is allocated where an older one's free was lost replaces that one.
    of_events: Vec<i128>,
    /// By device, kind and process: blocks that are freed but were not allocated in the capture. If events have
    /// no addresses, the minimum that keeps the level above zero.
    before: HashMap<(u64, LevelKind, u64), i128>,
}

/// A block's process, device and address.
type BlockAddress = (u64, u64, u64);

impl EventChanges {
    pub(super) fn new(events: &[MemoryEvent]) -> Self {
        // Bytes of the blocks at each place; 0 once freed.
        let mut live: HashMap<BlockAddress, u64> = HashMap::new();
        // The level of each process counted from its known blocks, and the lowest.
        let mut levels: HashMap<(u64, LevelKind, u64), (i128, i128)> = HashMap::new();
        let mut before: HashMap<(u64, LevelKind, u64), i128> = HashMap::new();
        let mut of_events = Vec::with_capacity(events.len());
        for event in events {
            let bytes = i128::from(event.bytes);
            let place = (event.global_pid, event.device, event.address);
            let key = key(event);
            let change = match (event.is_free, event.address != 0) {
                (true, true) => {
                    let allocated = live.insert(place, 0).map(i128::from);
                    if allocated.is_none() {
                        *before.entry(key).or_default() += bytes;
                    }
                    -allocated.unwrap_or(bytes)
                }
                (true, false) => -bytes,
                (false, true) => bytes - live.insert(place, event.bytes).map_or(0, i128::from),
                (false, false) => bytes,
            };
            of_events.push(change);
        }
        drop(live);
        for (event, change) in events.iter().zip(&of_events) {
            let key = key(event);
            let known = before.get(&key).copied().unwrap_or(0);
            let (level, lowest) = levels.entry(key).or_insert((known, known));
            *level += change;
            *lowest = (*lowest).min(*level);
        }
        for (key, (_, lowest)) in levels {
            if lowest < 0 {
                *before.entry(key).or_default() -= lowest;
            }
        }
        Self { of_events, before }
    }
}

fn key(event: &MemoryEvent) -> (u64, LevelKind, u64) {
    (event.device, level_kind(event.kind), pid(event.global_pid))
}

fn bytes(level: i128) -> Bytes {
    Bytes::new(u64::try_from(level).unwrap_or(if level < 0 { 0 } else { u64::MAX }))
}

/// The level of each process on all devices (device memory and managed), after each of its events.
pub(super) type ProcessLevels = HashMap<u64, Vec<(i64, Bytes)>>;

pub(super) fn by_process(events: &[MemoryEvent], changes: &EventChanges) -> ProcessLevels {
    let mut now: HashMap<u64, i128> = HashMap::new();
    for ((_, kind, pid), before) in &changes.before {
        if *kind != LevelKind::Pinned {
            *now.entry(*pid).or_default() += before;
        }
    }
    let mut levels: ProcessLevels = HashMap::new();
    for (event, change) in events.iter().zip(&changes.of_events) {
        if level_kind(event.kind) == LevelKind::Pinned {
            continue;
        }
        let pid = pid(event.global_pid);
        let level = now.entry(pid).or_default();
        let of_process = levels.entry(pid).or_insert_with(|| {
            // The level before the capture.
            vec![(i64::MIN, bytes(*level))]
        });
        *level += change;
        of_process.push((event.at_nanos, bytes(*level)));
    }
    levels
}

/// The levels of every device, and of every process on it.
pub(super) fn log(capture: &Capture, changes: &EventChanges) -> LevelLog {
    let events = &capture.events;
    let mut numbers: HashMap<u64, String> = HashMap::new();
    for event in events {
        let number = || event.device.to_string();
        numbers.entry(event.device).or_insert_with(number);
    }
    let mut of_processes = changes.before.clone();
    let mut of_devices: HashMap<(u64, LevelKind), i128> = HashMap::new();
    for ((device, kind, _), before) in &changes.before {
        *of_devices.entry((*device, *kind)).or_default() += before;
    }
    let mut builder = LevelLogBuilder::default();
    let mut is_from_before = false;
    for (event, change) in events.iter().zip(&changes.of_events) {
        let (kind, pid) = (level_kind(event.kind), pid(event.global_pid));
        let ids = Ids {
            number: numbers.get(&event.device).map(String::as_str),
            ..Ids::default()
        };
        let Some(device) = builder.device(ids) else {
            continue;
        };
        let at = Some(capture.wall(event.at_nanos));
        builder.at(at);
        if let Some((name, capacity)) = capture.devices.get(&event.device) {
            if let Some(name) = name {
                builder.name(device, name);
            }
            if let Some(capacity) = capacity {
                builder.capacity(device, *capacity);
            }
        }
        let level = of_devices.entry((event.device, kind)).or_default();
        if *level > 0 && !builder.has_level(device, kind) {
            is_from_before = true;
            builder.level(device, kind, Ok(bytes(*level)), at);
        }
        *level += change;
        builder.level(device, kind, Ok(bytes(*level)), at);
        let name = capture.processes.get(&pid).map(String::as_str);
        let Some(process) = builder.process(device, pid, name) else {
            continue;
        };
        let level = of_processes.entry((event.device, kind, pid)).or_default();
        if *level > 0 && !builder.process_has_level(process, kind) {
            builder.process_level(process, kind, Ok(bytes(*level)), at);
        }
        *level += change;
        builder.process_level(process, kind, Ok(bytes(*level)), at);
    }
    if is_from_before {
        let words = "memory was freed that was allocated before the capture: levels are counted \
                     from the least that must have been there";
        builder.notes.push(words.to_owned());
    }
    let mut log = builder.finish(TITLE);
    log.duration = capture.duration.or(log.duration);
    log.started = capture.epoch_nanos.map(|_| capture.wall(0));
    log
}
