//! A log of levels as JSON.

use serde::Serialize;

use crate::read::level_log::{
    Course, DeviceLog, LevelKind, LevelLog, NamedCourse, Point, ProcessLog, Shape, WallTime,
};
use crate::units::{Bytes, Nanos};

/// A log as JSON. Fields named `*_bytes` are bytes, `*_nanos` nanoseconds since the log's start; unknown is
/// `null`.
pub fn level_log_json(log: &LevelLog) -> String {
    let json = JsonLog::of(log);
    serde_json::to_string(&json).expect("a log holds strings and numbers only")
}

/// Also a part of what has more than levels.
#[derive(Serialize)]
pub(super) struct JsonLog<'a> {
    title: &'a str,
    started: Option<String>,
    duration_nanos: Option<Nanos>,
    n_readings: usize,
    devices: Vec<JsonDevice<'a>>,
    notes: &'a [String],
}

impl<'a> JsonLog<'a> {
    pub(super) fn of(log: &'a LevelLog) -> Self {
        let start = log.started;
        let device = |it| JsonDevice::of(it, start);
        Self {
            title: log.title,
            started: log.started.map(|time| time.to_string()),
            duration_nanos: log.duration,
            n_readings: log.n_readings,
            devices: log.devices.iter().map(device).collect(),
            notes: &log.notes,
        }
    }
}

#[derive(Serialize)]
struct JsonDevice<'a> {
    label: &'a str,
    name: Option<&'a str>,
    capacity_bytes: Option<Bytes>,
    levels: Vec<JsonLevel>,
    missing: Vec<JsonMissing<'a>>,
    processes: Vec<JsonProcess<'a>>,
}

#[derive(Serialize)]
struct JsonProcess<'a> {
    pid: u64,
    name: Option<&'a str>,
    levels: Vec<JsonLevel>,
    missing: Vec<JsonMissing<'a>>,
}

#[derive(Serialize)]
struct JsonMissing<'a> {
    words: &'a str,
    n_readings: usize,
}

#[derive(Serialize)]
struct JsonLevel {
    name: LevelKind,
    shape: Shape,
    n_readings: u64,
    first_bytes: Bytes,
    last_bytes: Bytes,
    lowest_bytes: Bytes,
    peak_bytes: Bytes,
    peak_reading: u64,
    peak_nanos: Option<Nanos>,
    peak_at: Option<String>,
    readings: Vec<u64>,
    at_nanos: Vec<Option<Nanos>>,
    bytes: Vec<Bytes>,
}

impl<'a> JsonDevice<'a> {
    fn of(device: &'a DeviceLog, start: Option<WallTime>) -> Self {
        let capacity = device.capacity;
        let level = |named: &NamedCourse| JsonLevel::of(named, capacity, start);
        let processes = device.processes.iter();
        Self {
            label: &device.label,
            name: device.name.as_deref(),
            capacity_bytes: capacity,
            levels: device.levels.iter().map(level).collect(),
            missing: device.missing.iter().map(JsonMissing::of).collect(),
            processes: processes
                .map(|it| JsonProcess::of(it, capacity, start))
                .collect(),
        }
    }
}

impl<'a> JsonProcess<'a> {
    fn of(process: &'a ProcessLog, capacity: Option<Bytes>, start: Option<WallTime>) -> Self {
        let level = |named: &NamedCourse| JsonLevel::of(named, capacity, start);
        Self {
            pid: process.pid,
            name: process.name.as_deref(),
            levels: process.levels.iter().map(level).collect(),
            missing: process.missing.iter().map(JsonMissing::of).collect(),
        }
    }
}

impl<'a> JsonMissing<'a> {
    fn of((words, n_readings): &'a (String, usize)) -> Self {
        Self {
            words,
            n_readings: *n_readings,
        }
    }
}

impl JsonLevel {
    fn of(named: &NamedCourse, capacity: Option<Bytes>, start: Option<WallTime>) -> Self {
        let course: &Course = &named.course;
        let nanos = |at: Option<WallTime>| Some(at?.since(start?));
        let points = || course.points().iter();
        let at = |point: &Point| nanos(point.at);
        Self {
            name: named.kind,
            shape: course.shape(capacity),
            n_readings: course.n_readings,
            first_bytes: course.first,
            last_bytes: course.last,
            lowest_bytes: course.lowest,
            peak_bytes: course.peak,
            peak_reading: course.peak_ordinal,
            peak_nanos: nanos(course.peak_at),
            peak_at: course.peak_at.map(|time| time.to_string()),
            readings: points().map(|point| point.ordinal).collect(),
            at_nanos: points().map(at).collect(),
            bytes: points().map(|point| point.level).collect(),
        }
    }
}
