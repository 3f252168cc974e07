//! The ranks of a job, for Python.

use std::path::{Path, PathBuf};

use gpumem_analyzer::{Analysis, analyze};
use gpumem_explorer::formats::Content;
use gpumem_explorer::process_page::ProcessPage;
use gpumem_jobs::history::SessionEnding;
use gpumem_jobs::ranks::{self, Rank, Ranks};
use gpumem_report as report;
use gpumem_report::json::ranks_json;
use pyo3::prelude::*;

use crate::python::api::{PyRecording, load_bytes, read_file, warn_missing};
use crate::python::other_file::{PyOtherFile, object};
use crate::python::workers::ending_of;
use crate::recording::store::{self, Archive, ArchiveError, Opened};
use gpumem_base::errors::raised;

/// The ranks of a job, each with a recording of its own.
#[pyclass(frozen, extends = PyOtherFile, module = "gpumem._gpumem")]
pub(crate) struct JobRanks;

struct RankJob {
    ranks: Vec<Rank>,
    found: Ranks,
    /// Recordings beside those of the job.
    n_others: usize,
}

impl Content for RankJob {
    fn kind(&self) -> &'static str {
        "a job of several ranks"
    }

    fn text(&self, width: usize) -> String {
        let text = report::ranks(&self.ranks, &self.found, width);
        match self.n_others {
            0 => text,
            1 => format!("{text}\n1 more recording here is not of this job."),
            n => format!("{text}\n{n} more recordings here are not of this job."),
        }
    }

    fn json(&self) -> String {
        ranks_json(&self.ranks, &self.found)
    }

    fn repr(&self) -> String {
        format!("<JobRanks {}>", self.ranks.len())
    }

    fn page_title(&self) -> Option<&'static str> {
        Some(if self.found.are_workers() {
            "workers of a cluster"
        } else {
            "ranks of a job"
        })
    }

    fn page(&self) -> Option<ProcessPage> {
        Some(ProcessPage::of_ranks(&self.ranks, &self.found))
    }
}

/// The last job of those that the ranks are of.
pub(crate) fn job_of(py: Python<'_>, found: Vec<Rank>) -> PyResult<Py<JobRanks>> {
    let job = py.detach(|| {
        let (ranks, n_others) = ranks::of_last_job(found);
        RankJob {
            found: ranks::ranks(&ranks),
            ranks,
            n_others,
        }
    });
    object(py, job, JobRanks)
}

/// The sessions in a folder and the recordings that were saved there; `None` if there is none.
pub(crate) fn read_folder(py: Python<'_>, folder: &Path) -> PyResult<Option<Py<JobRanks>>> {
    match ranks_in(py, folder)? {
        found if found.is_empty() => Ok(None),
        found => job_of(py, found).map(Some),
    }
}

/// The session in a file of the store; `None` if that is none.
pub(crate) fn session_in(py: Python<'_>, path: &Path) -> PyResult<Option<PyRecording>> {
    let Some(opened) = py.detach(|| Archive::of_file(path)) else {
        return Ok(None);
    };
    let (opened, _) = opened.map_err(|error| failed(py, &error))?;
    if let Some(words) = &opened.damage {
        warn_missing(py, Some(path), words)?;
    }
    Ok(Some(PyRecording::with_children(
        opened.recording,
        opened.children,
    )))
}

/// Joins the ranks of one job: files of recordings, sessions, and folders with such.
#[pyfunction(name = "_ranks")]
pub(crate) fn ranks_of(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Py<JobRanks>> {
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
        let message = "there is no recording of gpumem in these folders";
        return Err(raised(py, message, 0));
    }
    job_of(py, found)
}

fn ranks_in(py: Python<'_>, folder: &Path) -> PyResult<Vec<Rank>> {
    // That of a session's children.
    if folder.extension().is_some_and(|it| it == "processes") {
        return Ok(Vec::new());
    }
    let archive = Archive::of_folder(folder.to_owned());
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
        let ending = ending_of(&recording).unwrap_or(SessionEnding::InOrder);
        Rank::new(&id, recording, analysis, ending)
    }))
}

fn failed(py: Python<'_>, error: &ArchiveError) -> PyErr {
    let (ArchiveError::Unknown(words) | ArchiveError::Failed(words)) = error;
    raised(py, words, 0)
}
