//! Readings in the order of a log → its devices and processes.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{DeviceLog, LevelKind, LevelLog, LevelSeries, LogSeries, ProcessLog, WallTime};
use gpumem_model::units::Bytes;
use gpumem_model::units::count;

/// More devices than these are left out.
const N_DEVICES: usize = 256;

/// More processes than these are left out.
const N_PROCESSES: usize = 4096;

/// The host's memory, in place of a device's number.
pub(crate) const HOST: &str = "host";

/// The ids of a device that a line names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ids<'t> {
    /// The number that users see.
    pub(crate) number: Option<&'t str>,
    /// A second number, as some scripts write.
    pub(crate) index: Option<&'t str>,
    /// `GPU-…`.
    pub(crate) uuid: Option<&'t str>,
    /// `00000000:01:00.0`.
    pub(crate) bus: Option<&'t str>,
    /// The machine.
    pub(crate) host: Option<&'t str>,
}

impl<'t> Ids<'t> {
    const fn all(self) -> [Option<&'t str>; 5] {
        [self.number, self.index, self.uuid, self.bus, self.host]
    }

    /// Whether one id is equal and none differs. Two empty ones are equal.
    fn are_same(self, other: Self) -> bool {
        let mut has_common = self == other;
        for (ours, theirs) in self.all().into_iter().zip(other.all()) {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                if ours != theirs {
                    return false;
                }
                has_common = true;
            }
        }
        has_common
    }

    fn or(self, other: Self) -> Self {
        Self {
            number: self.number.or(other.number),
            index: self.index.or(other.index),
            uuid: self.uuid.or(other.uuid),
            bus: self.bus.or(other.bus),
            host: self.host.or(other.host),
        }
    }
}

/// A level, or the text in its place.
pub(crate) type LogReading<'t> = Result<Bytes, &'t str>;

/// More texts in place of one device's levels count as the last of these.
const N_MISSING: usize = 8;

#[derive(Default)]
struct LevelDrafts<'t> {
    series: Vec<LevelSeries>,
    missing: Vec<(&'t str, usize)>,
}

impl<'t> LevelDrafts<'t> {
    /// Adds a reading; true if its time is before the last one's.
    fn push(&mut self, kind: LevelKind, reading: LogReading<'t>, at: Option<WallTime>) -> bool {
        let level = match reading {
            Ok(level) => level,
            Err(words) => {
                self.push_missing(words);
                return false;
            }
        };
        if let Some(named) = self.series.iter_mut().find(|it| it.kind == kind) {
            let times = named.series.last_at.zip(at);
            named.series.push(level, at);
            return times.is_some_and(|(last, at)| at.nanos() < last.nanos());
        }
        let series = LogSeries::new(level, at);
        self.series.push(LevelSeries { kind, series });
        false
    }

    fn push_missing(&mut self, words: &'t str) {
        let n = self.missing.len();
        let known = self.missing.iter().position(|(known, _)| *known == words);
        if let Some(at) = known.or(n.checked_sub(1).filter(|_| n == N_MISSING)) {
            self.missing[at].1 += 1;
            return;
        }
        // Most have one level, and there are many processes.
        self.missing.reserve_exact(1);
        self.missing.push((words, 1));
    }

    fn missing(&self) -> Vec<(String, usize)> {
        let owned = |(words, n): &(&str, usize)| ((*words).to_owned(), *n);
        self.missing.iter().map(owned).collect()
    }

    fn has(&self, kind: LevelKind) -> bool {
        self.series.iter().any(|named| named.kind == kind)
    }
}

struct DeviceDraft<'t> {
    ids: Ids<'t>,
    name: Option<&'t str>,
    capacity: Option<Bytes>,
    levels: LevelDrafts<'t>,
}

struct ProcessDraft<'t> {
    device: usize,
    pid: u64,
    name: Option<&'t str>,
    levels: LevelDrafts<'t>,
}

/// What was read so far.
#[derive(Default)]
pub(crate) struct LevelLogBuilder<'t> {
    devices: Vec<DeviceDraft<'t>>,
    processes: Vec<ProcessDraft<'t>>,
    of_pid: HashMap<(usize, u64), usize>,
    /// The device of the line before: most logs cycle through devices.
    latest: usize,
    span: Option<(WallTime, WallTime)>,
    n_readings: usize,
    /// Readings whose time is before their predecessor's.
    n_back: usize,
    n_devices_left_out: usize,
    n_processes_left_out: usize,
    pub(crate) notes: Vec<String>,
}

impl<'t> LevelLogBuilder<'t> {
    /// The device with these ids; `None` if there are too many.
    pub(crate) fn device(&mut self, ids: Ids<'t>) -> Option<usize> {
        let n = self.devices.len();
        let mut order = (0..n).map(|step| (self.latest + 1 + step) % n);
        let found = order.find(|&at| self.devices[at].ids.are_same(ids));
        let at = match found {
            Some(at) => at,
            None if n < N_DEVICES => {
                self.devices.push(DeviceDraft {
                    ids,
                    name: None,
                    capacity: None,
                    levels: LevelDrafts::default(),
                });
                n
            }
            None => {
                self.n_devices_left_out += 1;
                return None;
            }
        };
        let known = &mut self.devices[at].ids;
        *known = known.or(ids);
        self.latest = at;
        Some(at)
    }

    pub(crate) fn name(&mut self, device: usize, name: &'t str) {
        self.devices[device].name = Some(name);
    }

    pub(crate) fn capacity(&mut self, device: usize, capacity: Bytes) {
        let known = &mut self.devices[device].capacity;
        *known = Some(known.map_or(capacity, |known| known.max(capacity)));
    }

