//! A log of levels as JSON.

use gpumem_model::object;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_readers::level_log::{
    DeviceLog, LevelKind, LevelLog, LevelSeries, LogPoint, LogSeries, ProcessLog, WallTime,
};

/// Also a part of what has more than levels.
pub(in crate::formats) struct JsonLog<'a>(pub(in crate::formats) &'a LevelLog);

object! { JsonLog<'_>, it => {
    title: it.0.title,
    started: by_clock(it.0.started),
    duration_nanos: it.0.duration,
    n_readings: it.0.n_readings,
    devices: it.0.devices.iter().map(|device| JsonLogDevice(device, it.0.started)).collect::<Vec<_>>(),
    notes: it.0.notes,
}}

fn by_clock(time: Option<WallTime>) -> Option<String> {
    time.filter(|time| time.is_of_clock())
        .map(|time| time.to_string())
}

/// A device, and when its log starts.
struct JsonLogDevice<'a>(&'a DeviceLog, Option<WallTime>);

object! { JsonLogDevice<'_>, it => {
    label: it.0.label,
    name: it.0.name,
    capacity_bytes: it.0.capacity,
    levels: levels(&it.0.levels, it.0, it.1),
    missing: missing(&it.0.missing),
    processes: it.0.processes.iter().map(|process| JsonProcess(process, it)).collect::<Vec<_>>(),
}}

/// A process on a device.
struct JsonProcess<'a>(&'a ProcessLog, &'a JsonLogDevice<'a>);

object! { JsonProcess<'_>, it => {
    pid: it.0.pid,
    name: it.0.name,
    levels: levels(&it.0.levels, it.1.0, it.1.1),
    missing: missing(&it.0.missing),
}}

/// How often words stood in the place of a figure.
struct JsonMissing<'a>(&'a (String, usize));

object! { JsonMissing<'_>, it => {
    words: it.0.0,
    n_readings: it.0.1,
}}

fn missing(missing: &[(String, usize)]) -> Vec<JsonMissing<'_>> {
    missing.iter().map(JsonMissing).collect()
}

struct JsonLevel<'a> {
    kind: LevelKind,
    series: &'a LogSeries,
    capacity: Option<Bytes>,
    start: Option<WallTime>,
}

object! { JsonLevel<'_>, it => {
    name: it.kind,
    shape: it.series.shape(it.capacity),
    n_readings: it.series.n_readings,
    first_bytes: it.series.first,
    last_bytes: it.series.last,
    lowest_bytes: it.series.lowest,
    peak_bytes: it.series.peak,
    peak_reading: it.series.peak_ordinal,
    peak_nanos: it.nanos(it.series.peak_at),
    peak_at: by_clock(it.series.peak_at),
    readings: it.points(|point| point.ordinal),
    at_nanos: it.points(|point| it.nanos(point.at)),
    bytes: it.points(|point| point.level),
}}

impl JsonLevel<'_> {
    fn nanos(&self, at: Option<WallTime>) -> Option<Nanos> {
        Some(at?.since(self.start?))
    }

    fn points<T>(&self, of_each: impl Fn(&LogPoint) -> T) -> Vec<T> {
        self.series.points().iter().map(of_each).collect()
    }
}

fn levels<'a>(
    levels: &'a [LevelSeries],
    device: &DeviceLog,
    start: Option<WallTime>,
) -> Vec<JsonLevel<'a>> {
    let levels = levels.iter().map(|named| JsonLevel {
        kind: named.kind,
        series: &named.series,
        capacity: device.capacity_of(named.kind),
        start,
    });
    levels.collect()
}
