//! The names of the tracks, and their order.

use std::borrow::Cow;

use super::event::{Micros, Phase, TraceArgs, ViewerEvent};
use super::{NOTEBOOK, process_of, thread_of};
use gpumem_model::recording::{Device, Recording};

/// Names the processes and the threads.
pub(super) fn events<'a>(recording: &Recording, n_lanes: usize) -> Vec<ViewerEvent<'a>> {
    let mut events = process(NOTEBOOK, "notebook".to_owned());
    for lane in 0..n_lanes {
        let name = match lane {
            0 => "cells".to_owned(),
            _ => format!("cells, at the same time ({})", lane + 1),
        };
        let thread = (NOTEBOOK, thread_of(recording, lane));
        events.push(metadata("thread_name", thread, TraceArgs::Name { name }));
        let sort_index = u32::try_from(lane).unwrap_or(u32::MAX);
        let place = TraceArgs::Place { sort_index };
        events.push(metadata("thread_sort_index", thread, place));
    }
    for device in recording.devices() {
        events.extend(process(process_of(device.idx), name(device)));
    }
    events
}

/// The name of a process, and its place among the others.
fn process<'a>(pid: u32, name: String) -> Vec<ViewerEvent<'a>> {
    let place = TraceArgs::Place { sort_index: pid };
    vec![
        metadata("process_name", (pid, pid), TraceArgs::Name { name }),
        metadata("process_sort_index", (pid, pid), place),
    ]
}

fn name(device: &Device) -> String {
    match &*device.name {
        "" => device.label.clone(),
        maker => format!("{} · {maker}", device.label),
    }
}

fn metadata<'a>(what: &'static str, (pid, tid): (u32, u32), args: TraceArgs) -> ViewerEvent<'a> {
    ViewerEvent {
        ph: Phase::Metadata,
        name: Cow::from(what),
        cat: None,
        pid,
        tid,
        ts: Micros::ZERO,
        dur: None,
        s: None,
        args,
    }
}
