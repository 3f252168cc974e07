//! What a file holds, for Python.

use std::io::Read;
use std::path::{Path, PathBuf};

use gpumem_readers::device_profile::is_profile;
use gpumem_readers::file_kind::{FileKind, LOOKED_AT};
use gpumem_readers::json_file;
use gpumem_readers::memory_timeline::is_picture;
use gpumem_wire as wire;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::base::files;
use crate::base::text::Text;
use crate::python::api::{load_bytes, read_file};
use crate::python::other_file::refused;
use crate::python::{
    device_profile, level_log, nsight, ranks, stored, torch_snapshot, torch_trace,
};
use crate::recording::store;

/// Reads a file of any kind that gpumem knows; its content tells which. A folder holds the recordings of a job's
/// ranks, or the traces of several workers. A text that is no file's path may name a baseline or a session that is
/// kept: `"last"`, or the beginning of its id. In a memory snapshot or a trace of `PyTorch`, cells of `notebook` are
/// named, by default those of this session.
#[pyfunction]
#[pyo3(signature = (path, *, notebook = None))]
pub(crate) fn load(
    path: &Bound<'_, PyAny>,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let py = path.py();
    let file = path.extract::<PathBuf>();
    let is_file = |file: &PathBuf| file.exists() && !file.is_dir();
    if !file.as_ref().is_ok_and(is_file)
        && let Ok(Text(name)) = path.extract()
    {
        let is_folder = file.as_ref().is_ok_and(|file| file.is_dir());
        if let Some(kept) = stored::named(py, &name, is_folder)? {
            return kept.into_py_any(py);
        }
    }
    load_file(py, file?, notebook)
}

fn load_file(
    py: Python<'_>,
    path: PathBuf,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    if path.is_dir() {
        return match ranks::read_folder(py, &path)? {
            Some(job) => job.into_py_any(py),
            None => torch_trace::read_folder(py, &path, notebook)?.into_py_any(py),
        };
    }
    let head = py.detach(|| beginning(&path));
    let kind = FileKind::of(&head);
    if let Some(session) = ranks::session_in(py, &path)? {
        return session.into_py_any(py);
    }
    match kind {
        // A recording whose beginning is damaged.
        FileKind::Unknown if py.detach(|| store::has_frames(&path)) => {
            let (path, bytes) = read_file(py, path)?;
            return load_bytes(py, &path, &bytes)?.into_py_any(py);
        }
        // Whoever reads it says why it cannot be read.
        FileKind::Empty => {}
        // An export of Nsight Systems may be larger than memory, and what nobody reads, too.
        FileKind::Sqlite => return nsight::read(py, &path)?.into_py_any(py),
        kind if !is_read(kind, &head) => return Err(unread(py, &path, &head)),
        _ => {}
    }
    let (path, bytes) = read_file(py, path)?;
    match FileKind::of(&bytes) {
        FileKind::Recording => load_bytes(py, &path, &bytes)?.into_py_any(py),
        FileKind::Pickle => torch_snapshot::read(py, &path, &bytes, notebook)?.into_py_any(py),
        FileKind::NvidiaSmi | FileKind::Numbers => {
            level_log::of_nvidia_smi(py, &path, &bytes)?.into_py_any(py)
        }
        FileKind::Stormlog => level_log::of_stormlog(py, &path, &bytes)?.into_py_any(py),
        FileKind::Gzip | FileKind::Unknown if is_profile(&bytes) => {
            device_profile::read(py, &path, &bytes)?.into_py_any(py)
        }
        FileKind::Gzip if !is_json(&json_file::head(&bytes)) => {
            Err(refuse_packed(py, &path, &bytes))
        }
        FileKind::Json | FileKind::Gzip => torch_trace::read(py, &path, &bytes, notebook),
        FileKind::Html if is_picture(&bytes) => Err(torch_trace::refuse_picture(py, &path)),
        _ => Err(unread(py, &path, &bytes)),
    }
}

/// What to name those who give something else.
const READS: &str = "hint: gpumem reads its own recordings, memory snapshots, traces and memory timelines of PyTorch, \
     logs of nvidia-smi, SQLite exports of Nsight Systems, memory profiles of JAX, and exports of stormlog";

/// Whether there may be a reader for a file of which this is the beginning.
fn is_read(kind: FileKind, head: &[u8]) -> bool {
    match kind {
        FileKind::Recording
        | FileKind::Pickle
        | FileKind::NvidiaSmi
        | FileKind::Numbers
        | FileKind::Stormlog
        | FileKind::Json
        | FileKind::Gzip
        | FileKind::Html => true,
        _ => is_profile(head),
    }
}

/// What is damaged is told where it is read.
fn is_json(head: &[u8]) -> bool {
    matches!(
        FileKind::of(head),
        FileKind::Json | FileKind::Empty | FileKind::Unknown
    )
}

/// The error for a file that nothing reads.
fn unread(py: Python<'_>, path: &Path, head: &[u8]) -> PyErr {
    let message = match FileKind::of(head) {
        FileKind::NsightReport => return nsight::not_exported(py, path),
        FileKind::Memray => return refuse_memray(py, path),
        FileKind::Empty => "byte 0: an empty file".to_owned(),
        FileKind::Unknown => match wire::decode(head) {
            Err(error) => format!("{error}\n{READS}"),
            Ok(_) => "byte 0: a file that changes while it is read".to_owned(),
        },
        kind => format!(
            "byte 0: {}, which gpumem does not read\n{READS}",
            kind.words()
        ),
    };
    refused(py, path, 0, message)
}

/// The error for a packed file of another kind.
fn refuse_packed(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyErr {
    let (name, words) = (
        path.display(),
        FileKind::of(&json_file::head(bytes)).words(),
    );
    let hint = format!("hint: unpack it first, with `gunzip -k {name}`");
    refused(
        py,
        path,
        0,
        format!("byte 0: a gzip file with {words} in it\n{hint}"),
    )
}

/// The error for a capture of memray, whose format is its own affair.
fn refuse_memray(py: Python<'_>, path: &Path) -> PyErr {
    let name = path.display();
    let message = format!(
        "a capture of memray, whose format is not public; it has host memory only\nhint: `memray table {name}` or \
         `memray flamegraph {name}` shows it"
    );
    refused(py, path, 0, message)
}

/// A file's first bytes; none if it cannot be read, which shows when it is read whole.
fn beginning(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    drop(files::open(path).and_then(|file| file.take(LOOKED_AT as u64).read_to_end(&mut head)));
    head
}
