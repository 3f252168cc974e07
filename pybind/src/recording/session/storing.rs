//! The session on the disk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use gpumem_model::units::{Bytes, Nanos};
use pyo3::prelude::*;

use super::{collect_look, is_disabled, is_owner, with_recorder};
use crate::recording::child::{self, ChildFolder};
use crate::recording::store::{Archive, SessionOrigin, StoreSetting, StoreState};
use gpumem_machine::sources::UsedByProcess;
use gpumem_objects::look;

/// A line waits for its run to be on the disk: no longer than that.
const PATIENCE: Duration = Duration::from_millis(50);

/// Nor does a process that ends.
const PATIENCE_AT_EXIT: Duration = Duration::from_secs(2);

/// Sets where this session and those after it are kept.
pub(crate) fn keep_in(
    py: Python<'_>,
    setting: StoreSetting,
    origin: SessionOrigin,
) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    with_recorder(py, |recorder| recorder.keep_in(setting, origin))?;
    place_children(py)
}

/// Says to child processes that begin from now on where they record themselves: beside this session,
/// if it is kept.
pub(super) fn place_children(py: Python<'_>) -> PyResult<()> {
    let place = with_recorder(py, |recorder| {
        let sessions = recorder.kept_in().0.folder()?;
        let session = &recorder.recording().header().session;
        let folder = child::folder(&sessions, session);
        Some(ChildFolder::new(session, &folder, recorder.clock()))
    })?;
    let place = place.filter(|_| !is_disabled());
    let words = place.as_ref().and_then(ChildFolder::to_text);
    child::move_to(place);
    let module = py.import("gpumem._processes")?;
    module.call_method1("place", (words,))?;
    Ok(())
}

/// Where the child processes of this session are kept, if it is kept. What Python knows by now of their
/// ends is noted there.
pub(crate) fn children(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    let Some((folder, now)) = folder_of_children(py)? else {
        return Ok(None);
    };
    if folder.is_dir() {
        let module = py.import("gpumem._processes")?;
        let codes: Vec<(u32, i32)> = module.call_method0("exit_codes")?.extract()?;
        child::note_codes(&folder, &codes, now);
    }
    Ok(Some(folder))
}

/// Notes what each child uses of GPUs.
pub(super) fn note_device_used(py: Python<'_>, used: &UsedByProcess) -> PyResult<()> {
    let Some((folder, now)) = folder_of_children(py)? else {
        return Ok(());
    };
    let mut sums: BTreeMap<u32, Bytes> = BTreeMap::new();
    for (pid, used) in used.values().flatten() {
        *sums.entry(*pid).or_default() += *used;
    }
    py.detach(|| child::note_device_used(&folder, &sums, now));
    Ok(())
}

/// Where children of this session are kept, if it is kept, and the time by its clock.
fn folder_of_children(py: Python<'_>) -> PyResult<Option<(PathBuf, Nanos)>> {
    with_recorder(py, |recorder| {
        let sessions = recorder.kept_in().0.folder()?;
        let session = &recorder.recording().header().session;
        Some((child::folder(&sessions, session), recorder.clock().now()))
    })
}

/// Has what was recorded until now written at once: a line will be shown.
pub(crate) fn hurry_store(py: Python<'_>) -> PyResult<()> {
    with_recorder(py, |recorder| {
        if let Some(queue) = recorder.queue() {
            queue.hurry();
        }
    })
}

/// Waits for a moment until what was recorded until now is on the disk: a run whose line was shown
/// is not lost with the process.
pub(crate) fn wait_for_store(py: Python<'_>) -> PyResult<()> {
    let unfinished = with_recorder(py, |recorder| recorder.queue()?.unfinished())?;
    if let Some(unfinished) = unfinished {
        py.detach(|| unfinished.wait(PATIENCE));
    }
    Ok(())
}

/// News of the store that the user has not seen yet.
pub(crate) fn store_trouble(py: Python<'_>) -> PyResult<Option<String>> {
    with_recorder(py, |recorder| recorder.queue()?.take_trouble())
}

/// Where the session is kept, and what is wrong with that; `None` where it is not to be kept, or
/// nothing has run yet.
pub(crate) fn store_state(py: Python<'_>) -> PyResult<Option<StoreState>> {
    with_recorder(py, |recorder| Some(recorder.queue()?.state()))
}

/// What is kept where this session is, or would be if sessions were kept.
pub(crate) fn archive(py: Python<'_>) -> PyResult<Option<Archive>> {
    with_recorder(py, |recorder| {
        let (setting, origin) = recorder.kept_in();
        let own = recorder.recording().header().session.clone();
        Some(Archive {
            folder: setting.folder().or_else(|| StoreSetting::Usual.folder())?,
            origin,
            own: Some(own),
            is_written: setting != StoreSetting::Off,
        })
    })
}

/// The process ends in order.
#[pyfunction(name = "_close_store")]
pub(crate) fn close_store(py: Python<'_>) -> PyResult<()> {
    if !is_owner() {
        child::end();
        return Ok(());
    }
    collect_look(py, look::patience())?;
    let unfinished = with_recorder(py, |recorder| {
        recorder.finish();
        recorder.queue()?.end()
    })?;
    if let Some(unfinished) = unfinished {
        py.detach(|| unfinished.wait(PATIENCE_AT_EXIT));
    }
    Ok(())
}
