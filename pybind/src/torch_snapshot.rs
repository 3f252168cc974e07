//! Memory snapshots of `PyTorch`, for Python.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gpumem_core::json::torch_snapshot_json;
use gpumem_core::read::device_profile::is_profile;
use gpumem_core::read::file_kind::FileKind;
use gpumem_core::read::torch_snapshot::{Summary, summary};
use gpumem_core::report;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::api::{load_bytes, raised, read_file};
use crate::device_profile::DeviceProfile;
use crate::level_log::LevelLog;
use crate::nsight::{self, NsightExport};

/// A memory snapshot of `PyTorch`: who holds what on each device, and who did at the peak.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct TorchSnapshot {
    summary: Summary,
}

#[pymethods]
impl TorchSnapshot {
    /// What messages call such a file.
    #[classattr]
    const _KIND: &'static str = "a memory snapshot of PyTorch";

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, width: usize) -> String {
        report::torch_snapshot(&self.summary, width)
    }

    /// Everything as JSON: sizes are bytes.
    fn to_json(&self) -> String {
        torch_snapshot_json(&self.summary)
    }

    fn __repr__(&self) -> String {
        let devices = self.summary.devices.iter();
        let devices: Vec<_> = devices
            .map(|device| format!("{}: {} allocated", device.device, device.allocated))
            .collect();
        format!("<TorchSnapshot {}>", devices.join(", "))
    }
}

/// Reads a file of `torch.cuda.memory._dump_snapshot` without unpickling it.
#[pyfunction]
pub(crate) fn load_snapshot(py: Python<'_>, path: PathBuf) -> PyResult<TorchSnapshot> {
    let (path, bytes) = read_file(py, path)?;
    snapshot_of(py, &path, &bytes)
}

/// Reads a file that gpumem or another program wrote, as its content tells.
#[pyfunction(name = "_open_file")]
pub(crate) fn open_file(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    // An export of Nsight Systems may be larger than memory.
    match py.detach(|| beginning(&path)) {
        FileKind::Sqlite => {
            return NsightExport::of_sqlite(py, &path)?.into_py_any(py);
        }
        FileKind::NsightReport => return Err(nsight::not_exported(py, &path)),
        _ => (),
    }
    let (path, bytes) = read_file(py, path)?;
    match FileKind::of(&bytes) {
        FileKind::Pickle => snapshot_of(py, &path, &bytes)?.into_py_any(py),
        FileKind::NvidiaSmi => LevelLog::of_nvidia_smi(py, &path, &bytes)?.into_py_any(py),
        FileKind::Stormlog => LevelLog::of_stormlog(py, &path, &bytes)?.into_py_any(py),
        FileKind::Gzip | FileKind::Unknown if is_profile(&bytes) => {
            DeviceProfile::of(py, &path, &bytes)?.into_py_any(py)
        }
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
fn beginning(path: &Path) -> FileKind {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    match read {
        Ok(_) => FileKind::of(&head),
        Err(_) => FileKind::Unknown,
    }
}

fn snapshot_of(py: Python<'_>, path: &Path, bytes: &[u8]) -> PyResult<TorchSnapshot> {
    match py.detach(|| summary(bytes)) {
        Ok(summary) => Ok(TorchSnapshot { summary }),
        Err(error) => {
            let message = format!("{}: {error}", path.display());
            Err(raised(py, message, error.offset))
        }
    }
}
