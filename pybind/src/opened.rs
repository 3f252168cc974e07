//! What a file holds, for Python.

use std::io::Read;
use std::path::{Path, PathBuf};

use gpumem_core::format;
use gpumem_core::read::device_profile::is_profile;
use gpumem_core::read::file_kind::{FileKind, LOOKED_AT};
use gpumem_core::read::json_file;
use gpumem_core::read::memory_timeline::is_picture;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::api::{load_bytes, raised, read_file};
use crate::device_profile::DeviceProfile;
use crate::level_log::LevelLog;
use crate::nsight::{self, NsightExport};
use crate::{files, ranks, store, torch_snapshot, torch_trace};

/// Reads a file of any kind that gpumem knows; its content tells which. A folder holds the recordings of a job's
/// ranks, or the traces of several workers. In a memory snapshot or a trace of `PyTorch`, cells of `notebook` are named,
/// by default those of this session.
#[pyfunction]
#[pyo3(signature = (path, *, notebook = None))]
pub(crate) fn load(
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
        FileKind::Sqlite => return NsightExport::of_sqlite(py, &path)?.into_py_any(py),
        kind if !is_read(kind, &head) => return Err(unread(py, &path, &head)),
        _ => {}
    }
    let (path, bytes) = read_file(py, path)?;
    match FileKind::of(&bytes) {
        FileKind::Recording => load_bytes(py, &path, &bytes)?.into_py_any(py),
        FileKind::Pickle => torch_snapshot::read(py, &path, &bytes, notebook)?.into_py_any(py),
        FileKind::NvidiaSmi | FileKind::Numbers => {
            LevelLog::of_nvidia_smi(py, &path, &bytes)?.into_py_any(py)
        }
        FileKind::Stormlog => LevelLog::of_stormlog(py, &path, &bytes)?.into_py_any(py),
        FileKind::Gzip | FileKind::Unknown if is_profile(&bytes) => {
            DeviceProfile::of(py, &path, &bytes)?.into_py_any(py)
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
    let name = path.display();
    let message = match FileKind::of(head) {
        FileKind::NsightReport => return nsight::not_exported(py, path),
        FileKind::Memray => return refuse_memray(py, path),
        FileKind::Empty => format!("{name}: byte 0: an empty file"),
        FileKind::Unknown => match format::decode(head) {
            Err(error) => format!("{name}: {error}\n{READS}"),
            Ok(_) => format!("{name}: byte 0: a file that changes while it is read"),
        },
        kind => format!(
            "{name}: byte 0: {}, which gpumem does not read\n{READS}",
            kind.words()
        ),
    };
    raised(py, &message, 0)
}

/// The error for a packed file of another kind.
fn refuse_packed(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyErr {
    let name = path.display();
    let words = FileKind::of(&json_file::head(bytes)).words();
    let message = format!(
        "{name}: byte 0: a gzip file with {words} in it\nhint: unpack it first, with `gunzip -k {name}`"
    );
    raised(py, &message, 0)
}

/// The error for a capture of memray, whose format is its own affair.
fn refuse_memray(py: Python<'_>, path: &Path) -> PyErr {
    let name = path.display();
    let message = format!(
        "{name}: a capture of memray, whose format is not public; it has host memory only\nhint: `memray table \
         {name}` or `memray flamegraph {name}` shows it"
    );
    raised(py, &message, 0)
}

/// A file's first bytes; none if it cannot be read, which shows when it is read whole.
fn beginning(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    drop(files::open(path).and_then(|file| file.take(LOOKED_AT as u64).read_to_end(&mut head)));
    head
}
