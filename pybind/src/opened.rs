//! What a file holds, for Python.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gpumem_core::read::device_profile::is_profile;
use gpumem_core::read::file_kind::FileKind;
use gpumem_core::read::memory_timeline::is_picture;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::api::{load_bytes, raised, read_file};
use crate::device_profile::DeviceProfile;
use crate::level_log::LevelLog;
use crate::nsight::{self, NsightExport};
use crate::{ranks, torch_snapshot, torch_trace};

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
    // An export of Nsight Systems may be larger than memory.
    match py.detach(|| kind_by_beginning(&path)) {
        FileKind::Sqlite => {
            return match ranks::session_in(py, &path)? {
                Some(session) => session.into_py_any(py),
                None => NsightExport::of_sqlite(py, &path)?.into_py_any(py),
            };
        }
        FileKind::NsightReport => return Err(nsight::not_exported(py, &path)),
        _ => (),
    }
    let (path, bytes) = read_file(py, path)?;
    match FileKind::of(&bytes) {
        FileKind::Pickle => torch_snapshot::read(py, &path, &bytes, notebook)?.into_py_any(py),
        FileKind::NvidiaSmi | FileKind::Numbers => {
            LevelLog::of_nvidia_smi(py, &path, &bytes)?.into_py_any(py)
        }
        FileKind::Stormlog => LevelLog::of_stormlog(py, &path, &bytes)?.into_py_any(py),
        FileKind::Gzip | FileKind::Unknown if is_profile(&bytes) => {
            DeviceProfile::of(py, &path, &bytes)?.into_py_any(py)
        }
        FileKind::Json | FileKind::Gzip => torch_trace::read(py, &path, &bytes, notebook),
        FileKind::Html if is_picture(&bytes) => Err(torch_trace::refuse_picture(py, &path)),
        FileKind::Memray => Err(refuse_memray(py, &path)),
        _ => load_bytes(py, &path, &bytes)?.into_py_any(py),
    }
}

/// The error for a capture of memray, whose format is its own affair.
fn refuse_memray(py: Python<'_>, path: &Path) -> PyErr {
    let name = path.display();
    let message = format!(
        "{name}: a capture of memray, whose format is not public; it has host memory only\nhint: `memray table \
         {name}` or `memray flamegraph {name}` shows it"
    );
    raised(py, message, 0)
}

/// What a file's beginning looks like; unknown if it cannot be read.
fn kind_by_beginning(path: &Path) -> FileKind {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    match read {
        Ok(_) => FileKind::of(&head),
        Err(_) => FileKind::Unknown,
    }
}
