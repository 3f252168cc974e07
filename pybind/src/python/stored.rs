//! What is kept on the disk, for Python.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use gpumem_jobs::history::StoredSession;
use gpumem_model::printable::printable;
use gpumem_report as report;
use gpumem_report::json;
use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyKeyError};
use pyo3::prelude::*;

use crate::python::api::PyRecording;
use crate::recording::session;
use crate::recording::store::{Archive, ArchiveError, SessionOrigin, StoreSetting};
use gpumem_base::errors::GpuMemError;
use gpumem_base::locks::lock;
use gpumem_base::text::{Text, strings};
use gpumem_base::threads;
use gpumem_objects::look;

create_exception!(
    gpumem,
    StoreError,
    GpuMemError,
    "A stored session that cannot be read or written."
);

/// "No such file or directory", on every system.
const ENOENT: i32 = 2;

/// `GpuMem.store`.
#[derive(FromPyObject)]
pub(crate) enum Store {
    Yes(bool),
    Folder(PathBuf),
}

/// What `GpuMem.store` says now, and who is recorded: the notebook's path and the machine's name,
/// where they are known, and what the process was started by.
#[pyfunction(name = "_keep_in")]
pub(crate) fn keep_in(
    py: Python<'_>,
    store: Store,
    notebook: Option<Text>,
    host: Option<Text>,
    command: Vec<Text>,
) -> PyResult<()> {
    let setting = match store {
        Store::Yes(true) => StoreSetting::Usual,
        Store::Yes(false) => StoreSetting::Off,
        Store::Folder(path) => StoreSetting::Folder(path),
    };
    let origin = SessionOrigin::new(
        notebook.map(String::from),
        host.map(String::from),
        &strings(command),
    );
    session::keep_in(py, setting, origin)
}

/// The sessions that are kept, as a table.
#[pyfunction(name = "_sessions_text")]
pub(crate) fn sessions_text(py: Python<'_>, n_shown: usize, width: usize) -> PyResult<String> {
    let archive = archive(py)?;
    py.detach(|| {
        let (sessions, n_more) = archive.sessions(n_shown);
        if sessions.is_empty() {
            return Ok(archive.none_kept());
        }
        let table = report::sessions(&sessions, width);
        Ok(match n_more {
            0 => table,
            n => format!("{table}\n… and {n} more: %gpumem sessions --all"),
        })
    })
}

/// The same, as JSON.
#[pyfunction(name = "_sessions_json")]
pub(crate) fn sessions_json(py: Python<'_>) -> PyResult<String> {
    let archive = archive(py)?;
    Ok(py.detach(|| json::sessions_json(&archive.sessions(usize::MAX).0)))
}

/// The recording of a session: `last`, or an id of which the beginning is enough.
#[pyfunction(name = "_stored_recording")]
pub(crate) fn stored_recording(py: Python<'_>, which: Text) -> PyResult<PyRecording> {
    let Text(which) = which;
    let archive = archive(py)?;
    let opened = py.detach(|| archive.open(&which)).map_err(raised)?;
    Ok(PyRecording::with_children(
        opened.recording,
        opened.children,
    ))
}

/// What came of the search for the last session of this notebook.
static LAST_DIED: Mutex<Option<Receiver<StoredSession>>> = Mutex::new(None);

/// Loading gpumem waits no longer than this for that search.
const PATIENCE: Duration = Duration::from_millis(50);

/// Begins to search for the last session of this notebook, if sessions are kept, and waits for a moment.
pub(crate) fn search_last(py: Python<'_>) -> PyResult<()> {
    let archive = session::archive(py)?.filter(|archive| archive.is_written);
    let (Some(archive), Ok(())) = (archive, look::ensure_room()) else {
        return Ok(());
    };
    let (sender, found) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    let search = move || {
        if let Some(session) = archive.last_that_died() {
            // The process may have ended.
            drop(sender.send(session));
        }
        drop(done);
    };
    if threads::start_once("gpumem-last", search).is_ok() {
        // It never says anything, and ends when the search does.
        let _ = py.detach(move || is_done.recv_timeout(PATIENCE));
        *lock(&LAST_DIED) = Some(found);
    }
    Ok(())
}

/// The last session of this notebook, if it died: once, when that is known.
pub(crate) fn last_died() -> Option<StoredSession> {
    let mut last = lock(&LAST_DIED);
    let session = last.as_ref()?.try_recv();
    if !matches!(session, Err(TryRecvError::Empty)) {
        *last = None;
    }
    session.ok()
}

/// Where this session is kept, and why not.
#[pyfunction(name = "_store_status")]
pub(crate) fn store_status(py: Python<'_>) -> PyResult<(Option<String>, Option<String>)> {
    let state = session::store_state(py)?.unwrap_or_default();
    Ok((state.path, state.trouble))
}

/// Keeps a recording under a name: without one the runs so far, if sessions are kept.
#[pyfunction(name = "_save_baseline", signature = (name, recording = None))]
pub(crate) fn save_baseline(
    py: Python<'_>,
    name: Text,
    recording: Option<Bound<'_, PyRecording>>,
) -> PyResult<()> {
    let Text(name) = name;
    let recording = match recording {
        Some(recording) => recording.get().inner.clone(),
        None if session::archive(py)?.is_some_and(|archive| archive.is_written) => {
            session::snapshot(py)?
        }
        None => return Ok(()),
    };
    let archive = archive(py)?;
    py.detach(|| archive.save_baseline(&name, &recording))
        .map_err(raised)
}

/// The baseline of that name, or else the session of that id; for the name of a folder only a baseline.
pub(crate) fn named(py: Python<'_>, name: &str, is_folder: bool) -> PyResult<Option<PyRecording>> {
    let Some(archive) = session::archive(py)? else {
        return Ok(None);
    };
    let shown = printable(name);
    let baselines = py.detach(|| archive.baseline_names());
    if baselines.contains(&shown) {
        let recording = py.detach(|| archive.baseline(&shown)).map_err(raised)?;
        return Ok(Some(PyRecording::new(recording)));
    }
    if is_folder {
        return Ok(None);
    }
    match py.detach(|| archive.open(name)) {
        Ok(opened) => Ok(Some(PyRecording::with_children(
            opened.recording,
            opened.children,
        ))),
        Err(ArchiveError::Unknown(words)) => {
            let known = match &*baselines {
                [] => String::new(),
                names => format!(" (there is {})", names.join(", ")),
            };
            let words = format!("neither a file nor a baseline{known}, and {words}");
            Err(PyFileNotFoundError::new_err((ENOENT, words, shown)))
        }
        Err(error) => Err(raised(error)),
    }
}

/// The names of all baselines that are kept.
#[pyfunction(name = "_baseline_names")]
pub(crate) fn baseline_names(py: Python<'_>) -> PyResult<Vec<String>> {
    let archive = archive(py)?;
    Ok(py.detach(|| archive.baseline_names()))
}

fn archive(py: Python<'_>) -> PyResult<Archive> {
    session::archive(py)?
        .ok_or_else(|| StoreError::new_err("there is no home folder to keep sessions in"))
}

fn raised(error: ArchiveError) -> PyErr {
    match error {
        ArchiveError::Unknown(words) => PyKeyError::new_err(words),
        ArchiveError::Failed(words) => StoreError::new_err(words),
    }
}
