//! Levels as counters, one track for each level of each device.

use std::borrow::Cow;

use super::event::{Phase, TraceArgs, ViewerEvent};
use super::process_of;
use gpumem_model::recording::{DeviceIdx, Recording, Sample};
use gpumem_model::units::{Bytes, Nanos};

/// What a level is called, and where a reading has it.
type CounterLevel = (&'static str, fn(&Sample) -> Option<Bytes>);

/// Viewers append the unit to these names: it is the name of the argument.
const LEVELS: [CounterLevel; 4] = [
    ("allocated", |sample| sample.allocated),
    ("reserved", |sample| sample.reserved),
    ("process used", |sample| sample.process_used),
    ("device used", |sample| sample.device_used),
];

/// Every change of every level. A level that is unknown for a while keeps its last value there: the
/// format has no gaps.
pub(super) fn events(recording: &Recording) -> Vec<ViewerEvent<'_>> {
    let devices = recording.devices().iter();
    let of_each = devices.flat_map(|device| {
        let samples = samples(recording, device.idx);
        LEVELS.map(|level| changes(device.idx, level, &samples))
    });
    of_each.flatten().collect()
}

fn changes<'a>(
    device: DeviceIdx,
    (name, level): CounterLevel,
    samples: &[Sample],
) -> Vec<ViewerEvent<'a>> {
    let mut last = None;
    let known = samples
        .iter()
        .filter_map(|sample| Some((sample.at, level(sample)?)));
    known
        .filter(|(_, bytes)| last.replace(*bytes) != Some(*bytes))
        .map(|(at, bytes)| counter(device, name, at, bytes))
        .collect()
}

fn counter<'a>(device: DeviceIdx, name: &'static str, at: Nanos, bytes: Bytes) -> ViewerEvent<'a> {
    ViewerEvent {
        ph: Phase::Counter,
        name: Cow::from(name),
        cat: None,
        pid: process_of(device),
        tid: process_of(device),
        ts: at.into(),
        dur: None,
        s: None,
        args: TraceArgs::Level { bytes: bytes.get() },
    }
}

/// All readings of a device in the order of time: at the ends of runs, at marks, of the sampler and
/// of traces.
fn samples(recording: &Recording, device: DeviceIdx) -> Vec<Sample> {
    let mut samples = Vec::new();
    for run in recording.runs() {
        let around = run.levels.iter().filter(|levels| levels.device == device);
        for levels in around {
            let at = |at, reading| Sample {
                at,
                ..Sample::from_reading(reading)
            };
            samples.push(at(run.started, &levels.before));
            let after = levels.after.as_ref().zip(run.ended);
            samples.extend(after.map(|(reading, ended)| at(ended, reading)));
        }
        for (_, points) in recording.samples_of(run.idx, device) {
            samples.extend(points.iter());
        }
        let trace = recording.trace(run.idx, device);
        samples.extend(trace.into_iter().flat_map(|trace| &trace.steps).copied());
    }
    samples.sort_by_key(|sample| sample.at);
    samples
}
