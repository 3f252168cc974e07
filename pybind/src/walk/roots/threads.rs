//! The local variables of functions that are running.

use std::collections::HashMap;
use std::iter;

use gpumem_core::holders::RootKind;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString};

use super::{Roots, attribute, dict};
use crate::adapters::peek;
use crate::walk::native;

/// Packages whose frames hold nothing of the user's but what has a name anyway.
const PASSED: [&str; 7] = [
    "asyncio",
    "IPython",
    "ipykernel",
    "gpumem",
    "jupyter_client",
    "tornado",
    "zmq",
];

/// Adds the locals of every thread's frames: of the thread that asks, those of the user's own
/// functions and of what the innermost of them calls, for the rest are what runs the cell.
pub(super) fn add<'py>(roots: &mut Roots<'py>, py: Python<'py>) -> PyResult<()> {
    let frames = py.import("sys")?.call_method0("_current_frames")?;
    let frames = frames.cast_into::<PyDict>()?;
    let names = thread_names(py);
    // SAFETY: the GIL is held.
    let own = unsafe { ffi::PyThread_get_thread_ident() };
    for (thread, innermost) in &frames {
        let thread: u64 = thread.extract()?;
        let name = names.get(&thread).filter(|_| thread != own);
        let mut frames = frames_from(innermost);
        for frame in &frames {
            // A thread keeps it, and not the traceback or the frame that leads to it.
            roots.close(frame);
        }
        if thread == own {
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
    }
    Ok(())
}

/// A frame, the one that called it, and so on.
fn frames_from(innermost: Bound<'_, PyAny>) -> Vec<Bound<'_, PyAny>> {
    iter::successors(Some(innermost), |frame| attribute(frame, "f_back")).collect()
}

fn is_users(roots: &Roots<'_>, frame: &Bound<'_, PyAny>) -> bool {
    attribute(frame, "f_globals").is_some_and(|globals| roots.is_users(&globals))
}

fn add_frame<'py>(roots: &mut Roots<'py>, frame: &Bound<'py, PyAny>, thread: Option<&str>) {
    let Some(globals) = dict(frame, "f_globals") else {
        return;
    };
    if !roots.is_users(globals.as_any()) && is_passed(&globals) {
        return;
    }
    let Ok(locals) = native::locals(frame) else {
        return;
    };
    let function = function_name(frame).unwrap_or_else(|| "?".to_owned());
    let name = match thread {
        Some(thread) => format!("{function}() in {thread}"),
        None => format!("{function}()"),
    };
    for (variable, value) in locals {
        let path = format!("{name}.<locals>.{variable}");
        roots.add(RootKind::ThreadFrame, &name, path, value);
    }
}

fn function_name(frame: &Bound<'_, PyAny>) -> Option<String> {
    attribute(&attribute(frame, "f_code")?, "co_name")?
        .extract()
        .ok()
}

pub(super) fn is_passed(globals: &Bound<'_, PyDict>) -> bool {
    let name = globals.get_item("__name__").ok().flatten();
    let name = name.and_then(|name| name.cast_into_exact::<PyString>().ok());
    name.is_some_and(|name| {
        let name = name.to_string_lossy();
        let package = name.split('.').next().unwrap_or_default();
        PASSED.contains(&package)
    })
}

/// What `threading` calls the threads that it knows.
fn thread_names(py: Python<'_>) -> HashMap<u64, String> {
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules"));
    let threading = modules.and_then(|modules| modules.get_item("threading"));
    let active = threading.ok().and_then(|module| dict(&module, "_active"));
    let named = |(thread, object): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        // The class of a thread may be the user's: its attributes are read past it.
        let name = peek::attributes(&object)?.get_item("_name").ok()??;
        let name = name
            .cast_exact::<PyString>()
            .ok()?
            .to_string_lossy()
            .into_owned();
        Some((thread.extract().ok()?, name))
    };
    active
        .iter()
        .flat_map(PyDictMethods::iter)
        .filter_map(named)
        .collect()
}
