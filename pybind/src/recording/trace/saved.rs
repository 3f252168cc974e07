//! A file for torch's own viewer.

use gpumem_model::trace::{Action, AllocatorEvent, History, StackFrame};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use gpumem_base::clock::Clock;
use gpumem_base::files::write_file;

/// Pickles a snapshot as torch does; what was done, in words.
pub(super) fn save(snapshot: &Bound<'_, PyAny>, file: &Bound<'_, PyString>) -> String {
    let py = snapshot.py();
    let written = (|| {
        let pickled = py.import("pickle")?.call_method1("dumps", (snapshot,))?;
        write_file(py, file.extract()?, pickled.cast::<PyBytes>()?.as_bytes())
    })();
    match written {
        Ok(()) => format!("wrote {file}: open it at pytorch.org/memory_viz"),
        Err(error) => format!("{file} was not written: {error}"),
    }
}

/// The histories of the simulated devices, in their order, in the shape of torch's snapshot.
pub(super) fn as_torch_would<'py, 'a>(
    py: Python<'py>,
    histories: impl Iterator<Item = &'a History>,
    clock: Clock,
) -> PyResult<Bound<'py, PyAny>> {
    let (segments, traces) = (PyList::empty(py), PyList::empty(py));
    for (device, history) in histories.enumerate() {
        add_segments(&segments, device, history)?;
        traces.append(trace(py, history, clock)?)?;
    }
    let snapshot = dict!(py, {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": PyDict::new(py),
        "external_annotations": PyList::empty(py),
    });
    Ok(snapshot.into_any())
}

fn trace<'py>(py: Python<'py>, history: &History, clock: Clock) -> PyResult<Bound<'py, PyList>> {
    let frame = |frame: &StackFrame| {
        Ok(dict!(py, { "name": &frame.name, "filename": &frame.file, "line": frame.line }))
    };
    let frames = history.frames.iter().map(frame);
    let frames: Vec<Bound<'py, PyDict>> = frames.collect::<PyResult<_>>()?;
    let mut stacks: Vec<Bound<'py, PyList>> = Vec::with_capacity(history.stacks.len());
    for stack in &history.stacks {
        let of_stack = stack.iter().filter_map(|idx| frames.get(*idx as usize));
        stacks.push(PyList::new(py, of_stack)?);
    }
    let trace = PyList::empty(py);
    for event in &history.events {
        let dict = event_as_torch_would(py, event, clock)?;
        let stack = event.stack.and_then(|idx| stacks.get(idx.0 as usize));
        dict.set_item(
            "frames",
            stack.cloned().unwrap_or_else(|| PyList::empty(py)),
        )?;
        trace.append(dict)?;
    }
    Ok(trace)
}

fn event_as_torch_would<'py>(
    py: Python<'py>,
    event: &AllocatorEvent,
    clock: Clock,
) -> PyResult<Bound<'py, PyDict>> {
    let action = match event.action {
        Action::Alloc => "alloc",
        Action::FreeRequested => "free_requested",
        Action::FreeCompleted => "free_completed",
        Action::SegmentAlloc => "segment_alloc",
        Action::SegmentFree => "segment_free",
        Action::OutOfMemory => "oom",
    };
    let address = if event.action == Action::OutOfMemory {
        "device_free"
    } else {
        "addr"
    };
    let dict = dict!(py, { "action": action });
    dict.set_item(address, event.address)?;
    dict.set_item("size", event.size.get())?;
    dict.set_item("stream", 0)?;
    dict.set_item("time_us", (clock.wall_anchor() + event.at).get() / 1_000)?;
    Ok(dict)
}

/// One segment for each block that is held: the viewer draws blocks, and the model tells of no
/// more than these.
fn add_segments(segments: &Bound<'_, PyList>, device: usize, history: &History) -> PyResult<()> {
    let py = segments.py();
    let mut blocks: Vec<_> = history.blocks_after.iter().collect();
    blocks.sort();
    for (address, size) in blocks {
        let size = size.get();
        let block = dict!(py, {
            "address": address,
            "size": size,
            "requested_size": size,
            "state": "active_allocated",
            "frames": PyList::empty(py),
        });
        segments.append(dict!(py, {
            "device": device,
            "address": address,
            "total_size": size,
            "allocated_size": size,
            "active_size": size,
            "requested_size": size,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": false,
            "frames": PyList::empty(py),
            "blocks": PyList::new(py, [block])?,
        }))?;
    }
    Ok(())
}
