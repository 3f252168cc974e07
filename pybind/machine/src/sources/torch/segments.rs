//! The segments and blocks of torch's CUDA allocator, from its own snapshot.

use gpumem_model::segments::{Block, BlockState, Pool, Segment, Segments};
use gpumem_model::units::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The segments of one of CUDA's devices; a sentence, where telling them would take too long.
pub fn segments(torch: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<Result<Segments, String>> {
    let py = torch.py();
    let memory = torch.getattr(intern!(py, "cuda"))?.getattr("memory")?;
    let bare = PyDict::new(py);
    bare.set_item("include_traces", false)?;
    let listed = match memory.call_method("memory_snapshot", (), Some(&bare)) {
        // Older versions always include the history, if there is one.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            if history_is_recorded(torch)? {
                let reason = "this torch cannot tell it while you record its memory history";
                return Ok(Err(reason.to_owned()));
            }
            memory.call_method0("memory_snapshot")?
        }
        listed => listed?,
    };
    let mut segments = Vec::new();
    let mut streams = vec![0];
    for segment in listed.cast::<PyList>()? {
        let segment = segment.cast_into::<PyDict>()?;
        if number(&segment, intern!(py, "device"))? == ordinal as u64 {
            segments.push(read(&segment, &mut streams)?);
        }
    }
    Ok(Ok(py.detach(|| Segments::new(segments))))
}

fn history_is_recorded(torch: &Bound<'_, PyAny>) -> PyResult<bool> {
    let functions = torch.getattr(intern!(torch.py(), "_C"))?;
    match functions.call_method0("_cuda_isHistoryEnabled") {
        Ok(answer) => answer.is_truthy(),
        // One that does not say so may record.
        Err(_) => Ok(true),
    }
}

/// `streams` are those that were seen, the default one first.
fn read(segment: &Bound<'_, PyDict>, streams: &mut Vec<u64>) -> PyResult<Segment> {
    let py = segment.py();
    let stream = number(segment, intern!(py, "stream"))?;
    let position = streams.iter().position(|it| *it == stream);
    let position = position.unwrap_or_else(|| {
        streams.push(stream);
        streams.len() - 1
    });
    let owner = segment.get_item(intern!(py, "segment_pool_id"))?;
    let owner: Option<(u64, u64)> = owner.and_then(|owner| owner.extract().ok());
    let kind = segment.get_item(intern!(py, "segment_type"))?;
    let is_small = kind.is_some_and(|kind| kind.eq("small").unwrap_or(false));
    let pool = match (owner, is_small) {
        (Some(owner), _) if owner != (0, 0) => Pool::Private,
        (_, true) => Pool::Small,
        (_, false) => Pool::Large,
    };
    let mut blocks = Vec::new();
    if let Some(listed) = segment.get_item(intern!(py, "blocks"))? {
        for block in listed.cast::<PyList>()? {
            let block = block.cast_into::<PyDict>()?;
            let state = match block.get_item(intern!(py, "state"))? {
                Some(state) => state_of(state.cast::<PyString>()?.to_str()?),
                None => BlockState::Held,
            };
            let size = Bytes::new(number(&block, intern!(py, "size"))?);
            blocks.push(Block::new(state, size));
        }
    }
    Ok(Segment {
        pool,
        stream: u32::try_from(position).unwrap_or(u32::MAX),
        blocks,
    })
}

fn state_of(state: &str) -> BlockState {
    match state {
        "inactive" => BlockState::Free,
        "active_allocated" => BlockState::Held,
        _ => BlockState::Awaiting,
    }
}

/// A count; zero if it is missing, as in older versions.
fn number(dict: &Bound<'_, PyDict>, key: &Bound<'_, PyString>) -> PyResult<u64> {
    let value = dict.get_item(key)?;
    Ok(value.and_then(|value| value.extract().ok()).unwrap_or(0))
}
