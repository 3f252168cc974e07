//! The local variables of functions that are running.

use std::collections::HashMap;
use std::iter;

use gpumem_model::holders::RootKind;
use pyo3::ffi;

use super::{Places, Roots, fillers};
use crate::still::{Dict, Object, Section};
use crate::walk::native;

/// Packages whose frames hold nothing of the user's but what has a name anyway.
const PASSED: [&str; 9] = [
    "asyncio",
    "dask",
    "distributed",
    "IPython",
    "ipykernel",
    "gpumem",
    "jupyter_client",
    "tornado",
    "zmq",
];

/// Modules of Python's own in which a thread waits for work.
const WAITING: [&str; 9] = [
    "concurrent",
    "queue",
    "selectors",
    "socket",
    "socketserver",
    "sqlite3",
    "subprocess",
    "threading",
    "traitlets",
];

/// Adds the locals of every thread's frames: of the run's own thread, those of the user's own
/// functions and of what the innermost of them calls, for the rest are what runs the cell.
pub(super) fn add<'s>(roots: &mut Roots<'s>, section: &'s Section<'s>, places: &Places<'_>) {
    let names = thread_names(section);
    let mut beside = Vec::new();
    for (thread, mut frames) in by_thread(section, places) {
        let is_own = thread == places.own_thread;
        let name = names.get(&thread).filter(|_| !is_own);
        for frame in &frames {
            // A thread keeps it, and not the traceback or the frame that leads to it.
            roots.close(frame.clone());
        }
        if is_own {
            let first = frames.iter().position(|frame| is_users(roots, frame));
            let mut position = 0..;
            frames.retain(|frame| {
                let is_called = position.next() < first;
                is_called || is_users(roots, frame)
            });
        }
        for frame in &frames {
            add_frame(roots, frame, name.map(String::as_str));
        }
        if !is_own {
            frames.retain(|frame| is_users(roots, frame));
            beside.extend(frames);
        }
    }
    fillers::note(roots, &beside);
}

/// What other threads are in, if it is more than waiting for work: `train() in Thread-3`.
pub(crate) fn other_threads<'s>(section: &'s Section<'s>, places: &Places<'_>) -> Option<String> {
    let is_waiting = |frame: &Object<'_>| {
        let globals = frame.read("f_globals").and_then(|globals| globals.dict());
        globals.is_some_and(|globals| is_passed(&globals) || is_of(&globals, &WAITING))
    };
    let names = thread_names(section);
    let mut others = by_thread(section, places);
    others.retain(|(thread, _)| *thread != own_thread());
    others.iter().find_map(|(thread, frames)| {
        let frame = frames.iter().find(|frame| !is_waiting(frame))?;
        let thread = names.get(thread).map_or("a thread", String::as_str);
        let function = native::function_name(frame)?;
        Some(format!("{function}() in {thread}"))
    })
}

/// The frames of each thread, the innermost first.
fn by_thread<'s>(section: &'s Section<'s>, places: &Places<'_>) -> Vec<(u64, Vec<Object<'s>>)> {
    let frames = section.object(places.frames.as_any()).dict();
    let frames = frames.iter().flat_map(Dict::items);
    let of_thread = |(thread, innermost): (Object<'s>, Object<'s>)| {
        Some((thread.number()?, frames_from(innermost)))
    };
    frames.filter_map(of_thread).collect()
}

/// The number of this thread, as Python counts them.
#[expect(unsafe_code, reason = "the number of a thread")]
#[allow(clippy::useless_conversion, reason = "on Windows it has 32 bits")]
pub fn own_thread() -> u64 {
    // SAFETY: it only asks.
    unsafe { ffi::PyThread_get_thread_ident() }.into()
}

/// A frame, the one that called it, and so on.
fn frames_from(innermost: Object<'_>) -> Vec<Object<'_>> {
    iter::successors(Some(innermost), |frame| {
        frame.read("f_back").filter(|frame| !frame.is_none())
    })
    .collect()
}

fn is_users<'s>(roots: &Roots<'s>, frame: &Object<'s>) -> bool {
    let globals = frame.read("f_globals").and_then(|globals| globals.dict());
    globals.is_some_and(|globals| roots.is_users(&globals))
}

fn add_frame<'s>(roots: &mut Roots<'s>, frame: &Object<'s>, thread: Option<&str>) {
    let Some(globals) = frame.read("f_globals").and_then(|globals| globals.dict()) else {
        return;
    };
    if !roots.is_users(&globals) && is_passed(&globals) {
        return;
    }
    let function = native::function_name(frame).unwrap_or_else(|| "?".to_owned());
    for (variable, value) in native::locals(frame) {
        if let Some(thread) = thread {
            let name = format!("{function}() in {thread}");
            let path = format!("{name}.<locals>.{variable}");
            roots.add_beside(&name, path, value, format!("{function} (thread)"));
        } else {
            let name = format!("{variable} in {function}()");
            let path = format!("{function}().<locals>.{variable}");
            roots.add(RootKind::ThreadFrame, &name, path, value);
        }
    }
}

pub(super) fn is_passed(globals: &Dict<'_>) -> bool {
    is_of(globals, &PASSED)
}

/// Whether these are the globals of a module of one of these packages.
fn is_of(globals: &Dict<'_>, packages: &[&str]) -> bool {
    let name = globals.get("__name__").and_then(|name| name.text());
    name.is_some_and(|name| {
        let package = name.split('.').next().unwrap_or_default();
        packages.contains(&package)
    })
}

/// What `threading` calls the threads that it knows.
fn thread_names<'s>(section: &'s Section<'s>) -> HashMap<u64, String> {
    let modules = section.modules();
    let threading = modules.and_then(|modules| modules.get("threading")?.globals());
    let active = threading.and_then(|module| module.get("_active")?.dict());
    let named = |(thread, object): (Object<'_>, Object<'_>)| {
        // The class of a thread may be the user's: its attributes are read past it.
        Some((thread.number()?, object.attribute("_name")?.text()?))
    };
    active
        .iter()
        .flat_map(Dict::items)
        .filter_map(named)
        .collect()
}
