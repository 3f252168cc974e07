//! What Python holds of a recording: its bytes, its report, its pictures.

use std::ffi::CString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gpumem_analyzer::{Analysis, SessionComparison, analyze, compare, waiting};
use gpumem_charts as charts;
use gpumem_explorer::formats::{Content, FileKind};
use gpumem_explorer::process_page::ProcessPage;
use gpumem_heap::Holders;
use gpumem_jobs::processes::{ChildProcesses, processes};
use gpumem_model::recording::{self, DeviceIdx, RunIdx};
use gpumem_report as report;
use gpumem_report::chrome_trace::chrome_trace;
use gpumem_report::{json, table};
use gpumem_scene as scene;
use gpumem_scene::{Scene, Theme};
use gpumem_wire as wire;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::python::arrow::PyTable;
use crate::python::other_file::{PyOtherFile, object, refused};
use crate::python::rules;
use crate::recording::{child, session, store};
use gpumem_base::errors::{RecordingWarning, file_error, raised};
use gpumem_base::files;
use gpumem_base::text::Text;
use gpumem_objects::look;

/// All runs of one kernel's life, with its devices. Does not change.
#[pyclass(frozen, name = "Recording", module = "gpumem.types")]
pub(crate) struct PyRecording {
    pub(crate) inner: recording::Recording,
    /// Where the session's child processes are kept.
    children: Option<PathBuf>,
}