    /// Notes a line's time.
    pub(crate) fn at(&mut self, at: Option<WallTime>) {
        self.n_readings += 1;
        if let Some(at) = at {
            let (start, end) = self.span.get_or_insert((at, at));
            if at.nanos() < start.nanos() {
                *start = at;
            }
            if at.nanos() > end.nanos() {
                *end = at;
            }
        }
    }

    pub(crate) fn level(
        &mut self,
        device: usize,
        kind: LevelKind,
        reading: LogReading<'t>,
        at: Option<WallTime>,
    ) {
        let goes_back = self.devices[device].levels.push(kind, reading, at);
        self.n_back += usize::from(goes_back);
    }

    pub(crate) fn has_level(&self, device: usize, kind: LevelKind) -> bool {
        self.devices[device].levels.has(kind)
    }

    pub(crate) fn process_has_level(&self, process: usize, kind: LevelKind) -> bool {
        self.processes[process].levels.has(kind)
    }

    /// The process on this device; `None` if there are too many.
    pub(crate) fn process(
        &mut self,
        device: usize,
        pid: u64,
        name: Option<&'t str>,
    ) -> Option<usize> {
        let n = self.processes.len();
        let at = match self.of_pid.get(&(device, pid)) {
            Some(&at) => at,
            None if n < N_PROCESSES => {
                self.of_pid.insert((device, pid), n);
                self.processes.push(ProcessDraft {
                    device,
                    pid,
                    name: None,
                    levels: LevelDrafts::default(),
                });
                n
            }
            None => {
                self.n_processes_left_out += 1;
                return None;
            }
        };
        let known = &mut self.processes[at].name;
        *known = known.or(name);
        Some(at)
    }

    pub(crate) fn process_level(
        &mut self,
        process: usize,
        kind: LevelKind,
        reading: LogReading<'t>,
        at: Option<WallTime>,
    ) {
        let goes_back = self.processes[process].levels.push(kind, reading, at);
        self.n_back += usize::from(goes_back);
    }

    pub(crate) const fn n_readings(&self) -> usize {
        self.n_readings
    }

    pub(crate) fn has_levels(&self) -> bool {
        let has =
            |levels: &LevelDrafts<'_>| !levels.series.is_empty() || !levels.missing.is_empty();
        self.devices.iter().any(|it| has(&it.levels)) || !self.processes.is_empty()
    }

    pub(crate) fn finish(mut self, title: &'static str) -> LevelLog {
        for (n, what) in [
            (self.n_devices_left_out, "devices: more than 256"),
            (self.n_processes_left_out, "processes: more than 4096"),
        ] {
            if n > 0 {
                let readings = count(n, "reading");
                let were = if n == 1 { "was" } else { "were" };
                self.notes
                    .push(format!("{readings} of further {what} {were} left out"));
            }
        }
        if self.n_back > 0 {
            let times = count(self.n_back, "time");
            self.notes.push(format!(
                "the log's clock goes back {times}: first and last are in the order of its lines"
            ));
        }
        let labels = labels(&self.devices);
        let devices = self.devices.into_iter().zip(labels);
        let devices = devices.map(|(draft, label)| DeviceLog {
            label,
            name: draft.name.map(str::to_owned),
            capacity: draft.capacity,
            missing: draft.levels.missing(),
            levels: draft.levels.series,
            processes: Vec::new(),
        });
        let mut devices: Vec<DeviceLog> = devices.collect();
        for draft in self.processes {
            devices[draft.device].processes.push(ProcessLog {
                pid: draft.pid,
                name: draft.name.map(str::to_owned),
                missing: draft.levels.missing(),
                levels: draft.levels.series,
            });
        }
        for device in &mut devices {
            device.levels.sort_by_key(|level| level.kind);
            let peak = |it: &ProcessLog| it.levels.iter().map(|level| level.series.peak).max();
            let processes = &mut device.processes;
            processes.sort_by_key(|process| (Reverse(peak(process)), process.pid));
        }
        devices.sort_by_key(|device| number_in(&device.label));
        LevelLog {
            title,
            started: self.span.map(|(start, _)| start),
            duration: self.span.map(|(start, end)| end.since(start)),
            n_readings: self.n_readings,
            devices,
            notes: self.notes,
        }
    }
}

/// `GPU 3` → 3: the order of the report.
fn number_in(label: &str) -> u64 {
    let number = label.rsplit(' ').next().unwrap_or_default();
    number.parse().unwrap_or(u64::MAX)
}

/// The first of the ids that differs from device to device; all of them if none does.
fn labels(devices: &[DeviceDraft<'_>]) -> Vec<String> {
    for which in 0..4 {
        let ids = devices.iter().filter_map(|device| device.ids.all()[which]);
        let values: Vec<&str> = ids.collect();
        let is_known = values.len() == devices.len();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if is_known && sorted.len() == devices.len() {
            let label = |value: &&str| match value.parse::<u32>() {
                Ok(number) => format!("GPU {number}"),
                Err(_) => (*value).to_owned(),
            };
            return values.iter().map(label).collect();
        }
    }
    let all = |device: &DeviceDraft<'_>| {
        let mut ids: Vec<&str> = device.ids.all().into_iter().flatten().collect();
        ids.dedup();
        match ids.join(" ") {
            none if none.is_empty() => "GPU".to_owned(),
            host if device.ids.number == Some(HOST) => host,
            ids => format!("GPU {ids}"),
        }
    };
    devices.iter().map(all).collect()
}
