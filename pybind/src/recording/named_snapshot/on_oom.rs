//! `GpuMem.snapshot_on_oom`: a snapshot at the moment when torch's memory runs out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use super::save;
use super::torch::TorchCudaAllocator;
use crate::recording::session;
use gpumem_base::errors::file_error;
use gpumem_base::guard;
use gpumem_base::locks::lock;
use gpumem_objects::adapters::registered::Asks;

/// A notebook whose cells fail again and again fills no disk.
const MOST_FILES: u32 = 8;

/// The name of files in a folder.
const STEM: &str = "out-of-memory";

static STATE: Mutex<SnapshotState> = Mutex::new(SnapshotState {
    place: None,
    n_files: 0,
    n_begun: 0,
    runs: Vec::new(),
});

struct SnapshotState {
    /// The file or folder that the user has named.
    place: Option<PathBuf>,
    n_files: u32,
    n_begun: u64,
    /// The recorded cells that are under way.
    runs: Vec<OomWatchedRun>,
}

struct OomWatchedRun {
    number: u64,
    thread: ThreadId,
    /// What was written in it, in words, once something was; empty while that is done.
    said: Option<String>,
}

impl SnapshotState {
    /// The run in this thread; else the one that began last, for which this thread may work.
    fn run_here(&mut self) -> Option<&mut OomWatchedRun> {
        let here = thread::current().id();
        let place = self.runs.iter().rposition(|run| run.thread == here);
        let place = place.or(self.runs.len().checked_sub(1))?;
        self.runs.get_mut(place)
    }
}

/// A recorded run, for as long as it goes on.
#[derive(Debug)]
pub(crate) struct RunWatch(u64);

/// What `GpuMem.snapshot_on_oom` says now.
#[pyfunction(name = "_snapshot_on_oom")]
pub(crate) fn snapshot_on_oom(place: Option<PathBuf>) {
    lock(&STATE).place = place;
}

/// A recorded run begins in this thread.
pub(crate) fn begin() -> RunWatch {
    let mut state = lock(&STATE);
    state.n_begun += 1;
    let number = state.n_begun;
    state.runs.push(OomWatchedRun {
        number,
        thread: thread::current().id(),
        said: None,
    });
    RunWatch(number)
}

/// The run ends: what was written in it, in words.
pub(crate) fn end(run: &RunWatch) -> Option<String> {
    let mut state = lock(&STATE);
    let place = state.runs.iter().position(|it| it.number == run.0)?;
    let words = state.runs.remove(place).said;
    words.filter(|words| !words.is_empty())
}

impl Drop for RunWatch {
    fn drop(&mut self) {
        end(self);
    }
}

/// Memory has just run out, or the run has failed of it: writes the first time in a recorded run. An
/// error may still be caught by the user's code.
pub(crate) fn at_this_moment(py: Python<'_>) {
    // Memory of another kind ran out.
    if !matches!(TorchCudaAllocator::of_imported(py), Ok(Ok(_))) {
        return;
    }
    let (place, number) = {
        let mut state = lock(&STATE);
        let (place, is_full) = (state.place.clone(), state.n_files == MOST_FILES);
        let is_wanted = |run: &&mut OomWatchedRun| run.said.is_none() && session::is_owner();
        let Some((place, run)) = place.zip(state.run_here().filter(is_wanted)) else {
            return;
        };
        // The search may run out of memory itself: do not enter twice.
        if is_full {
            let words = format!("no memory snapshot: this session has written {MOST_FILES}");
            run.said = Some(words);
            return;
        }
        run.said = Some(String::new());
        let number = run.number;
        state.n_files += 1;
        (place, number)
    };
    let words = match guard::caught(py, || written(py, &place)) {
        Ok(Some(words)) => words,
        Ok(None) => "no memory snapshot: it was interrupted".to_owned(),
        Err(error) => format!("no memory snapshot: {error}"),
    };
    let mut state = lock(&STATE);
    if let Some(run) = state.runs.iter_mut().find(|run| run.number == number) {
        run.said = Some(words);
    }
}

fn written(py: Python<'_>, place: &Path) -> PyResult<String> {
    let path = free_path(place)?;
    let saved = save(py, path.clone(), Asks::Nobody)?;
    let note = saved
        .note
        .map_or_else(String::new, |note| format!("; {note}"));
    Ok(format!(
        "wrote {}: memory as it ran out, {} of {} blocks with the path that holds them{note}",
        path.display(),
        saved.n_named,
        saved.n_blocks
    ))
}

/// A path where no file is: the named file's, or one in the named folder. Nothing is replaced.
fn free_path(place: &Path) -> PyResult<PathBuf> {
    let is_file = place.extension().is_some_and(|it| it == "pickle") && !place.is_dir();
    let folder = if is_file {
        place.parent().unwrap_or(Path::new("."))
    } else {
        place
    };
    fs::create_dir_all(folder).map_err(|error| file_error(folder.to_owned(), &error))?;
    let stem = place.file_stem().filter(|_| is_file);
    let stem = stem.unwrap_or(STEM.as_ref()).to_string_lossy();
    let first = folder.join(format!("{stem}.pickle"));
    let others = (2_u32..).map(|n| folder.join(format!("{stem}-{n}.pickle")));
    let mut paths = std::iter::once(first).chain(others);
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    Ok(paths.find(is_free).unwrap_or_else(|| place.to_owned()))
}