#[pymethods]
impl PyRecording {
    /// Reads the bytes of a recording.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let read = py.detach(|| wire::decode(data));
        warned(py, None, read)
    }

    /// The bytes of a recording's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| wire::encode(&self.inner));
        PyBytes::new(py, &bytes)
    }

    /// Writes the recording to a file that `gpumem.load` reads.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| files::write(&path, &wire::encode(&self.inner)))
            .map_err(|error| file_error(path, &error))
    }

    fn __repr__(&self) -> String {
        let mut words = report::counts(&self.inner);
        for missing in self.inner.missing() {
            words.push_str("; ");
            words.push_str(missing);
        }
        format!("<Recording: {words}>")
    }

    /// `17 runs of 6 cells`.
    fn _counts(&self) -> String {
        report::counts(&self.inner)
    }

    /// The session's id, and how many of its runs have ended: where a live update goes on.
    fn _position(&self) -> (&str, usize) {
        let session = &self.inner.header().session;
        (session, session::n_ended(&self.inner))
    }

    /// The first runs and the rest, each a recording of its own.
    fn _split_at(&self, n_runs: usize) -> (Self, Self) {
        let (before, after) = self.inner.split_at(n_runs);
        (Self::new(before), Self::new(after))
    }

    /// What its findings are judged by.
    fn _rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        rules::to_python(py, &self.inner.header().rules)
    }

    /// The same, judged by other rules.
    fn _with_rules(&self, thresholds: &Bound<'_, PyDict>) -> PyResult<Self> {
        let rules = rules::from_python(thresholds)?;
        Ok(Self {
            inner: self.inner.clone().with_rules(rules),
            children: self.children.clone(),
        })
    }

    fn _compare_json(&self, py: Python<'_>, baseline: &Self) -> String {
        py.detach(|| json::comparison_json(&self.compared(baseline)))
    }

    fn _compare_text(&self, py: Python<'_>, baseline: &Self, name: Text, width: usize) -> String {
        let Text(name) = name;
        py.detach(|| {
            let waiting = waiting(&self.inner, &baseline.inner, &self.inner.header().rules);
            report::comparison(&self.compared(baseline), &waiting, &name, width)
        })
    }

    /// Who held memory of each device after a run, in words; empty where nobody looked.
    fn _held_text(&self, run: u32, width: usize) -> String {
        let devices = self.inner.devices().iter();
        let held = devices.filter_map(|device| self.inner.holders(RunIdx(run), device.idx));
        let devices: Vec<_> = held.cloned().collect();
        if devices.is_empty() {
            return String::new();
        }
        report::holders(&Holders { devices }, None, None, width)
    }

    fn _report_json(&self, py: Python<'_>) -> PyResult<String> {
        let rules = &self.inner.header().rules;
        look::with_room(py, || {
            json::report_json_with(&self.inner, &self.analysis(), &self.processes(), rules)
        })
    }

    fn _report_text(&self, py: Python<'_>, width: usize) -> PyResult<String> {
        look::with_room(py, || {
            report::text_with(&self.inner, &self.analysis(), &self.processes(), width)
        })
    }

    /// The child processes as they are now.
    fn _processes(slf: &Bound<'_, Self>) -> PyResult<Py<SessionProcesses>> {
        let (py, recording) = (slf.py(), slf.clone().unbind());
        let found = look::with_room(py, || recording.get().processes())?;
        let n = found.rows.len();
        object(
            py,
            ChildrenContent { recording, found },
            SessionProcesses { n },
        )
    }

    /// The conclusion, for an issue.
    fn _report_markdown(&self, py: Python<'_>) -> PyResult<String> {
        look::with_room(py, || {
            let analysis = self.analysis();
            let device = charts::default_device(&self.inner, &analysis).unwrap_or(DeviceIdx(0));
            report::markdown(&self.inner, &analysis, device)
        })
    }

    /// A row for each run and device.
    fn _report_csv(&self, py: Python<'_>) -> PyResult<String> {
        look::with_room(py, || report::csv(&self.inner, &self.analysis()))
    }

    /// Runs, levels and findings for Perfetto.
    fn _report_chrome_trace(&self, py: Python<'_>) -> PyResult<String> {
        look::with_room(py, || chrome_trace(&self.inner, &self.analysis()))
    }

    /// `runs`, `samples` or `findings` as columns.
    fn _report_table(&self, py: Python<'_>, what: &str) -> PyResult<PyTable> {
        let table = look::with_room(py, || match what {
            "runs" => Some(table::runs(&self.inner, &self.analysis())),
            "samples" => Some(table::samples(&self.inner)),
            "findings" => Some(table::findings(&self.inner, &self.analysis())),
            _ => None,
        })?;
        table.map(PyTable::new).ok_or_else(|| {
            let hint = "hint: name \"runs\", \"samples\" or \"findings\"";
            PyValueError::new_err(format!("there is no table {what:?}\n{hint}"))
        })
    }

    /// The versions of the programs and libraries of the session.
    fn _versions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let versions = PyDict::new(py);
        for (name, version) in &self.inner.header().versions {
            versions.set_item(name, version)?;
        }
        Ok(versions)
    }

    /// `width` in logical pixels, `scale` device pixels for each of them.
    fn _report_png<'py>(
        &self,
        py: Python<'py>,
        width: f64,
        scale: f64,
        dark: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let png = look::with_room(py, || scene::png(&self.scene(width), theme(dark), scale))?;
        Ok(PyBytes::new(py, &png))
    }

    fn _report_svg(&self, py: Python<'_>, width: f64, dark: bool) -> PyResult<String> {
        look::with_room(py, || scene::svg(&self.scene(width), theme(dark)))
    }
}

impl PyRecording {
    pub(crate) fn new(inner: recording::Recording) -> Self {
        Self {
            inner,
            children: None,
        }
    }

    /// The recording of a session whose child processes are kept in `children`.
    pub(crate) fn with_children(inner: recording::Recording, children: PathBuf) -> Self {
        Self {
            inner,
            children: Some(children),
        }
    }

    /// The session's child processes as they are now.
    fn processes(&self) -> ChildProcesses {
        let children = self.children.as_deref().map(child::found);
        let rules = &self.inner.header().rules;
        processes(&self.inner, &children.unwrap_or_default(), rules)
    }

    fn compared(&self, baseline: &Self) -> Vec<SessionComparison> {
        compare(&self.inner, &baseline.inner, &self.inner.header().rules)
    }

    fn analysis(&self) -> Analysis {
        analyze(&self.inner, &self.inner.header().rules)
    }

