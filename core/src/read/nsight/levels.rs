//! Allocations and frees → levels.

use std::collections::HashMap;

use super::{Capture, MemoryEvent, TITLE, pid};
use crate::read::level_log::{Builder, Ids, LevelKind, LevelLog};
use crate::units::Bytes;

/// Where memory is.
fn level_kind(kind: u8) -> LevelKind {
    match kind {
        0 | 1 => LevelKind::Pinned,
        4 | 6 => LevelKind::Managed,
        _ => LevelKind::Device,
    }
}

/// A level that frees of older memory may not bring below zero.
#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    now: i128,
    lowest: i128,
}

impl Balance {
    fn add(&mut self, change: i128) {
        self.now += change;
        self.lowest = self.lowest.min(self.now);
    }

    /// The level, if the lowest of all is `lowest`.
    fn level(self, lowest: i128) -> Bytes {
        Bytes::new(u64::try_from(self.now - lowest).unwrap_or(u64::MAX))
    }
}

/// What each event changes, in bytes: a block that is allocated again where one was lost replaces it.
fn changes(events: &[MemoryEvent]) -> Vec<i128> {
    let mut live: HashMap<(u64, u64), u64> = HashMap::new();
    let mut changes = Vec::with_capacity(events.len());
    for event in events {
        let bytes = i128::from(event.bytes);
        let place = (event.global_pid, event.address);
        let has_address = event.address != 0;
        changes.push(match (event.is_free, has_address) {
            (true, true) => -live.remove(&place).map_or(bytes, i128::from),
            (true, false) => -bytes,
            (false, true) => bytes - live.insert(place, event.bytes).map_or(0, i128::from),
            (false, false) => bytes,
        });
    }
    changes
}

/// The level of each process on all devices (device memory and managed), after each of its events.
pub(super) type ProcessLevels = HashMap<u64, Vec<(i64, Bytes)>>;

pub(super) fn by_process(events: &[MemoryEvent]) -> ProcessLevels {
    let mut balances: HashMap<u64, (Balance, Vec<(i64, i128)>)> = HashMap::new();
    for (event, change) in events.iter().zip(changes(events)) {
        if level_kind(event.kind) == LevelKind::Pinned {
            continue;
        }
        let (balance, levels) = balances.entry(pid(event.global_pid)).or_default();
        balance.add(change);
        levels.push((event.at_nanos, balance.now));
    }
    let with_levels = |(pid, (balance, levels)): (u64, (Balance, Vec<(i64, i128)>))| {
        let lowest = balance.lowest;
        let level = |(at, now)| (at, Balance { now, lowest }.level(lowest));
        let mut shifted = Vec::with_capacity(levels.len() + 1);
        // What was there before the capture.
        shifted.push((i64::MIN, Balance::default().level(lowest)));
        shifted.extend(levels.into_iter().map(level));
        (pid, shifted)
    };
    balances.into_iter().map(with_levels).collect()
}

/// The levels of every device, and of every process on it.
pub(super) fn log(capture: &Capture) -> LevelLog {
    let events = &capture.events;
    let changes = changes(events);
    let mut numbers: HashMap<u64, String> = HashMap::new();
    for event in events {
        let number = || event.device.to_string();
        numbers.entry(event.device).or_insert_with(number);
    }
    // Each level twice: first how far it falls below its start, then from there.
    let mut of_devices: HashMap<(u64, LevelKind), Balance> = HashMap::new();
    let mut of_processes: HashMap<(u64, LevelKind, u64), Balance> = HashMap::new();
    for (event, change) in events.iter().zip(&changes) {
        let (device, kind, pid) = (event.device, level_kind(event.kind), pid(event.global_pid));
        of_devices.entry((device, kind)).or_default().add(*change);
        of_processes
            .entry((device, kind, pid))
            .or_default()
            .add(*change);
    }
    let lowest_of_devices = of_devices.clone();
    let lowest_of_processes = of_processes.clone();
    of_devices.clear();
    of_processes.clear();
    let mut builder = Builder::default();
    let mut is_from_before = false;
    for (event, change) in events.iter().zip(&changes) {
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
        let key = (event.device, kind);
        let lowest = lowest_of_devices.get(&key).map_or(0, |it| it.lowest);
        let balance = of_devices.entry(key).or_default();
        if lowest < 0 && !builder.has_level(device, kind) {
            is_from_before = true;
            builder.level(device, kind, Ok(balance.level(lowest)), at);
        }
        balance.add(*change);
        builder.level(device, kind, Ok(balance.level(lowest)), at);
        let name = capture.processes.get(&pid).map(String::as_str);
        let Some(process) = builder.process(device, pid, name) else {
            continue;
        };
        let key = (event.device, kind, pid);
        let lowest = lowest_of_processes.get(&key).map_or(0, |it| it.lowest);
        let balance = of_processes.entry(key).or_default();
        balance.add(*change);
        builder.process_level(process, kind, Ok(balance.level(lowest)), at);
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
