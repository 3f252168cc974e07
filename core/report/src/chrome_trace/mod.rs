//! A recording in the Chrome Trace Event format, which Perfetto and `chrome://tracing` open.
//!
//! Process 1 is the notebook: its cells, and in them their blocks and steps. Each device is a process of
//! its own, with its levels as counters (in bytes) and its findings as instants. Times are microseconds
//! since the recording's start, rounded down, so that what was nested stays nested.
//!
//! The page does not offer it, so nothing of it is in the page's module.
//!
//! ```
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_report::chrome_trace::chrome_trace;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let text = chrome_trace(&recording, &analyze(&recording, &Rules::default()));
//! let trace: serde_json::Value = serde_json::from_str(&text)?;
//! let events = trace["traceEvents"].as_array().expect("a list");
//! let slice = events.iter().find(|event| event["ph"] == "X").expect("a run");
//! assert_eq!(slice["name"], "[1] losses.append(step(batch))");
//! assert_eq!(slice["args"]["cuda:0"]["kept_bytes"], 2 << 20);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod counters;
mod event;
mod instants;
mod lanes;
mod metadata;
mod slices;
#[cfg(test)]
mod tests;

use serde::Serialize;

use event::ViewerEvent;
use gpumem_analyzer::Analysis;
use gpumem_model::recording::{DeviceIdx, Recording};

/// The process of the cells; each device has one of its own.
const NOTEBOOK: u32 = 1;

/// The recording with its findings as the JSON of a Chrome trace.
pub fn chrome_trace(recording: &Recording, analysis: &Analysis) -> String {
    let slices = slices::slices(recording, analysis);
    let mut events = slices.events;
    events.extend(counters::events(recording));
    events.extend(instants::events(recording, analysis));
    // Stable: of slices that begin together, the outer one comes first.
    events.sort_by_key(|event| event.ts);
    let mut all = metadata::events(recording, slices.n_lanes);
    all.append(&mut events);
    let header = recording.header();
    let trace = ViewerTrace {
        unit: "ms",
        session: SessionInfo {
            session: &header.session,
            wall_anchor_nanos: header.wall_anchor.get().to_string(),
        },
        events: all,
    };
    serde_json::to_string(&trace).expect("a trace holds strings and numbers only")
}

/// The process of a device, and its only thread. As on Linux, a process's first thread has its number;
/// Perfetto knows threads by theirs alone, and takes 0 for the idle one.
fn process_of(device: DeviceIdx) -> u32 {
    device.0.saturating_add(NOTEBOOK + 1)
}

/// The thread of a track of cells: the first is that of the notebook, further ones come after the
/// devices.
fn thread_of(recording: &Recording, lane: usize) -> u32 {
    match lane {
        0 => NOTEBOOK,
        lane => NOTEBOOK.saturating_add((recording.devices().len() + lane) as u32),
    }
}

#[derive(Serialize)]
struct ViewerTrace<'a> {
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "otherData")]
    session: SessionInfo<'a>,
    #[serde(rename = "traceEvents")]
    events: Vec<ViewerEvent<'a>>,
}

/// What viewers show about the trace as a whole.
#[derive(Serialize)]
struct SessionInfo<'a> {
    session: &'a str,
    /// As text: it does not fit a JavaScript number.
    wall_anchor_nanos: String,
}