    fn scene(&self, width: f64) -> Scene {
        charts::report(&self.inner, &self.analysis(), width)
    }
}

/// The child processes that a session recorded.
#[pyclass(frozen, extends = PyOtherFile, module = "gpumem._gpumem")]
pub(crate) struct SessionProcesses {
    n: usize,
}

#[pymethods]
impl SessionProcesses {
    fn __len__(&self) -> usize {
        self.n
    }
}

struct ChildrenContent {
    recording: Py<PyRecording>,
    found: ChildProcesses,
}

impl Content for ChildrenContent {
    fn kind(&self) -> &'static str {
        "a session's child processes"
    }

    fn text(&self, width: usize) -> String {
        report::process_report(&self.recording.get().inner, &self.found, width)
    }

    fn json(&self) -> String {
        json::processes_json(&self.recording.get().inner, &self.found)
    }

    fn repr(&self) -> String {
        format!("<SessionProcesses {}>", self.found.rows.len())
    }

    fn page_title(&self) -> Option<&'static str> {
        Some("child processes")
    }

    fn page(&self) -> Option<ProcessPage> {
        let recording = &self.recording.get().inner;
        Some(ProcessPage::of_processes(recording, &self.found))
    }
}

fn theme(dark: bool) -> Theme {
    if dark { Theme::Dark } else { Theme::Light }
}

/// The session's recording as it is now.
#[pyfunction(name = "recording")]
pub(crate) fn recording_now(py: Python<'_>) -> PyResult<PyRecording> {
    look::ensure_room()?;
    session::look_if_unseen(py)?;
    session::renew_children(py)?;
    Ok(PyRecording {
        inner: session::snapshot(py)?,
        children: session::children(py)?,
    })
}

/// A file's path and its bytes. Only a regular file is read.
pub(crate) fn read_file(py: Python<'_>, path: PathBuf) -> PyResult<(PathBuf, Vec<u8>)> {
    let read = py.detach(|| {
        let mut bytes = Vec::new();
        files::open(&path)?.read_to_end(&mut bytes).map(|_| bytes)
    });
    match read {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) => Err(unreadable(py, path, &error)),
    }
}

/// The error for a file that is not regular, or that the system refuses.
pub(crate) fn unreadable(py: Python<'_>, path: PathBuf, error: &io::Error) -> PyErr {
    if error.kind() == io::ErrorKind::InvalidInput {
        return refused(py, &path, 0, error);
    }
    file_error(path, error)
}

/// The recording that a file holds, if it looks like one.
pub(crate) fn load_bytes(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<PyRecording> {
    let kind = FileKind::recognise(bytes);
    if kind.may_be_recording() {
        return decoded(py, path, bytes);
    }
    let kind = kind.name();
    let words = format!("byte 0: {kind}, not a recording of gpumem");
    Err(refused(py, path, 0, words))
}

/// The recording in a file's bytes; of a damaged one what is sound.
pub(crate) fn decoded(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<PyRecording> {
    let read =
        py.detach(|| wire::decode(bytes).or_else(|error| store::sound_part(bytes).ok_or(error)));
    warned(py, Some(path), read)
}

/// What was read; a warning for each thing that is missing in it.
fn warned(
    py: Python<'_>,
    path: Option<&Path>,
    read: Result<recording::Recording, wire::WireError>,
) -> PyResult<PyRecording> {
    let read = read.map_err(|error| match path {
        Some(path) => refused(py, path, error.offset, &error),
        None => raised(py, &error.to_string(), error.offset),
    })?;
    for words in read.missing() {
        warn_missing(py, path, words)?;
    }
    Ok(PyRecording::new(read))
}

/// Says that a part of a recording is missing.
pub(crate) fn warn_missing(py: Python<'_>, path: Option<&Path>, words: &str) -> PyResult<()> {
    let words = match path {
        Some(path) => format!("{}: {words}", path.display()),
        None => words.to_owned(),
    };
    let words = CString::new(words.replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<RecordingWarning>(), &words, 1)
}
