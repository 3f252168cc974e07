//! The ranks of a job, for Python.

use std::path::{Path, PathBuf};

use gpumem_core::analyze::{Analysis, analyze};
use gpumem_core::history::Ending;
use gpumem_core::json::ranks_json;
use gpumem_core::process_page::ProcessPage;
use gpumem_core::ranks::{self, Rank, Ranks};
use gpumem_core::report;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::api::{Recording, load_bytes, raised, read_file, warn_missing};
use crate::store::{self, Archive, ArchiveError, Opened, Origin};
use crate::workers::ending_of;

/// The ranks of a job, each with a recording of its own.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct JobRanks {
    job: Vec<Rank>,
    found: Ranks,
    /// Recordings beside those of the job.
    n_others: usize,
}

#[pymethods]
impl JobRanks {
    /// What messages call them.
    #[classattr]
    const _KIND: &'static str = "a job of several ranks";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        let text = report::ranks(&self.job, &self.found, width);
        match self.n_others {
            0 => text,
            1 => format!("{text}\n1 more recording here is not of this job."),
            n => format!("{text}\n{n} more recordings here are not of this job."),
        }
    }

    /// Everything as JSON: sizes are bytes, times are nanoseconds.
    fn to_json(&self) -> String {
        ranks_json(&self.job, &self.found)
    }

    /// What each of them is called: `rank` or `worker`.
    fn _noun(&self) -> &'static str {
        self.found.noun()
    }

    /// What the page is made from.
    fn _page<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let page = py.detach(|| ProcessPage::of_ranks(&self.job, &self.found).to_bytes());
        PyBytes::new(py, &page)
    }

    fn __repr__(&self) -> String {
        format!("<JobRanks {}>", self.job.len())
    }
}

impl JobRanks {
    pub(crate) fn of(found: Vec<Rank>) -> Self {
        let (job, n_others) = ranks::of_last_job(found);
        Self {
            found: ranks::ranks(&job),
            job,
            n_others,
        }
    }
}

/// The sessions in a folder and the recordings that were saved there; `None` if there is none.
pub(crate) fn read_folder(py: Python<'_>, folder: &Path) -> PyResult<Option<JobRanks>> {
    let found = ranks_in(py, folder)?;
    Ok((!found.is_empty()).then(|| py.detach(|| JobRanks::of(found))))
}

/// The session in a file of the store; `None` if that is none.
pub(crate) fn session_in(py: Python<'_>, path: &Path) -> PyResult<Option<Recording>> {
    let Some(opened) = py.detach(|| Archive::of_file(path)) else {
        return Ok(None);
    };
    let (opened, _) = opened.map_err(|error| failed(py, &error))?;
    if let Some(words) = &opened.damage {
        warn_missing(py, Some(path), words)?;
    }
    Ok(Some(Recording::with_children(
        opened.recording,
        opened.children,
    )))
}

/// Joins the ranks of one job: files of recordings, sessions, and folders with such.
#[pyfunction]
#[pyo3(name = "_ranks")]
pub(crate) fn ranks_of(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<JobRanks> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(ranks_in(py, &path)?);
        } else if path.file_name().is_some_and(|it| it == store::MARKER) {
            // It says only that the sessions beside it are gpumem's.
        } else if let Some(opened) = py.detach(|| Archive::of_file(&path)) {
            let (opened, analysis) = opened.map_err(|error| failed(py, &error))?;
            found.push(rank_of(opened, analysis));
        } else {
            found.push(saved(py, path)?);
        }
    }
    if found.is_empty() {
        let message = "there is no recording of gpumem in these folders".to_owned();
        return Err(raised(py, &message, 0));
    }
    Ok(py.detach(|| JobRanks::of(found)))
}

fn ranks_in(py: Python<'_>, folder: &Path) -> PyResult<Vec<Rank>> {
    // That of a session's children.
    if folder.extension().is_some_and(|it| it == "processes") {
        return Ok(Vec::new());
    }
    let archive = Archive {
        folder: folder.to_owned(),
        origin: Origin::default(),
        own: None,
        is_written: false,
    };
    let sessions = py.detach(|| archive.all());
    let sessions = sessions.into_iter();
    let mut found: Vec<Rank> = sessions
        .map(|(opened, analysis)| rank_of(opened, analysis))
        .collect();
    let mut paths = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let is_recording = path.extension().is_some_and(|it| it == store::EXTENSION);
        if is_recording && path.is_file() && !store::is_session_name(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    for path in paths {
        found.push(saved(py, path)?);
    }
    Ok(found)
}

fn rank_of(opened: Opened, analysis: Analysis) -> Rank {
    let id = opened.path.display().to_string();
    Rank::new(&id, opened.recording, analysis, opened.session.ending)
}

/// A recording that was saved by whoever made it: it ended in order, unless it says other.
fn saved(py: Python<'_>, path: PathBuf) -> PyResult<Rank> {
    let (path, bytes) = read_file(py, path)?;
    let recording = load_bytes(py, &path, &bytes)?.inner;
    let id = path.display().to_string();
    Ok(py.detach(|| {
        let analysis = analyze(&recording, &recording.header().rules);
        let ending = ending_of(&recording).unwrap_or(Ending::InOrder);
        Rank::new(&id, recording, analysis, ending)
    }))
}

fn failed(py: Python<'_>, error: &ArchiveError) -> PyErr {
    let (ArchiveError::Unknown(words) | ArchiveError::Failed(words)) = error;
    raised(py, words, 0)
}
