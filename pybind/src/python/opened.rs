//! What a file holds, for Python.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gpumem_explorer::formats::{self, FileKind, Format, OtherFile, ReadMethod};
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::container::LOOKED_AT;
use gpumem_wire as wire;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::python::api::{decoded, unreadable};
use crate::python::cells::cells;
use crate::python::other_file::{FileBytes, PageFile, PageSource, file_object, refused};
use crate::python::torch_trace::file_name;
use crate::python::{nsight, ranks, stored, torch_trace};
use crate::recording::store;
use gpumem_base::files;
use gpumem_base::text::Text;

/// Reads a file of any kind that gpumem knows; its content tells which. A folder holds the recordings of a job's
/// ranks, or the traces of several workers. A text that is no file's path may name a baseline or a session that is
/// kept: `"last"`, or the beginning of its id. In a memory snapshot or a trace of `PyTorch`, cells of `notebook` are
/// named, by default those of this session.
#[pyfunction(signature = (path, *, notebook = None))]
pub(crate) fn load(
    path: &Bound<'_, PyAny>,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    find(path, notebook, false)
}

/// As `load`, for a page: it keeps the file's bytes.
#[pyfunction(name = "_open", signature = (path, *, notebook = None))]
pub(crate) fn open(
    path: &Bound<'_, PyAny>,
    notebook: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    find(path, notebook, true)
}

fn find(
    path: &Bound<'_, PyAny>,
    notebook: Option<Bound<'_, PyAny>>,
    is_for_page: bool,
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
    load_file(py, file?, notebook, is_for_page)
}

fn load_file(
    py: Python<'_>,
    path: PathBuf,
    notebook: Option<Bound<'_, PyAny>>,
    is_for_page: bool,
) -> PyResult<Py<PyAny>> {
    if path.is_dir() {
        return match ranks::read_folder(py, &path)? {
            Some(job) => job.into_py_any(py),
            None => torch_trace::read_folder(py, &path, notebook),
        };
    }
    let beginning = py.detach(|| Beginning::open(&path));
    let kind = FileKind::recognise(&beginning.bytes);
    let reading = kind.format.map_or(ReadMethod::Never, Format::reading);
    let is_others = matches!(reading, ReadMethod::Bytes(_) | ReadMethod::Rows(_));
    if (!is_others || store::is_session_name(&path))
        && let Some(session) = ranks::session_in(py, &path)?
    {
        return session.into_py_any(py);
    }
    match reading {
        ReadMethod::Recording => {
            let bytes = beginning.whole(py, &path)?;
            decoded(py, &path, &bytes)?.into_py_any(py)
        }
        ReadMethod::Bytes(read) => {
            let bytes = beginning.whole(py, &path)?;
            let cells = match kind.format {
                Some(format) if format.names_cells() => cells(py, notebook)?,
                _ => CellFiles::default(),
            };
            let name = file_name(&path);
            let file = OtherFile {
                name: &name,
                bytes: &bytes,
                cells: &cells,
            };
            let read = py.detach(|| read(&file));
            let content =
                read.map_err(|refusal| refused(py, &path, refusal.offset, refusal.message))?;
            let bytes = if is_for_page && kind.page().is_some() {
                FileBytes::Kept(bytes)
            } else {
                FileBytes::In(path)
            };
            let label = String::new();
            let files = vec![PageFile { name, label, bytes }];
            file_object(py, content, PageSource { files, cells })
        }
        ReadMethod::Rows(content) => {
            let capture = nsight::read(py, &path)?;
            file_object(py, py.detach(|| content(capture)), PageSource::default())
        }
        // Its beginning is damaged.
        _ if kind.may_be_recording() && py.detach(|| store::has_frames(&path)) => {
            let bytes = beginning.whole(py, &path)?;
            decoded(py, &path, &bytes)?.into_py_any(py)
        }
        _ => Err(unread(py, path, kind, &beginning)),
    }
}

/// The error for a file that nothing reads.
fn unread(py: Python<'_>, path: PathBuf, kind: FileKind, beginning: &Beginning) -> PyErr {
    if let Err(error) = &beginning.rest {
        return unreadable(py, path, error);
    }
    let message = if kind.may_be_recording() {
        match wire::decode(&beginning.bytes) {
            Err(error) => format!("{error}\n{}", formats::hint()),
            Ok(_) => "byte 0: a file that changes while it is read".to_owned(),
        }
    } else {
        kind.refusal(&path.display().to_string())
    };
    refused(py, &path, 0, message)
}

/// A file of which the beginning was read: it tells whether the rest is. An export of Nsight Systems may be larger
/// than memory, and what nobody reads, too.
struct Beginning {
    bytes: Vec<u8>,
    rest: io::Result<File>,
}

impl Beginning {
    fn open(path: &Path) -> Self {
        let mut bytes = Vec::new();
        let rest = files::open(path).and_then(|file| {
            let mut head = file.take(LOOKED_AT as u64);
            head.read_to_end(&mut bytes)?;
            Ok(head.into_inner())
        });
        Self { bytes, rest }
    }

    fn whole(self, py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
        let Self { mut bytes, rest } = self;
        let read = py.detach(|| rest?.read_to_end(&mut bytes));
        read.map_err(|error| unreadable(py, path.to_owned(), &error))?;
        Ok(bytes)
    }
}
