//! The workers of a cluster, for Python: what they sent, joined, and what a dead one left on the disk.

use std::path::PathBuf;

use gpumem_analyzer::analyze;
use gpumem_jobs::history::SessionEnding;
use gpumem_jobs::ranks::Rank;
use gpumem_model::recording::{Frame, Header, Missing, Recording, RunIdx, Status};
use gpumem_model::units::Nanos;
use gpumem_wire as wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::python::ranks::{JobRanks, job_of};
use crate::recording::recorder::bounded;
use crate::recording::store::{self, Archive};
use gpumem_base::errors::raised;

/// A recording's facts about a process that did not end in order.
const ENDING: &str = "ending";

/// Joins the workers of a cluster: of each what opens its report, its frames, and how it ended.
#[pyfunction(name = "_workers")]
pub(crate) fn workers(
    py: Python<'_>,
    found: Vec<(String, Vec<u8>, Option<String>)>,
) -> PyResult<Py<JobRanks>> {
    let ranks = py.detach(|| {
        let rank = |(id, bytes, ending): (String, Vec<u8>, Option<String>)| {
            let recording = read(&bytes, ending.as_deref())?;
            let ending = ending_of(&recording).unwrap_or(SessionEnding::InOrder);
            let analysis = analyze(&recording, &recording.header().rules);
            Ok(Rank::new(&id, recording, analysis, ending))
        };
        found.into_iter().map(rank).collect::<Result<Vec<_>, _>>()
    });
    let ranks = ranks.map_err(|error: wire::WireError| failed(py, &error))?;
    job_of(py, ranks)
}

/// The same frames as one recording, which says how its process ended.
#[pyfunction(name = "_worker_recording")]
pub(crate) fn worker_recording<'py>(
    py: Python<'py>,
    frames: &[u8],
    ending: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let recording = py.detach(|| read(frames, ending));
    let recording = recording.map_err(|error| failed(py, &error))?;
    let bytes = py.detach(|| wire::encode(&recording));
    Ok(PyBytes::new(py, &bytes))
}

/// Whether the second of two prefixes of one recording is longer, or is the only readable one.
#[pyfunction(name = "_is_further")]
pub(crate) fn is_further(py: Python<'_>, first: &[u8], second: &[u8]) -> bool {
    py.detach(|| reach(second) >= reach(first))
}

/// The recording that the session of this id left in a folder, with at most `n_points` points per
/// series, and how the session ended. `None` if there is no such session, or if it still runs.
#[pyfunction(name = "_left_behind")]
pub(crate) fn left_behind<'py>(
    py: Python<'py>,
    folder: PathBuf,
    session: &str,
    n_points: usize,
) -> Option<(Bound<'py, PyBytes>, &'static str)> {
    let archive = Archive::of_folder(folder);
    let (bytes, ending) = py.detach(|| {
        let opened = archive.open(&store::short_id(session)).ok()?;
        let is_it = opened.recording.header().session == session;
        let ending = opened.session.ending;
        (is_it && ending != SessionEnding::Running).then_some(())?;
        let frames = opened.recording.frames();
        let frames = frames.map(|frame| of_worker(bounded(frame, n_points)));
        Some((wire::encode_frames(frames), ending))
    })?;
    Some((PyBytes::new(py, &bytes), ending.name()))
}

/// Deletes the sessions in a folder that gpumem made, but for those under way, and the folder if it holds nothing
/// else.
#[pyfunction(name = "_delete_sessions")]
pub(crate) fn delete_sessions(py: Python<'_>, folder: PathBuf) {
    py.detach(move || store::delete_sessions(&folder));
}

/// Rewrites the message about a dead kernel for a worker.
fn of_worker(frame: Frame) -> Frame {
    let Frame::Missing(missing) = frame else {
        return frame;
    };
    let words = match missing.words.strip_prefix("the kernel ") {
        Some(rest) => format!("the worker {rest}"),
        None => missing.words,
    };
    Frame::Missing(Missing { words })
}

/// The facts about its process in the header of a saved recording.
pub(crate) fn ending_of(recording: &Recording) -> Option<SessionEnding> {
    let mut facts = recording.header().process.iter();
    let (_, name) = facts.find(|(name, _)| name == ENDING)?;
    SessionEnding::from_name(name)
}

fn read(frames: &[u8], ending: Option<&str>) -> Result<Recording, wire::WireError> {
    let mut recording = wire::decode(frames)?;
    if let Some(ending) = ending {
        let header = recording.header();
        let mut process = header.process.clone();
        process.retain(|(name, _)| name != ENDING);
        process.push((ENDING.to_owned(), ending.to_owned()));
        let header = Header {
            process,
            ..header.clone()
        };
        // It refers to nothing.
        drop(recording.apply(Frame::Header(header)));
    }
    Ok(recording)
}

/// How far a recording goes: how many runs have ended in it, and its last instant.
fn reach(frames: &[u8]) -> Option<(usize, Nanos)> {
    let recording = wire::decode(frames).ok()?;
    let runs = recording.runs();
    let ended = runs.iter().filter(|run| run.status != Status::Running);
    let instants = runs.iter().map(|run| run.ended.unwrap_or(run.started));
    let samples = runs.iter().flat_map(|run| last_sample(&recording, run.idx));
    let last = instants.chain(samples).max().unwrap_or_default();
    Some((ended.count(), last))
}

fn last_sample(recording: &Recording, run: RunIdx) -> impl Iterator<Item = Nanos> {
    let devices = recording.devices().iter();
    devices.flat_map(move |device| {
        let series = recording.samples_of(run, device.idx);
        series.filter_map(|(_, points)| points.at().last().copied())
    })
}

fn failed(py: Python<'_>, error: &wire::WireError) -> PyErr {
    raised(py, &error.to_string(), error.offset)
}
